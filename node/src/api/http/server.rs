//! Runs the listener and stops it.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use actix_web::{
    App,
    body::MessageBody,
    dev::{Server, ServerHandle, ServiceFactory},
    middleware::from_fn,
    web::Data,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{api::Api, layers, listen, routes};
use crate::{endpoint::Endpoint, metrics::exporter::Metrics};

/// Threads that serve connections.
const WORKERS: usize = 2;

/// An idle connection is closed after this long; longer than common clients keep theirs.
const IDLE_LIMIT: Duration = Duration::from_secs(75);

/// The head of a request arrives within this time.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// Bounds of the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections; further ones wait to be accepted.
    pub connections: usize,
    /// How long a graceful stop waits for running requests, in whole seconds.
    pub stop_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 8_192, stop_seconds: 5 }
    }
}

/// What a listener is made of.
#[derive(Debug)]
pub struct HttpOptions {
    /// An open socket, from [`listen`](super::listen()).
    pub listener: TcpListener,
    /// Its bounds.
    pub limits: Limits,
    /// Served under `/metrics`; requests are recorded in it.
    pub metrics: Metrics,
}

/// A running listener. Dropping it stops it at once.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    handle: ServerHandle,
    running: JoinHandle<io::Result<()>>,
    stopping: CancellationToken,
    limits: Limits,
}

/// Starts to serve an endpoint.
///
/// Call it inside a tokio runtime, and inside the actix `System` where the process has one: its accept thread and its two
/// workers are threads of their own, and only the task that commands them runs on the caller's runtime. Endpoint calls
/// are therefore polled on single-thread runtimes of the workers.
///
/// # Errors
/// There is no tokio runtime, or the socket refuses its options.
pub fn serve(endpoint: Endpoint, options: HttpOptions) -> io::Result<HttpServer> {
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let stopping = CancellationToken::new();
    let api = Api { endpoint, metrics: options.metrics, stopping: stopping.clone() };
    let address = options.listener.local_addr()?;
    let server = start(options.listener, options.limits, move || app(api.clone()))?;
    let handle = server.handle();
    let running = runtime.spawn(server);
    Ok(HttpServer { address, handle, running, stopping, limits: options.limits })
}

impl HttpServer {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the listener has ended by itself, which it does only when it fails.
    pub async fn ended(&mut self) -> io::Result<()> {
        (&mut self.running).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Stops gracefully: takes no new connection, answers waiting acquires with `unknown_outcome`, ends streams, and lets
    /// running requests finish for at most [`Limits::stop_seconds`]. Then everything is closed.
    pub async fn stop(self) {
        self.stopping.cancel();
        // The server bounds the wait itself; the outer bound is for a server that does not keep its word.
        let limit = Duration::from_secs(self.limits.stop_seconds + 1);
        if tokio::time::timeout(limit, self.handle.stop(true)).await.is_err() {
            tracing::warn!("the http listener did not stop in time and is closed as it is");
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.running.abort();
    }
}

/// The one configuration of the server, for the app and for tests of it.
pub(super) fn start<F, S, B>(listener: TcpListener, limits: Limits, app: F) -> io::Result<Server>
where
    F: Fn() -> App<S> + Send + Clone + 'static,
    S: ServiceFactory<
            actix_web::dev::ServiceRequest,
            Config = (),
            Response = actix_web::dev::ServiceResponse<B>,
            Error = actix_web::Error,
            InitError = (),
        > + 'static,
    B: MessageBody + 'static,
{
    listen::tune(&listener)?;
    let server = actix_web::HttpServer::new(app)
        .workers(WORKERS)
        .max_connections(limits.connections.div_ceil(WORKERS))
        .keep_alive(IDLE_LIMIT)
        .client_request_timeout(HEAD_LIMIT)
        // A client that closes, or half-closes, while it waits is gone: its handler is dropped, and the endpoint then
        // cancels the wait or releases its grant (rule R9). One that has sent more than 128 KiB of further requests behind
        // its wait hides its leaving from the server, and is then found by the end of its session.
        .h1_allow_half_closed(false)
        .disable_signals()
        .shutdown_timeout(limits.stop_seconds)
        .listen(listener)?;
    Ok(server.run())
}

fn app(
    api: Api,
) -> App<
    impl ServiceFactory<
        actix_web::dev::ServiceRequest,
        Config = (),
        Response = actix_web::dev::ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    App::new()
        .app_data(Data::new(api))
        .wrap(from_fn(layers::measure))
        .wrap(from_fn(layers::secure))
        .configure(routes::configure)
}

#[cfg(test)]
mod tests;
