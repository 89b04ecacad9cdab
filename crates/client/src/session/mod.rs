//! Sessions: a client's registered presence, which its locks hang on.
//!
//! - [`core`] and [`answers`]: the state machine; [`ledger`], [`lease`] and [`hold`]: deadlines and holds; [`search`] and [`located`]: where holds stand after a move; [`request`]: what has no
//!   answer yet; [`pulse`]: keepalives. All pure.
//! - [`driver`]: the task; [`stream`] and [`link`]: the connection that sessions share, and a session's place on it;
//!   [`shared`]: what the task, the connection and the handles share.
//! - [`open`]: how a session begins.

mod answers;
mod claims;
mod core;
mod driver;
mod hold;
mod lease;
mod ledger;
mod link;
mod located;
mod open;
mod pulse;
mod request;
mod search;
mod shared;
mod stream;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

pub use self::open::{DEFAULT_TTL, SessionOptions};
pub(crate) use self::{core::Want, request::Wait, shared::Shared, stream::Streams};
use crate::{
    claim::JoinClaim,
    election::Election,
    error::Error,
    ids::SessionId,
    lock::Lock,
    state::{LossReason, SessionState},
};

/// An open session. Cheap to clone; clones are the same session.
///
/// A task keeps it alive in the background. It is closed by [`Session::close`], or in the background when the last handle
/// is gone: sessions, locks and guards all count.
///
/// ```no_run
/// # async fn example(client: holdfast_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let session = client.session().open().await?;
/// let guard = session.lock("jobs/nightly").acquire().await?;
/// tokio::select! {
///     reason = guard.lost() => eprintln!("stop: {reason}"),
///     () = work() => {}
/// }
/// session.close().await?;
/// # Ok(())
/// # }
/// # async fn work() {}
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    handle: Arc<Handle>,
}

/// The last one of these to go closes the session.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let now = self.shared.now();
        self.shared.core().close_quietly(now);
        self.shared.wake();
    }
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { handle: Arc::new(Handle { shared }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Its id.
    pub fn id(&self) -> SessionId {
        self.shared().session
    }

    /// Its TTL, as the server granted it: how long it lives without a keepalive.
    pub fn ttl(&self) -> Duration {
        self.shared().core().ledger().ttl()
    }

    /// How safe it is now, by the local clock: the worst over all groups that know it.
    pub fn state(&self) -> SessionState {
        self.shared().core().ledger().session_state(self.shared().now())
    }

    /// Its state as it changes. The receiver sees the newest state; values in between may be skipped.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) {
    /// let mut states = session.states();
    /// while states.changed().await.is_ok() {
    ///     println!("{:?}", *states.borrow());
    /// }
    /// # }
    /// ```
    pub fn states(&self) -> watch::Receiver<SessionState> {
        self.shared().states()
    }

    /// Waits until the session is over, and says why.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) {
    /// eprintln!("session {} is over: {}", session.id(), session.lost().await);
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        let mut states = self.states();
        // The sender lives as long as this handle does.
        let _ = states.wait_for(|state| *state == SessionState::Lost).await;
        self.shared().core().ledger().end().cloned().unwrap_or(LossReason::Deadline)
    }

    /// The lock of this name, to be acquired.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) -> Result<(), holdfast_client::AcquireError> {
    /// let guard = session.lock("jobs/nightly").acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, name: impl Into<Arc<str>>) -> Lock {
        Lock::new(self.clone(), name.into())
    }

    /// The election of this name, to campaign in.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) -> Result<(), holdfast_client::AcquireError> {
    /// let leadership = session.election("scheduler").campaign("10.0.0.7:80").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn election(&self, name: impl Into<Arc<str>>) -> Election {
        Election::new(self.clone(), name.into())
    }

    /// A claim of so many partitions, to be joined: the live sessions that take part share them.
    ///
    /// ```no_run
    /// # async fn example(session: holdfast_client::Session) -> Result<(), holdfast_client::ClaimError> {
    /// let claim = session.claim("ingest", 64).join().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn claim(&self, name: impl Into<Arc<str>>, partitions: u32) -> JoinClaim {
        JoinClaim::new(self.clone(), name.into(), partitions)
    }

    /// Closes the session: all its locks come free at once, everywhere, and its guards turn lost. Closing one that is
    /// over already is no error.
    ///
    /// # Errors
    /// No member answered within the request timeout; then the session is as it was. Its locks come free at the latest
    /// when its TTL has passed after the last handle is gone.
    pub async fn close(&self) -> Result<(), Error> {
        let shared = self.shared();
        let answer = shared.core().close(shared.now());
        shared.wake();
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Unreachable { reason: "the session's task has stopped".into() }),
        }
    }
}
