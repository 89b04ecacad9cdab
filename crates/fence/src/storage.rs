//! The Storage Service: named objects over HTTP that can be written only with a fencing token.
//!
//! [`serve`] may be called on any tokio runtime, actix or not: it starts its own worker threads, one single-threaded
//! runtime each, and returns at once with a handle. It installs no signal handler and reads no configuration.
//!
//! ```text
//! PUT  /v1/objects/{name}   {"lock","token","data"}    200 {"name","lock","token","version"}
//! GET  /v1/objects/{name}                              200 {"name","lock","token","version","data"} | 404
//! GET  /v1/objects?prefix=&limit=&cursor=              200 {"objects":[{"name","lock","token","version"}],"next_cursor"}
//! POST /v1/fence            {"lock","token"}           200 {"lock","highest"}
//! GET  /livez  /readyz                                 200 | 503
//! ```
//! Errors are problem+json with a stable `code`: 400 `invalid_argument`, 404 `not_found`, 405 `method_not_allowed`, 409
//! `wrong_lock` and `unknown_token`, 412 `stale_token` with `highest`, 413 `payload_too_large`, 415
//! `unsupported_media_type`, 503 `unavailable`, `overloaded`, `check_unavailable` and `outcome_unknown`.

mod body;
mod http;
mod options;
mod postgres_store;
mod problem;
mod sqlite_store;
mod store;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use actix_web::{App, HttpServer, dev::ServerHandle, web};
use tokio::task::JoinHandle;

pub use options::{Database, InvalidDatabase, Options};

use crate::error::FenceError;
use store::Store;

/// How long requests under way may take to finish at a graceful stop.
const SHUTDOWN_LIMIT_SECS: u64 = 5;

/// How long a connection is kept for a client that still sends a body which was refused, so that it reads the answer.
const DISCONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Why the Storage Service did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The database could not be opened.
    #[error("the storage service cannot open its database: {0}")]
    Database(#[from] FenceError),
    /// The address is taken or not ours.
    #[error("the storage service cannot listen on {listen}: {source}")]
    Listen {
        /// The address asked for.
        listen: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The HTTP server failed.
    #[error("the storage service has failed: {0}")]
    Server(#[from] io::Error),
    /// The task that runs the HTTP server was cancelled, or the runtime ended.
    #[error("the storage service was cancelled together with the runtime it was started on")]
    Cancelled,
}

/// A running Storage Service. Dropping it stops the service without waiting for requests under way.
#[derive(Debug)]
pub struct StorageService {
    local_addr: SocketAddr,
    handle: ServerHandle,
    /// Taken when its end has been seen.
    task: Option<JoinHandle<io::Result<()>>>,
    store: Store,
}

/// Opens the database, brings its tables up to date, and listens. When this returns, requests are answered.
///
/// ```
/// use holdfast_fence::{Options, serve};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let database = folder.path().join("objects.db").display().to_string();
/// // A thread of its own with any tokio runtime will do; so does the runtime of the caller.
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// runtime.block_on(async {
///     let service = serve(Options::new("127.0.0.1:0".parse()?, database.parse()?)).await?;
///     println!("storage on http://{}", service.local_addr());
///     service.stop().await?;
///     Ok(())
/// })
/// # }
/// ```
///
/// # Errors
/// The database cannot be opened, or the address cannot be listened on.
pub async fn serve(options: Options) -> Result<StorageService, ServeError> {
    let Options { listen, database, token_check, workers } = options;
    let listener = TcpListener::bind(listen).map_err(|source| ServeError::Listen { listen, source })?;
    let local_addr = listener.local_addr().map_err(|source| ServeError::Listen { listen, source })?;
    let store = Store::open(&database, token_check).await?;
    let shared = web::Data::new(store.clone());
    let server = HttpServer::new(move || App::new().app_data(shared.clone()).configure(http::routes))
        .workers(workers.get())
        .disable_signals()
        .shutdown_timeout(SHUTDOWN_LIMIT_SECS)
        .client_disconnect_timeout(DISCONNECT_LIMIT)
        .listen(listener)?
        .run();
    let handle = server.handle();
    let task = Some(tokio::spawn(server));
    tracing::info!(%local_addr, ?database, "storage service listens");
    Ok(StorageService { local_addr, handle, task, store })
}

impl StorageService {
    /// The address it listens on, with the port that was chosen where 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Waits until the service ends by itself, which it does only by failing. May be dropped and called again.
    ///
    /// # Errors
    /// Why it ended.
    pub async fn ended(&mut self) -> Result<(), ServeError> {
        let Some(task) = &mut self.task else { return Ok(()) };
        let ended = task.await;
        self.task = None;
        ended.map_err(|_gone| ServeError::Cancelled)?.map_err(ServeError::from)
    }

    /// Takes no further connections, finishes requests under way within five seconds, and closes the database.
    ///
    /// # Errors
    /// The HTTP server had failed, or the database could not be closed.
    pub async fn stop(mut self) -> Result<(), ServeError> {
        self.handle.stop(true).await;
        self.ended().await?;
        self.store.close().await?;
        Ok(())
    }
}

impl Drop for StorageService {
    fn drop(&mut self) {
        // The order is given when the future is made; nobody is here to wait for it.
        drop(self.handle.stop(false));
    }
}
