//! What a check found, as a sentence for people and as data for programs. Finds nothing itself.

use std::{fmt, sync::Arc};

use serde::Serialize;

use crate::event::{End, Event, Fact, SessionEnd};

/// Which check found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// I1: holds with valid sessions never overlap.
    Overlap,
    /// I2: the tokens of one lock strictly grow in grant order and never repeat.
    Tokens,
    /// Waiters are granted in the order in which they were seen to stand.
    Order,
    /// I3: the fenced resource never accepts a lower token after a higher one.
    Fence,
    /// I4: no session ends before its last acknowledged keepalive's sending + TTL.
    EarlyExpiry,
    /// I5: a dead client's lock is granted on at the latest TTL + slack after its last keepalive.
    LateReclaim,
    /// I6: every acquire ends exactly once.
    Ends,
    /// I7: what gave up leaves the queue in time.
    Ghost,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overlap => "I1 overlap",
            Self::Tokens => "I2 tokens",
            Self::Order => "order",
            Self::Fence => "I3 fence",
            Self::EarlyExpiry => "I4 early expiry",
            Self::LateReclaim => "I5 late reclaim",
            Self::Ends => "I6 ends",
            Self::Ghost => "I7 ghost",
        })
    }
}

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which check found it.
    pub check: Check,
    /// The lock concerned; for fences the one that protects the object; absent for sessions.
    pub lock: Option<Arc<str>>,
    /// What came first, where there are two sides to it.
    pub first: Option<Event>,
    /// What contradicts it; where nothing came although something had to, as for a call that never ended, the event
    /// that it was owed to.
    pub second: Event,
    /// What is wrong, as a sentence.
    pub sentence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.check)?;
        if let Some(lock) = &self.lock {
            write!(f, " on {lock:?}")?;
        }
        write!(f, ": {}", self.sentence)
    }
}

/// A moment or a length of time for people.
pub(crate) struct Seconds(pub(crate) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}

/// An event as a clause with a subject: "client 3 (session 1f) was granted token 5 at 1.000250 s".
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fact {
            Fact::SessionOpened { session, client, ttl, .. } => {
                write!(f, "client {client} opened session {session} with a TTL of {}", Seconds(*ttl))
            }
            Fact::KeepaliveAcknowledged { session, sent } => {
                write!(f, "the keepalive of session {session} sent at {} was acknowledged", Seconds(*sent))
            }
            Fact::SessionSilent { session, .. } => write!(f, "session {session} fell silent"),
            Fact::SessionEnded { session, end } => match end {
                SessionEnd::Closed => write!(f, "session {session} was closed"),
                SessionEnd::Lost => write!(f, "session {session} was told that it is over"),
                SessionEnd::Deadline => write!(f, "session {session} passed its own deadline"),
                SessionEnd::Forced => write!(f, "session {session} was ended by force"),
            },
            Fact::AcquireSent { call, client, session, .. } => {
                write!(f, "client {client} (session {session}) sent acquire {call}")
            }
            Fact::CancelSent { call, client, session, .. } => {
                write!(f, "client {client} (session {session}) sent the cancel of acquire {call}")
            }
            Fact::AcquireEnded { call, client, session, end, .. } => {
                write!(f, "client {client} (session {session}) ")?;
                match end {
                    End::Granted(token) => write!(f, "was granted token {token} for acquire {call}"),
                    End::Busy => write!(f, "found it busy with acquire {call}"),
                    End::TimedOut => write!(f, "timed out with acquire {call}"),
                    End::Cancelled => write!(f, "cancelled acquire {call}"),
                    End::SessionLost => write!(f, "lost its session during acquire {call}"),
                    End::Error => write!(f, "was refused acquire {call}"),
                    End::Unknown => write!(f, "does not know how acquire {call} ended"),
                }
            }
            Fact::ReleaseSent { client, session, token, .. } => {
                write!(f, "client {client} (session {session}) sent the release of token {token}")
            }
            Fact::ReleaseEnded { client, session, token, .. } => {
                write!(f, "client {client} (session {session}) had its release of token {token} answered")
            }
            Fact::HoldLost { client, session, token, .. } => {
                write!(f, "client {client} (session {session}) noticed the loss of token {token}")
            }
            Fact::FencedWrite { object, token, accepted, .. } => {
                let what = if *accepted { "accepted" } else { "refused" };
                write!(f, "object {object:?} {what} a write with token {token}")
            }
            Fact::QueueObserved { waiting, .. } => {
                write!(f, "the queue was seen with {} waiting", waiting.len())
            }
        }?;
        write!(f, " at {}", Seconds(self.at))
    }
}
