//! How a session begins: its options, and the request that opens it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use holdfast_proto::v1;
use tokio::time::{Instant, sleep, timeout};

use super::{Session, core::Core, driver, link::Link, shared::Shared, stream::SessionStream};
use crate::{
    call::{RETRY_BASE, RETRY_MAX},
    client::Client,
    clock::Moment,
    error::Error,
    identity,
    ids::SessionId,
};

/// TTL of a session unless told otherwise.
pub const DEFAULT_TTL: Duration = Duration::from_secs(10);
/// Least time that one member of several gets to open a session.
const MIN_ATTEMPT: Duration = Duration::from_millis(500);

/// Options of a session that is to be opened.
///
/// ```no_run
/// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::Error> {
/// use std::time::Duration;
/// let session = client
///     .session()
///     .ttl(Duration::from_secs(30))
///     .label("nightly import")
///     .metadata("ticket", "OPS-7")
///     .open()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SessionOptions {
    client: Client,
    ttl: Duration,
    metadata: BTreeMap<String, String>,
}

impl SessionOptions {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, ttl: DEFAULT_TTL, metadata: identity::metadata() }
    }

    /// How long the session lives without a keepalive: 1 s to 24 h, 10 s by default. The longer, the later others get the
    /// locks of a client that died; the shorter, the less trouble a client survives.
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// What operators see beside host, process id and user.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        self.metadata("label", label)
    }

    /// Adds to (or replaces in) what operators see. `host`, `pid` and `user` are there by default.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Opens the session and keeps it alive from now on, in a task of the current tokio runtime.
    ///
    /// # Errors
    /// As a member answers (a TTL or metadata out of bounds), or none did within the request timeout.
    pub async fn open(self) -> Result<Session, Error> {
        let caller = &self.client.inner().caller;
        let deadline = Instant::now() + caller.request_timeout;
        let mut answered = None;
        let mut silent = String::from("the request timeout is zero");
        let mut attempt = 0;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(answered.map_or(Error::Unreachable { reason: silent }, Error::Api));
            }
            let index = caller.preferred();
            match self.open_at(index, remaining).await {
                Ok(session) => return Ok(session),
                Err(Error::Api(error)) if !error.code.retryable() => return Err(Error::Api(error)),
                Err(Error::Api(error)) => answered = Some(error),
                Err(Error::Unreachable { reason }) => silent = reason,
            }
            caller.prefer(index + 1);
            attempt += 1;
            let pause = caller.random.backoff(attempt - 1, RETRY_BASE, RETRY_MAX);
            sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }

    async fn open_at(&self, index: usize, remaining: Duration) -> Result<Session, Error> {
        let inner = self.client.inner();
        let caller = &inner.caller;
        let share = u32::try_from(caller.pool.len()).unwrap_or(u32::MAX);
        let limit = (caller.request_timeout / share.max(1)).max(MIN_ATTEMPT).min(remaining);
        let open = v1::Open {
            // On the wire 0 asks for the default; whoever asks for none is refused, as with any that is too short.
            ttl_ms: u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX).max(1),
            metadata: self.metadata.clone().into_iter().collect(),
        };
        let opening = async {
            let stream = inner.streams.at(caller, index, limit).await?;
            let sent = inner.clock.now();
            let opened = stream.open_session(open).await?;
            Ok(self.start(stream, &opened, sent))
        };
        let endpoint = caller.pool.endpoint(index);
        let silent = || Error::Unreachable {
            reason: format!("{endpoint}: no answer within {} ms", limit.as_millis()),
        };
        let session = timeout(limit, opening).await.unwrap_or_else(|_| Err(silent()))?;
        caller.prefer(index);
        Ok(session)
    }

    fn start(&self, stream: Arc<SessionStream>, opened: &v1::Opened, sent: Moment) -> Session {
        let inner = self.client.inner();
        let session = SessionId::from_wire(opened.session);
        let ttl = Duration::from_millis(opened.ttl_ms);
        let seed = inner.caller.random.next();
        let core = Core::new(session, ttl, sent, inner.caller.request_timeout, seed);
        let shared = Arc::new(Shared::new(inner.clone(), session, core));
        let link = Link::carried(stream, &shared);
        tokio::spawn(driver::run(shared.clone(), link));
        Session::new(shared)
    }
}
