//! Connections to members: the seam through which they are made, and the pool that keeps one per endpoint.
//!
//! Knows sockets. Does not know what is sent over them.

use std::{fmt, time::Duration};

use futures::future::BoxFuture;
use parking_lot::Mutex;
pub use tonic::transport::Channel;
use tonic::transport::Endpoint;

use crate::error::ConfigError;

/// HTTP/2 pings, so that a dead connection is noticed by sessions with a long TTL, and by watches. Members accept one per
/// second.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// How long a ping may go unanswered.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes the connections of a client. [`TcpChannels`] is the one for real networks; a simulation brings its own.
///
/// ```
/// use holdfast_client::{Channel, ChannelError, ChannelFactory};
///
/// #[derive(Debug)]
/// struct Nowhere;
///
/// impl ChannelFactory for Nowhere {
///     fn connect<'a>(&'a self, endpoint: &'a str) -> futures::future::BoxFuture<'a, Result<Channel, ChannelError>> {
///         Box::pin(async move { Err(ChannelError::new(format!("there is no way to {endpoint}"))) })
///     }
/// }
///
/// let client = holdfast_client::Client::builder().endpoint("http://a:1").channels(Nowhere).build().unwrap();
/// ```
pub trait ChannelFactory: fmt::Debug + Send + Sync + 'static {
    /// Connects to one endpoint. The caller bounds the time and drops the future when it is over.
    fn connect<'a>(&'a self, endpoint: &'a str) -> BoxFuture<'a, Result<Channel, ChannelError>>;
}

/// Why there is no connection to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ChannelError {
    reason: String,
}

impl ChannelError {
    /// An error with its reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// Connections over TCP.
///
/// ```
/// # use holdfast_client::{Client, TcpChannels};
/// let client = Client::builder().endpoint("http://127.0.0.1:7611").channels(TcpChannels).build().unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpChannels;

impl ChannelFactory for TcpChannels {
    fn connect<'a>(&'a self, endpoint: &'a str) -> BoxFuture<'a, Result<Channel, ChannelError>> {
        Box::pin(async move {
            let target = Endpoint::from_shared(endpoint.to_owned()).map_err(|error| reason(&error))?;
            let target = target
                .tcp_nodelay(true)
                .http2_keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT)
                .keep_alive_while_idle(true);
            target.connect().await.map_err(|error| reason(&error))
        })
    }
}

fn reason(error: &(dyn std::error::Error + 'static)) -> ChannelError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    ChannelError::new(text)
}

/// The endpoints of a client, each with the connection that was made last.
#[derive(Debug)]
pub(crate) struct Pool {
    endpoints: Vec<String>,
    factory: Box<dyn ChannelFactory>,
    slots: Mutex<Vec<Slot>>,
}

#[derive(Debug, Default)]
struct Slot {
    channel: Option<Channel>,
    generation: u64,
}

/// A connection, and where and when it was made.
#[derive(Clone, Debug)]
pub(crate) struct Leased {
    pub(crate) channel: Channel,
    pub(crate) index: usize,
    generation: u64,
}

impl Pool {
    /// Checks the endpoints; connects to none of them yet.
    pub(crate) fn new(endpoints: Vec<String>, factory: Box<dyn ChannelFactory>) -> Result<Self, ConfigError> {
        if endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint);
        }
        for endpoint in &endpoints {
            check(endpoint)?;
        }
        let slots = Mutex::new(endpoints.iter().map(|_| Slot::default()).collect());
        Ok(Self { endpoints, factory, slots })
    }

    pub(crate) fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// The endpoint with this number; numbers go round.
    pub(crate) fn endpoint(&self, index: usize) -> &str {
        self.endpoints.get(index % self.endpoints.len()).map_or("", String::as_str)
    }

    /// The connection to an endpoint, made now where there is none.
    pub(crate) async fn channel(&self, index: usize, limit: Duration) -> Result<Leased, ChannelError> {
        let index = index % self.endpoints.len();
        let known = self.slots.lock().get(index).and_then(|slot| {
            let channel = slot.channel.clone()?;
            Some(Leased { channel, index, generation: slot.generation })
        });
        if let Some(leased) = known {
            return Ok(leased);
        }
        let endpoint = self.endpoint(index);
        let channel = match tokio::time::timeout(limit, self.factory.connect(endpoint)).await {
            Ok(made) => made.map_err(|error| ChannelError::new(format!("{endpoint}: {error}")))?,
            Err(_) => {
                return Err(ChannelError::new(format!(
                    "{endpoint}: no connection within {} ms",
                    limit.as_millis()
                )));
            }
        };
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(index) else {
            return Err(ChannelError::new("there is no such endpoint"));
        };
        slot.generation += 1;
        slot.channel = Some(channel.clone());
        Ok(Leased { channel, index, generation: slot.generation })
    }

    /// Forgets a connection that went wrong, so that the next one is made anew.
    pub(crate) fn evict(&self, leased: &Leased) {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get_mut(leased.index).filter(|slot| slot.generation == leased.generation) {
            slot.channel = None;
        }
    }
}

fn check(endpoint: &str) -> Result<(), ConfigError> {
    let bad =
        |reason: &str| ConfigError::BadEndpoint { endpoint: endpoint.to_owned(), reason: reason.to_owned() };
    let uri: tonic::transport::Uri = endpoint.parse().map_err(|_| bad("it is not a URL"))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(_) | None => return Err(bad("it must begin with http://")),
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(bad("it names no host"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_checked_before_anything_is_sent() {
        let pool = |endpoints: &[&str]| {
            Pool::new(endpoints.iter().map(|e| (*e).to_owned()).collect(), Box::new(TcpChannels))
                .map(|p| p.len())
        };
        assert_eq!(pool(&["http://127.0.0.1:7611", "http://b:1"]), Ok(2));
        assert_eq!(pool(&[]), Err(ConfigError::NoEndpoint));
        for bad in ["", "127.0.0.1:7611", "ftp://a:1", "http://", "not a url"] {
            assert!(matches!(pool(&[bad]), Err(ConfigError::BadEndpoint { .. })), "{bad:?}");
        }
    }
}
