//! Locks: asking for one, and the guard of one that is held. Knows no connection.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::{
    acquire_error::AcquireError,
    hold_error::HoldError,
    ids::{SessionId, Token},
    session::{Session, Shared, Wait, Want},
    state::{HoldState, LossReason},
};

/// A lock to be acquired by one session, made by [`Session::lock`].
///
/// A session holds a lock at most once: a second acquire of the same name while the first holds or waits is refused
/// ([`AcquireError::AlreadyHeld`], [`AcquireError::AlreadyWaiting`]), also from another thread.
#[derive(Clone, Debug)]
pub struct Lock {
    session: Session,
    name: Arc<str>,
    metadata: BTreeMap<String, String>,
}

impl Lock {
    pub(crate) const fn new(session: Session, name: Arc<str>) -> Self {
        Self { session, name, metadata: BTreeMap::new() }
    }

    /// Adds to what operators see with the holder or waiter.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Waits in line until the lock is granted or the session ends. Dropping the future leaves the queue.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) -> Result<(), holdfast_client::AcquireError> {
    /// let guard = session.lock("jobs/nightly").acquire().await?;
    /// println!("token {}", guard.token());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Every way to end without the lock, told apart.
    pub async fn acquire(&self) -> Result<LockGuard, AcquireError> {
        self.ask(Wait::Unlimited).await
    }

    /// Takes the lock if it is free; a held one is [`AcquireError::Busy`] at once.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) -> Result<(), holdfast_client::AcquireError> {
    /// use holdfast_client::AcquireError;
    /// match session.lock("jobs/nightly").try_acquire().await {
    ///     Ok(guard) => println!("token {}", guard.token()),
    ///     Err(AcquireError::Busy { holder, .. }) => println!("held by {holder:?}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Every way to end without the lock, told apart.
    pub async fn try_acquire(&self) -> Result<LockGuard, AcquireError> {
        self.ask(Wait::Try).await
    }

    /// Waits in line at most so long; then it is [`AcquireError::Timeout`], and the wait is out of the queue. The limit ends
    /// with the acquire: a lock that was granted is kept for as long as its guard lives.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) -> Result<(), holdfast_client::AcquireError> {
    /// use std::time::Duration;
    /// let guard = session.lock("jobs/nightly").acquire_timeout(Duration::from_secs(3)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Every way to end without the lock, told apart.
    pub async fn acquire_timeout(&self, limit: Duration) -> Result<LockGuard, AcquireError> {
        self.ask(if limit.is_zero() { Wait::Try } else { Wait::AtMost(limit) }).await
    }

    async fn ask(&self, wait: Wait) -> Result<LockGuard, AcquireError> {
        let want = Want {
            name: self.name.clone(),
            election: false,
            wait,
            metadata: self.metadata.clone(),
            value: Bytes::new(),
        };
        LockGuard::acquire(self.session.clone(), want).await
    }
}

/// An acquire that has no answer yet. Dropping it leaves the queue, or gives back a grant that came too late.
struct Pending {
    shared: Arc<Shared>,
    sequence: u64,
    answer: oneshot::Receiver<Result<u64, AcquireError>>,
    over: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let now = self.shared.now();
        let mut core = self.shared.core();
        self.answer.close();
        match self.answer.try_recv() {
            Ok(Ok(hold)) => core.give_back(hold, now),
            Ok(Err(_)) => {}
            Err(_) => core.abandon(self.sequence, now),
        }
        drop(core);
        self.shared.wake();
    }
}

/// A lock that is held. Give it back with [`LockGuard::release`]; dropping it gives it back in the background.
///
/// Whatever the lock protects should check [`LockGuard::token`]: a process that is paused for longer than its TTL cannot
/// know that it has lost the lock, the fencing token can.
///
/// ```no_run
/// # async fn example(guard: holdfast_client::LockGuard) -> Result<(), holdfast_client::HoldError> {
/// if guard.is_safe() {
///     println!("writing with token {}", guard.token());
/// }
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LockGuard {
    session: Session,
    hold: u64,
    name: Arc<str>,
    token: Token,
    states: watch::Receiver<HoldState>,
}

