//! How safe a session or a lock is, and why one was lost. Knows no clock.

use serde::Serialize;

/// How safe a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Every group that knows the session has acknowledged a keepalive sent less than half a TTL ago.
    Safe,
    /// Some group has not. Its locks are still this session's.
    InDoubt,
    /// The session is over, or its own deadline has passed. It does not come back.
    Lost,
}

/// How safe a lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldState {
    /// The lock is held, and its group acknowledged a keepalive sent less than half a TTL ago.
    Safe,
    /// The lock is still held, but its group has been silent for half a TTL, or a release is under way whose answer is
    /// missing. Time to stop starting things.
    InDoubt,
    /// The lock is not held any more, or nobody can say that it is. It does not come back.
    Lost,
    /// The lock was given back by its own release.
    Released,
}

impl HoldState {
    /// Whether it is over: lost or released.
    pub const fn ended(self) -> bool {
        matches!(self, Self::Lost | Self::Released)
    }
}

/// Why a session or a lock is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossReason {
    /// No keepalive was acknowledged in time; the local deadline has passed.
    #[error("no keepalive was acknowledged in time")]
    Deadline,
    /// The server says that the session has ended.
    #[error("the session has ended: {0}")]
    SessionEnded(String),
    /// Somebody else ended the hold; the text is the event, like `force_released`.
    #[error("somebody else ended the hold ({0})")]
    Ended(String),
    /// The server does not know the hold.
    #[error("the server does not know the hold any more")]
    NotHolder,
    /// The session was closed by its own client.
    #[error("the session was closed")]
    Closed,
    /// The lock was released by its own client.
    #[error("the lock was released")]
    Released,
    /// The runtime that kept the session alive has stopped.
    #[error("the runtime that kept the session alive has stopped")]
    Stopped,
}
