//! Holdfast by its native client: one session per client, one connection per client or shared by several.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use holdfast_client::{
    AcquireError, Channel, ChannelError, ChannelFactory, Client, HoldError, HoldState, Lock, LockGuard,
    LossReason, Session, SessionState, TcpChannels,
};
use holdfast_history::{End, SessionEnd};

use super::{Driver, LockClient, Opened, Refusal, Standing};
use crate::{clock::now, failure::Failure};

/// Sessions are opened many at once, on a machine that is busy with that.
const OPEN_WITHIN: Duration = Duration::from_secs(20);

/// Makes the first connection to the endpoint whose turn it is, so that clients are spread evenly; later ones, after a
/// break, go wherever the client wants.
#[derive(Debug)]
struct FirstHere {
    endpoint: String,
    made: AtomicBool,
}

impl ChannelFactory for FirstHere {
    fn connect<'a>(&'a self, endpoint: &'a str) -> BoxFuture<'a, Result<Channel, ChannelError>> {
        if endpoint == self.endpoint {
            self.made.store(true, Ordering::Relaxed);
        } else if !self.made.load(Ordering::Relaxed) {
            return Box::pin(async { Err(ChannelError::new("it is another endpoint's turn")) });
        }
        TcpChannels.connect(endpoint)
    }
}

/// Makes sessions.
#[derive(Debug)]
pub(crate) struct Holdfast {
    clients: Vec<Client>,
    ttl: Duration,
}

impl Holdfast {
    /// So many connections, spread over the endpoints.
    pub(crate) fn new(endpoints: &[String], connections: u32, ttl: Duration) -> Result<Self, Failure> {
        let mut clients = Vec::new();
        for endpoint in endpoints.iter().cycle().take(connections as usize) {
            let client = Client::builder()
                .endpoints(endpoints)
                .channels(FirstHere { endpoint: endpoint.clone(), made: AtomicBool::new(false) })
                .request_timeout(OPEN_WITHIN)
                .build()
                .map_err(|error| Failure::Usage(error.to_string()))?;
            clients.push(client);
        }
        Ok(Self { clients, ttl })
    }

    /// A session on the connection whose turn it is, and when its opening was sent.
    pub(crate) async fn session(&self, number: u32) -> Result<(Session, u64), Failure> {
        open(self.connection(number)?, self.ttl).await
    }

    fn connection(&self, number: u32) -> Result<&Client, Failure> {
        let client = self.clients.get(number as usize % self.clients.len().max(1));
        client.ok_or_else(|| Failure::Usage("no connections: give at least one".into()))
    }
}

impl Driver for Holdfast {
    type Client = HoldfastClient;

    async fn client(&self, number: u32) -> Result<HoldfastClient, Failure> {
        let client = self.connection(number)?.clone();
        let (session, sent) = open(&client, self.ttl).await?;
        Ok(HoldfastClient { client, ttl: self.ttl, session, sent, lock: None, guard: None })
    }
}

async fn open(client: &Client, ttl: Duration) -> Result<(Session, u64), Failure> {
    let sent = now();
    let opened = client.session().ttl(ttl).label("holdfast-loadtest").open().await;
    let session = opened.map_err(|error| Failure::Unreachable(format!("no session: {error}")))?;
    Ok((session, sent))
}

/// One session.
#[derive(Debug)]
pub(crate) struct HoldfastClient {
    client: Client,
    ttl: Duration,
    session: Session,
    sent: u64,
    lock: Option<(Arc<str>, Lock)>,
    guard: Option<LockGuard>,
}

impl LockClient for HoldfastClient {
    fn opened(&self) -> Option<Opened> {
        Some(Opened { session: self.session.id().get(), ttl: self.session.ttl(), sent: self.sent })
    }

    async fn acquire(&mut self, lock: &Arc<str>) -> Result<u64, Refusal> {
        self.guard = None;
        if self.lock.as_ref().is_none_or(|(name, _)| name != lock) {
            self.lock = Some((lock.clone(), self.session.lock(lock.clone())));
        }
        let Some((_, lock)) = &self.lock else { return Err(Refusal::new(End::Error, "no lock")) };
        let guard = lock.acquire().await.map_err(|error| refused(&error))?;
        let token = guard.token().get();
        self.guard = Some(guard);
        Ok(token)
    }

