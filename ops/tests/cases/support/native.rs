//! The Rust client, recording: a session's acknowledged keepalives are read off the deadlines of its guards.

use std::{
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use holdfast_client::{AcquireError, Client, HoldError, LockGuard, LossReason};
use holdfast_history::{Fact, ReleaseEnd, SessionId, Wait};
use tokio::task::JoinHandle;

use super::{Outcome, Record, SOON, ms, record::nanos, wait::pause};

/// How often a guard is looked at.
const LOOK_EVERY: Duration = ms(50);
/// How long one request may take, so that calls that hang end within a test.
const REQUEST_WITHIN: Duration = ms(1_500);

/// A client of all members that were named.
#[derive(Clone, Debug)]
pub(crate) struct Native {
    record: Arc<Record>,
    pub(crate) client: Client,
}

impl Native {
    pub(crate) fn connect(record: Arc<Record>, endpoints: Vec<String>) -> Self {
        let client = Client::builder()
            .endpoints(endpoints)
            .request_timeout(REQUEST_WITHIN)
            .connect_timeout(ms(500))
            .build()
            .unwrap();
        Self { record, client }
    }

    /// Opens a session, however often it must be asked for.
    pub(crate) async fn open(&self, ttl: Duration) -> Session {
        let began = Instant::now();
        loop {
            let sent = self.record.now();
            match self.client.session().ttl(ttl).open().await {
                Ok(session) => {
                    let number = self.record.client();
                    let id = SessionId(session.id().get());
                    self.record.note(Fact::SessionOpened {
                        session: id,
                        client: number,
                        ttl: nanos(ttl),
                        sent,
                    });
                    return Session { record: self.record.clone(), session, number, ttl };
                }
                Err(error) => assert!(error.retryable() && began.elapsed() < SOON, "{error}"),
            }
        }
    }
}

/// An open session. Clones are the same session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    record: Arc<Record>,
    session: holdfast_client::Session,
    number: u32,
    ttl: Duration,
}

impl Deref for Session {
    type Target = holdfast_client::Session;

    fn deref(&self) -> &holdfast_client::Session {
        &self.session
    }
}

impl Session {
    fn session_id(&self) -> SessionId {
        SessionId(self.session.id().get())
    }

    /// The client was cut off on purpose.
    pub(crate) fn falls_silent(&self) {
        self.record.silent(self.session_id());
    }

    pub(crate) async fn acquire(&self, lock: &str, wait: Wait) -> Result<Held, AcquireError> {
        let (call, client, session) = (self.record.call(), self.number, self.session_id());
        self.record.note(Fact::AcquireSent { call, client, session, lock: lock.into(), wait });
        let asked = self.session.lock(lock);
        let answer = match wait {
            Wait::Try => asked.try_acquire().await,
            Wait::AtMost(limit) => asked.acquire_timeout(Duration::from_nanos(limit)).await,
            Wait::Unlimited => asked.acquire().await,
        };
        let end = match &answer {
            Ok(guard) => Outcome::Granted(guard.token().get()),
            Err(error) => outcome(error),
        }
        .end();
        self.record.note(Fact::AcquireEnded { call, client, session, lock: lock.into(), end });
        answer.map(|guard| Held::watch(self, lock, guard))
    }

    /// Acquires without limit.
    pub(crate) async fn lock(&self, lock: &str) -> Held {
        self.acquire(lock, Wait::Unlimited).await.unwrap()
    }
}

/// A held lock.
#[derive(Debug)]
pub(crate) struct Held {
    session: Session,
    lock: Arc<str>,
    guard: Arc<LockGuard>,
    watcher: JoinHandle<()>,
}

impl Deref for Held {
    type Target = LockGuard;

    fn deref(&self) -> &LockGuard {
        &self.guard
    }
}

impl Held {
    fn watch(session: &Session, lock: &str, guard: LockGuard) -> Self {
        let (guard, lock) = (Arc::new(guard), Arc::<str>::from(lock));
        let watcher = tokio::spawn(watch(session.clone(), lock.clone(), guard.clone()));
        Self { session: session.clone(), lock, guard, watcher }
    }

    /// The token as a number.
    pub(crate) fn number(&self) -> u64 {
        self.guard.token().get()
    }

    fn sent(&self) -> Fact {
        Fact::ReleaseSent {
            client: self.session.number,
            session: self.session.session_id(),
            lock: self.lock.clone(),
            token: self.number(),
        }
    }

    /// Releases, once.
    pub(crate) async fn release(&self) -> Result<bool, HoldError> {
        self.session.record.note(self.sent());
        let answer = self.guard.release().await;
        let end = match &answer {
            Ok(_) => ReleaseEnd::Released,
            Err(error) if error.retryable() => ReleaseEnd::Unknown,
            Err(_) => ReleaseEnd::NotHolder,
        };
        self.session.record.note(Fact::ReleaseEnded {
            client: self.session.number,
            session: self.session.session_id(),
            lock: self.lock.clone(),
            token: self.number(),
            end,
        });
        answer
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.watcher.abort();
        if !self.guard.state().ended() {
            // Its guard gives it back in the background.
            self.session.record.note(self.sent());
        }
    }
}

/// Notes acknowledged keepalives and the loss of a hold.
async fn watch(session: Session, lock: Arc<str>, guard: Arc<LockGuard>) {
    let (record, id) = (&session.record, session.session_id());
    let mut renewed = 0;
    loop {
        tokio::select! {
            biased;
            reason = guard.lost() => {
                if reason == LossReason::Released {
                    return;
                }
                let (client, token) = (session.number, guard.token().get());
                record.note(Fact::HoldLost { client, session: id, lock, token });
                if matches!(reason, LossReason::SessionEnded(_)) {
                    record.lost(id);
                }
                return;
            }
            () = pause(LOOK_EVERY) => {}
        }
        let margin = ms(100).max(session.ttl / 1_000);
        // Rounded down: the client counts from the sending, of which only the deadline is seen.
        let sent = record.now() + nanos(guard.remaining() + margin).saturating_sub(nanos(ms(1)));
        let Some(sent) = sent.checked_sub(nanos(session.ttl)) else { continue };
        if sent > renewed + nanos(ms(5)) && !guard.remaining().is_zero() {
            renewed = sent;
            record.note(Fact::KeepaliveAcknowledged { session: id, sent });
        }
    }
}

/// What an error says of how the acquire ended.
pub(crate) fn outcome(error: &AcquireError) -> Outcome {
    match error {
        AcquireError::Busy { .. } => Outcome::Busy,
        AcquireError::Timeout { .. } => Outcome::TimedOut,
        AcquireError::SessionLost { .. } => Outcome::SessionLost,
        AcquireError::Cancelled { .. } => Outcome::Cancelled,
        AcquireError::Unknown { reason, .. } => Outcome::Unknown(reason.clone()),
        AcquireError::AlreadyHeld { .. }
        | AcquireError::AlreadyWaiting { .. }
        | AcquireError::Removed { .. }
        | AcquireError::Unreachable { .. }
        | AcquireError::Invalid(_)
        | AcquireError::Refused(_) => Outcome::Refused(error.to_string()),
    }
}
