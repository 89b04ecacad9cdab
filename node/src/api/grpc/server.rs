//! Runs the listener and stops it.
//!
//! On threads of its own, as the HTTP listener does: thousands of streams that are busy at once take their share of the
//! processors, and the Raft groups theirs. On common threads a group's heartbeats stand in line behind all of them, and a
//! storm of clients becomes a storm of elections.

use std::{io, net::SocketAddr, time::Duration};

use futures::Stream;
use holdfast_proto::v1::{admin_server::AdminServer, claims_server::ClaimsServer, lock_server::LockServer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    runtime::{Builder, Runtime},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tonic::{
    service::Routes,
    transport::{
        Server,
        server::{Connected, Router, TcpIncoming},
    },
};

use super::{admin_service::AdminService, claims_service::ClaimsService, lock_service::LockService};
use crate::endpoint::Endpoint;

/// Streams of one connection: each session and each watch of a client is one.
const STREAMS: u32 = 100_000;
/// Streams of one connection that were reset before they were accepted: a client that drops many calls at once is no
/// attack.
const RESETS: usize = 10_000;
/// A silent connection is pinged after this long, and closed when the answer takes as long: then its waits are detached.
/// Pings of clients are answered however often they come.
const PING: Duration = Duration::from_secs(10);
/// How long open streams may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// What a listener is made of.
#[derive(Debug)]
pub struct GrpcOptions {
    /// An open socket.
    pub listener: TcpListener,
    /// Further services on the same socket.
    pub others: Routes,
}

/// A running listener. Dropping it stops it at once.
#[derive(Debug)]
pub struct GrpcServer {
    address: SocketAddr,
    running: JoinHandle<Result<(), tonic::transport::Error>>,
    stopping: CancellationToken,
    /// Taken only by the drop.
    threads: Option<Runtime>,
}

/// Starts to serve an endpoint. Call it inside a tokio runtime.
///
/// # Errors
/// The socket has no address, or the system no threads to give.
pub fn serve(endpoint: Endpoint, options: GrpcOptions) -> io::Result<GrpcServer> {
    let address = options.listener.local_addr()?;
    let stopping = CancellationToken::new();
    let router = router(endpoint, options.others, stopping.clone());
    let threads = Builder::new_multi_thread().thread_name("grpc").enable_all().build()?;
    // The socket reports to the threads that serve it.
    let listener = options.listener.into_std()?;
    let within = threads.enter();
    let incoming = TcpIncoming::from(TcpListener::from_std(listener)?)
        .with_nodelay(Some(true))
        .with_keepalive(Some(PING));
    let serving = router.serve_with_incoming_shutdown(incoming, stopping.clone().cancelled_owned());
    drop(within);
    Ok(GrpcServer { address, running: threads.spawn(serving), stopping, threads: Some(threads) })
}

/// Serves an endpoint on connections of any kind in the runtime of the caller, until there are no more of them and the last
/// has ended. For processes that have no sockets, as those of a simulation.
///
/// # Errors
/// The stream of connections fails.
pub async fn serve_connections<C>(
    endpoint: Endpoint,
    connections: impl Stream<Item = io::Result<C>>,
) -> Result<(), tonic::transport::Error>
where
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let router = router(endpoint, Routes::default(), CancellationToken::new());
    router.serve_with_incoming(connections).await
}

/// The services of an endpoint and whatever else is served beside them.
fn router(endpoint: Endpoint, others: Routes, stopping: CancellationToken) -> Router {
    let lock = LockServer::new(LockService::new(endpoint.clone(), stopping.clone()));
    let claims = ClaimsServer::new(ClaimsService::new(endpoint.clone(), stopping));
    let admin = AdminServer::new(AdminService::new(endpoint));
    Server::builder()
        .max_concurrent_streams(STREAMS)
        .http2_max_pending_accept_reset_streams(Some(RESETS))
        .http2_max_local_error_reset_streams(Some(RESETS))
        .http2_keepalive_interval(Some(PING))
        .http2_keepalive_timeout(Some(PING))
        .add_routes(others.add_service(lock).add_service(claims).add_service(admin))
}

impl GrpcServer {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the listener has ended by itself, which it does only when it fails.
    ///
    /// # Errors
    /// Why it failed.
    pub async fn ended(&mut self) -> io::Result<()> {
        match (&mut self.running).await {
            Ok(ended) => ended.map_err(io::Error::other),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Stops gracefully: takes no new connection, ends session streams and watches with `unavailable`, so that their
    /// clients go on at another member, and lets other calls finish for a bounded time.
    pub async fn stop(mut self) {
        self.stopping.cancel();
        if timeout(GRACE, &mut self.running).await.is_err() {
            tracing::debug!("calls over gRPC did not end in time and are cut off");
            self.running.abort();
        }
    }
}

impl Drop for GrpcServer {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.running.abort();
        if let Some(threads) = self.threads.take() {
            // Without waiting, which is not allowed where futures run.
            threads.shutdown_background();
        }
    }
}