impl LockGuard {
    pub(crate) async fn acquire(session: Session, want: Want) -> Result<Self, AcquireError> {
        let shared = session.shared().clone();
        let name = want.name.clone();
        let (sequence, answer) = shared.core().acquire(want, shared.now());
        let mut pending = Pending { shared: shared.clone(), sequence, answer, over: false };
        shared.wake();
        let answer = (&mut pending.answer).await;
        pending.over = true;
        let unknown =
            |_| AcquireError::Unknown { name: name.to_string(), reason: "the client has stopped".into() };
        let hold = answer.map_err(unknown)??;
        let states = shared.watch_hold(hold);
        let token = shared.core().ledger().hold(hold).map_or(0, |hold| hold.token);
        Ok(Self { session, hold, name, token: Token::new(token), states })
    }

    fn shared(&self) -> &Arc<Shared> {
        self.session.shared()
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fencing token of this hold.
    pub const fn token(&self) -> Token {
        self.token
    }

    /// The session that holds.
    pub fn session_id(&self) -> SessionId {
        self.session.id()
    }

    /// The group that owns the lock, as far as this client knows: locks may move from one group to another while they are
    /// held.
    pub fn group(&self) -> u32 {
        self.shared().core().ledger().hold(self.hold).map_or(0, |hold| hold.place.group)
    }

    /// How safe the lock is now, by the local clock: read afresh on each call, also after the process was suspended.
    pub fn state(&self) -> HoldState {
        self.shared().core().ledger().hold_state(self.hold, self.shared().now())
    }

    /// Whether the lock is certainly held and not about to be in doubt.
    pub fn is_safe(&self) -> bool {
        self.state() == HoldState::Safe
    }

    /// How long the lock is still this session's if nothing more is heard from the server: zero once it is over. Before
    /// that time nobody else can be granted the lock, unless an operator forces it.
    pub fn remaining(&self) -> Duration {
        self.shared().core().ledger().hold_remaining(self.hold, self.shared().now())
    }

    /// Its state as it changes. The receiver sees the newest state; values in between may be skipped.
    pub fn states(&self) -> watch::Receiver<HoldState> {
        self.states.clone()
    }

    /// Waits until the lock is over, and says why ([`LossReason::Released`] after its own release).
    ///
    /// ```no_run
    /// # async fn example(guard: holdfast_client::LockGuard) {
    /// eprintln!("{} is over: {}", guard.name(), guard.lost().await);
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        let mut states = self.states.clone();
        // The sender lives as long as this guard does.
        let _ = states.wait_for(|state| state.ended()).await;
        self.shared().core().loss_of(self.hold)
    }

    /// Gives the lock back, and answers whether this very call ended the hold (`false`: an earlier one, whose answer was
    /// lost, had).
    ///
    /// On an error that is [retryable](HoldError::retryable) the guard stays responsible: call again, or drop it. From
    /// the moment a release is sent the guard is at best in doubt. Dropping the future does not send what was not sent.
    ///
    /// # Errors
    /// The lock is not held any more, no member answered within the request timeout, or one refused.
    pub async fn release(&self) -> Result<bool, HoldError> {
        let shared = self.shared();
        let (sequence, answer) = shared.core().release(self.hold, shared.now());
        self.settle(sequence, answer).await
    }

    pub(crate) async fn proclaim(&self, value: Bytes) -> Result<(), HoldError> {
        let shared = self.shared();
        let (sequence, answer) = shared.core().proclaim(self.hold, value, shared.now());
        self.settle(sequence, answer).await
    }

    async fn settle<T>(
        &self,
        sequence: u64,
        answer: oneshot::Receiver<Result<T, HoldError>>,
    ) -> Result<T, HoldError> {
        let withdraw = Withdraw { shared: self.shared(), sequence };
        self.shared().wake();
        let answer = answer.await;
        drop(withdraw);
        match answer {
            Ok(answer) => answer,
            Err(_) => {
                let reason = self.shared().core().loss_of(self.hold);
                Err(HoldError::SessionLost { name: self.name.to_string(), reason })
            }
        }
    }
}

/// Withdraws a request of a guard whose caller is gone; harmless once it is answered.
struct Withdraw<'a> {
    shared: &'a Shared,
    sequence: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.shared.core().withdraw(self.sequence);
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        let shared = self.shared();
        let now = shared.now();
        shared.unwatch_hold(self.hold);
        shared.core().give_back(self.hold, now);
        shared.wake();
    }
}