    fn standing(&self) -> Option<Standing> {
        let guard = self.guard.as_ref()?;
        Some(match (guard.state(), self.session.state()) {
            (HoldState::Lost | HoldState::Released, _) | (_, SessionState::Lost) => Standing::Lost,
            (HoldState::Safe, SessionState::Safe) => Standing::Safe,
            (HoldState::Safe | HoldState::InDoubt, SessionState::Safe | SessionState::InDoubt) => {
                Standing::InDoubt
            }
        })
    }

    async fn release(&mut self) -> Result<(), Refusal> {
        // A guard whose release failed is dropped, and goes on giving the lock back in the background.
        let Some(guard) = self.guard.take() else { return Ok(()) };
        guard.release().await.map(|_| ()).map_err(|error| not_released(&error))
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        self.guard = None;
        self.lock = None;
        (self.session, self.sent) = open(&self.client, self.ttl).await?;
        Ok(())
    }

    async fn close(self) {
        drop(self.guard);
        drop(self.lock);
        // Where no member answers, the TTL ends it.
        let _ = self.session.close().await;
    }
}

fn session_end(reason: &LossReason) -> SessionEnd {
    match reason {
        LossReason::SessionEnded(_) => SessionEnd::Lost,
        LossReason::Closed => SessionEnd::Closed,
        _ => SessionEnd::Deadline,
    }
}

/// How an acquire ended that did not give the lock.
pub(crate) fn refused(error: &AcquireError) -> Refusal {
    let plain = |end, text: &str| Refusal::new(end, text);
    match error {
        AcquireError::Busy { .. } => plain(End::Busy, "acquire: busy"),
        AcquireError::Timeout { .. } => plain(End::TimedOut, "acquire: timed out"),
        AcquireError::SessionLost { reason, .. } => Refusal {
            end: End::SessionLost,
            session: Some(session_end(reason)),
            text: format!("acquire: session lost: {reason}"),
        },
        AcquireError::AlreadyHeld { .. } => plain(End::Error, "acquire: already held"),
        AcquireError::AlreadyWaiting { .. } => plain(End::Error, "acquire: already waiting"),
        AcquireError::Removed { .. } => plain(End::Cancelled, "acquire: removed"),
        AcquireError::Cancelled { .. } => plain(End::Cancelled, "acquire: cancelled elsewhere"),
        AcquireError::Unknown { reason, .. } => {
            Refusal::new(End::Unknown, format!("acquire: outcome unknown: {reason}"))
        }
        AcquireError::Unreachable { reason, .. } => {
            Refusal::new(End::Error, format!("acquire: unreachable: {reason}"))
        }
        AcquireError::Invalid(text) => Refusal::new(End::Error, format!("acquire: invalid: {text}")),
        AcquireError::Refused(error) => Refusal::new(End::Error, format!("acquire: refused: {}", error.code)),
    }
}

fn not_released(error: &HoldError) -> Refusal {
    match error {
        HoldError::NotHolder { .. } => Refusal::new(End::Error, "release: not held any more"),
        HoldError::SessionLost { reason, .. } => Refusal {
            end: End::SessionLost,
            session: Some(session_end(reason)),
            text: format!("release: session lost: {reason}"),
        },
        HoldError::Unknown { reason, .. } => {
            Refusal::new(End::Unknown, format!("release: outcome unknown: {reason}"))
        }
        HoldError::Unreachable { reason, .. } => {
            Refusal::new(End::Error, format!("release: unreachable: {reason}"))
        }
        HoldError::Refused(error) => Refusal::new(End::Error, format!("release: refused: {}", error.code)),
    }
}

impl Refusal {
    /// One without an end of the session.
    pub(super) fn new(end: End, text: impl Into<String>) -> Self {
        Self { end, session: None, text: text.into() }
    }
}
