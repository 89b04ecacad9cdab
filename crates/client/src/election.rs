//! Leader elections: campaigning, and the guard of a leadership. A queue like a lock's, with a value.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::watch;

use crate::{
    acquire_error::AcquireError,
    admin::{Admin, LeaderView},
    client::Client,
    error::Error,
    hold_error::HoldError,
    ids::{SessionId, Token},
    lock::LockGuard,
    observe::Observe,
    session::{Session, Wait, Want},
    state::{HoldState, LossReason},
};

/// An election to campaign in with one session, made by [`Session::election`]. The election `a` and the lock `a` have
/// nothing to do with each other.
#[derive(Clone, Debug)]
pub struct Election {
    session: Session,
    name: Arc<str>,
    metadata: BTreeMap<String, String>,
}

impl Election {
    pub(crate) const fn new(session: Session, name: Arc<str>) -> Self {
        Self { session, name, metadata: BTreeMap::new() }
    }

    /// Adds to what operators see with the leader or candidate.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Waits in line until this session leads. `value` (at most 64 KiB) is what observers see of the leader. Dropping the
    /// future withdraws the candidacy.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) -> Result<(), Box<dyn std::error::Error>> {
    /// let leadership = session.election("scheduler").campaign("10.0.0.7:80").await?;
    /// leadership.proclaim("10.0.0.7:81").await?;
    /// leadership.resign().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Every way to end without leading, told apart.
    pub async fn campaign(&self, value: impl Into<Bytes>) -> Result<Leadership, AcquireError> {
        self.ask(Wait::Unlimited, value.into()).await
    }

    /// Leads if nobody does; otherwise [`AcquireError::Busy`] at once.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) -> Result<(), holdfast_client::AcquireError> {
    /// let leadership = session.election("scheduler").try_campaign("me").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Every way to end without leading, told apart.
    pub async fn try_campaign(&self, value: impl Into<Bytes>) -> Result<Leadership, AcquireError> {
        self.ask(Wait::Try, value.into()).await
    }

    /// Waits in line at most so long; then it is [`AcquireError::Timeout`] and the candidacy is withdrawn.
    ///
    /// # Errors
    /// Every way to end without leading, told apart.
    pub async fn campaign_timeout(
        &self,
        value: impl Into<Bytes>,
        limit: Duration,
    ) -> Result<Leadership, AcquireError> {
        let wait = if limit.is_zero() { Wait::Try } else { Wait::AtMost(limit) };
        self.ask(wait, value.into()).await
    }

    async fn ask(&self, wait: Wait, value: Bytes) -> Result<Leadership, AcquireError> {
        let want =
            Want { name: self.name.clone(), election: true, wait, metadata: self.metadata.clone(), value };
        LockGuard::acquire(self.session.clone(), want).await.map(|guard| Leadership { guard })
    }

    /// Who leads; `None` while nobody does.
    ///
    /// # Errors
    /// As a member answers, or none did.
    pub async fn leader(&self) -> Result<Option<LeaderView>, Error> {
        Admin::new(self.client()).leader(&self.name).await
    }

    /// The leader now, and then each change of leader or value.
    pub fn observe(&self) -> Observe {
        Observe::start(self.client(), self.name.to_string())
    }

    fn client(&self) -> Client {
        Client::of(self.session.shared().client.clone())
    }
}

/// A leadership. Give it up with [`Leadership::resign`]; dropping it gives it up in the background.
///
/// ```no_run
/// # async fn example(leadership: holdfast_client::Leadership) {
/// tokio::select! {
///     reason = leadership.lost() => eprintln!("stop leading: {reason}"),
///     () = lead() => {}
/// }
/// # }
/// # async fn lead() {}
/// ```
#[derive(Debug)]
pub struct Leadership {
    guard: LockGuard,
}

impl Leadership {
    /// The election's name.
    pub fn name(&self) -> &str {
        self.guard.name()
    }

    /// The fencing token of this leadership.
    pub const fn token(&self) -> Token {
        self.guard.token()
    }

    /// The group that owns the election; as [`LockGuard::group`].
    pub fn group(&self) -> u32 {
        self.guard.group()
    }

    /// The session that leads.
    pub fn session_id(&self) -> SessionId {
        self.guard.session_id()
    }

    /// How safe it is now; as [`LockGuard::state`].
    pub fn state(&self) -> HoldState {
        self.guard.state()
    }

    /// Whether this session certainly leads.
    pub fn is_safe(&self) -> bool {
        self.guard.is_safe()
    }

    /// How long it certainly lasts if nothing more is heard; as [`LockGuard::remaining`].
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Its state as it changes; as [`LockGuard::states`].
    pub fn states(&self) -> watch::Receiver<HoldState> {
        self.guard.states()
    }

    /// Waits until it is over, and says why; as [`LockGuard::lost`].
    pub async fn lost(&self) -> LossReason {
        self.guard.lost().await
    }

    /// Replaces the value that observers see (at most 64 KiB).
    ///
    /// # Errors
    /// This session does not lead any more, no member answered within the request timeout, or one refused.
    pub async fn proclaim(&self, value: impl Into<Bytes>) -> Result<(), HoldError> {
        self.guard.proclaim(value.into()).await
    }

    /// Gives the leadership up; as [`LockGuard::release`]: after a retryable error this stays responsible, so call again
    /// or drop it.
    ///
    /// # Errors
    /// This session does not lead any more, no member answered within the request timeout, or one refused.
    pub async fn resign(&self) -> Result<bool, HoldError> {
        self.guard.release().await
    }
}
