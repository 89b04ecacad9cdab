//! Where a member takes connections, and how somebody comes to have one.
//!
//! Behind the door stands the product's own gRPC server. Knows no message.

use std::io;

use futures::{StreamExt, stream};
use holdfast_node::{api::grpc, endpoint::Endpoint};
use tokio::sync::{mpsc, oneshot};

use super::{Network, Node, Seat, wire::Wire};

/// Takes connections for a member.
pub type Door = mpsc::UnboundedSender<Wire>;

/// A door, and what comes in.
#[must_use]
pub fn open() -> (Door, mpsc::UnboundedReceiver<Wire>) {
    mpsc::unbounded_channel()
}

/// Serves what comes in. Nothing at all happens before the first connection.
pub async fn serve(endpoint: Endpoint, mut knocks: mpsc::UnboundedReceiver<Wire>) {
    let Some(first) = knocks.recv().await else { return };
    let more = stream::unfold(knocks, |mut knocks| async { Some((knocks.recv().await?, knocks)) });
    let connections = stream::iter([first]).chain(more).map(io::Result::Ok);
    if let Err(error) = grpc::serve_connections(endpoint, Box::pin(connections)).await {
        tracing::error!(%error, "the door is closed");
    }
}

impl Network {
    /// Connects to a member. Takes as long as the network needs; whoever does not want to wait drops the future.
    ///
    /// # Errors
    /// Nobody listens there.
    pub async fn connect(&self, from: Node, to: Node) -> io::Result<Wire> {
        let (mut near, far) = Wire::pair(self, (from, to));
        let (tell, told) = oneshot::channel();
        let network = self.clone();
        let work = move |seat: Option<&Seat>| {
            let taken = seat.is_some_and(|seat| seat.door.send(far).is_ok());
            let answer = move |_: Option<&Seat>| {
                // Whoever asked may have given up.
                let _ = tell.send(taken);
            };
            network.send_surely(to, from, "connected", 0, Box::new(answer));
        };
        near.not_before(self.send_surely(from, to, "connect", 0, Box::new(work)));
        match told.await {
            Ok(true) => Ok(near),
            Ok(false) | Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}
