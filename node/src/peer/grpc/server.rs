//! Listens for other members.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::TcpIncoming};

use super::{
    CONNECTION_WINDOW, FRAME, MESSAGE, PING_INTERVAL, PING_TIMEOUT, STREAM_WINDOW, service::Receiver,
    wire::proto::peer_server::PeerServer as Service,
};
use crate::peer::service::PeerService;

/// Requests under way on one connection: streams of appends and calls, votes, signs of life.
const STREAMS: u32 = 100_000;
/// Requests that were given up and not yet noticed here; the peers are trusted, so many are no attack.
const RESETS: usize = 100_000;
/// How long requests may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(1);

/// Serves the other members on one address.
#[derive(Debug)]
pub struct PeerServer {
    address: SocketAddr,
    stopping: CancellationToken,
    task: JoinHandle<()>,
}

impl PeerServer {
    /// Starts serving on a listener. Needs the tokio runtime.
    ///
    /// # Errors
    /// When the listener has no address.
    pub fn start(listener: TcpListener, service: PeerService) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let stopping = CancellationToken::new();
        let receiver = Receiver::new(service, stopping.clone());
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let service =
            Service::new(receiver).max_decoding_message_size(MESSAGE).max_encoding_message_size(MESSAGE);
        let serving = Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .max_concurrent_streams(STREAMS)
            .http2_max_pending_accept_reset_streams(Some(RESETS))
            .http2_max_local_error_reset_streams(Some(RESETS))
            .http2_keepalive_interval(Some(PING_INTERVAL))
            .http2_keepalive_timeout(Some(PING_TIMEOUT))
            .add_service(service)
            .serve_with_incoming_shutdown(incoming, stopping.clone().cancelled_owned());
        let task = tokio::spawn(async move {
            if let Err(err) = serving.await {
                tracing::error!(%address, %err, "the peer listener failed");
            }
        });
        Ok(Self { address, stopping, task })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses new requests, ends streams and calls, and closes all connections.
    pub async fn stop(mut self) {
        self.stopping.cancel();
        if timeout(GRACE, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.task.abort();
    }
}
