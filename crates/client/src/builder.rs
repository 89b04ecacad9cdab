//! Options of a client. Connects to nothing.

use std::time::Duration;

use crate::{
    channel::{ChannelFactory, Pool, TcpChannels},
    client::{Client, Inner},
    clock::Clock,
    error::ConfigError,
};

/// How long a request waits for its answer unless told otherwise.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one attempt to connect to one member may take unless told otherwise.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Builds a [`Client`].
///
/// ```
/// use std::time::Duration;
/// use holdfast_client::Client;
///
/// let client = Client::builder()
///     .endpoints(["http://10.0.0.1:7611", "http://10.0.0.2:7611", "http://10.0.0.3:7611"])
///     .request_timeout(Duration::from_secs(3))
///     .build()?;
/// # Ok::<(), holdfast_client::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct ClientBuilder {
    endpoints: Vec<String>,
    request_timeout: Duration,
    connect_timeout: Duration,
    factory: Box<dyn ChannelFactory>,
    clock: Clock,
    seed: Option<u64>,
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        Self {
            endpoints: Vec::new(),
            request_timeout: DEFAULT_REQUEST_TIMEOUT,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            factory: Box::new(TcpChannels),
            clock: Clock::boot(),
            seed: None,
        }
    }

    /// Adds a member's gRPC URL, like `http://127.0.0.1:7611`.
    #[must_use]
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoints.push(endpoint.into());
        self
    }

    /// Adds several members. The client begins at one of them by chance and goes round.
    #[must_use]
    pub fn endpoints<I: IntoIterator<Item: Into<String>>>(mut self, endpoints: I) -> Self {
        self.endpoints.extend(endpoints.into_iter().map(Into::into));
        self
    }

    /// How long a request, retries at other members included, waits for its answer. Does not end waits for a lock, which
    /// have their own limit, nor keepalives.
    #[must_use]
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// How long one attempt to connect to one member may take.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Makes connections some other way than over TCP.
    #[must_use]
    pub fn channels(mut self, factory: impl ChannelFactory) -> Self {
        self.factory = Box::new(factory);
        self
    }

    /// Counts deadlines on another clock.
    #[must_use]
    pub const fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Fixes the random choices (first endpoint, jitter of retries), for runs that repeat.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The client. No connection is made before it is used.
    ///
    /// # Errors
    /// No endpoint, or one that is no URL.
    pub fn build(self) -> Result<Client, ConfigError> {
        let pool = Pool::new(self.endpoints, self.factory)?;
        let seed = self.seed.unwrap_or_else(rand::random);
        Ok(Client::from_inner(Inner::new(pool, self.request_timeout, self.connect_timeout, self.clock, seed)))
    }
}
