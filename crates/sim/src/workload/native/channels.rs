//! Connections of the product's client in the simulated network, set up as those over TCP are.

use std::{io, time::Duration};

use futures::future::BoxFuture;
use holdfast_client::{Channel, ChannelError, ChannelFactory};
use hyper_util::rt::TokioIo;
use tonic::transport::{Endpoint, Uri};
use tower::service_fn;

use crate::network::{Network, Node};

/// As in the client's own connections over TCP.
const PING: Duration = Duration::from_secs(2);

/// Makes the connections of one process.
#[derive(Clone, Debug)]
pub struct SimChannels {
    network: Network,
    here: Node,
}

impl SimChannels {
    /// Connections from this address.
    #[must_use]
    pub fn new(network: Network, here: Node) -> Self {
        Self { network, here }
    }

    async fn made(&self, endpoint: &str) -> Result<Channel, ChannelError> {
        let wrong = |error: tonic::transport::Error| ChannelError::new(error.to_string());
        let target = Endpoint::from_shared(endpoint.to_owned()).map_err(wrong)?;
        let target =
            target.http2_keep_alive_interval(PING).keep_alive_timeout(PING).keep_alive_while_idle(true);
        let (network, here) = (self.network.clone(), self.here);
        let connector = service_fn(move |uri: Uri| {
            let network = network.clone();
            async move {
                let member = member_of(&uri).ok_or(io::ErrorKind::NotFound)?;
                network.connect(here, member).await.map(TokioIo::new)
            }
        });
        target.connect_with_connector(connector).await.map_err(wrong)
    }
}

impl ChannelFactory for SimChannels {
    fn connect<'a>(&'a self, endpoint: &'a str) -> BoxFuture<'a, Result<Channel, ChannelError>> {
        Box::pin(self.made(endpoint))
    }
}

/// The URL of a member.
#[must_use]
pub fn endpoint_of(member: Node) -> String {
    format!("http://member-{member}:7611")
}

fn member_of(uri: &Uri) -> Option<Node> {
    uri.host()?.strip_prefix("member-")?.parse().ok()
}
