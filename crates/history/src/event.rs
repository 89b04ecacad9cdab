//! One thing that one client saw. Judges nothing.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A session's id; written in lower-case hex, as everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16)
            .map(Self)
            .map_err(|_| D::Error::custom(format!("{text:?} is no session id: write it in hex")))
    }
}

/// How long an acquire is willing to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Not at all: a held lock is busy.
    Try,
    /// At most so many nanoseconds.
    AtMost(u64),
    /// Until the session ends.
    Unlimited,
}

/// How an acquire ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The lock is held from here on, with this fencing token: the create revision of the holder's key.
    Granted(u64),
    /// A try found it held.
    Busy,
    /// The wait limit passed.
    TimedOut,
    /// The caller gave the wait up; recorded when it did so.
    Cancelled,
    /// The session was over.
    SessionLost,
    /// It was certainly not carried out.
    Error,
    /// Nobody can say: it may hold the lock, wait for it, or neither.
    Unknown,
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseEnd {
    /// The hold is over, by this release or one before it.
    Released,
    /// The lock was not held any more.
    NotHolder,
    /// It was certainly not carried out.
    Error,
    /// Nobody can say.
    Unknown,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    /// By its own client; recorded when the close was sent.
    Closed,
    /// The service said that it is over; recorded when the client was told.
    Lost,
    /// The client's own deadline passed; the service said nothing.
    Deadline,
    /// An operator ended it by force.
    Forced,
}

/// What happened. Clients are numbered by whoever records; `call` numbers acquires, no number twice in one history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Fact {
    /// A session was opened; the answer came now.
    SessionOpened {
        /// The session.
        session: SessionId,
        /// Whose.
        client: u32,
        /// Its TTL in nanoseconds.
        ttl: u64,
        /// When the request was sent: the first deadline counts from there.
        sent: u64,
    },
    /// A keepalive was acknowledged, by every group in which the session holds locks; the answer came now.
    KeepaliveAcknowledged {
        /// The session.
        session: SessionId,
        /// When that keepalive was sent.
        sent: u64,
    },
    /// The client was killed, frozen or cut off on purpose: nothing of this session is sent from `last_sent` on.
    SessionSilent {
        /// The session.
        session: SessionId,
        /// The latest moment at which a keepalive may have been sent; the event's own time where nothing better is known.
        last_sent: u64,
    },
    /// A session ended, as its client sees it.
    SessionEnded {
        /// The session.
        session: SessionId,
        /// How.
        end: SessionEnd,
    },
    /// An acquire is about to be sent.
    AcquireSent {
        /// Number of this acquire.
        call: u64,
        /// Who asks.
        client: u32,
        /// With which session.
        session: SessionId,
        /// For which lock.
        lock: Arc<str>,
        /// How long it waits.
        wait: Wait,
    },
    /// The caller is about to give an acquire up: from here on its place in the line may be gone. Record it *before*
    /// sending; how it ends is told by its end.
    CancelSent {
        /// Number of the acquire.
        call: u64,
        /// Who asked.
        client: u32,
        /// With which session.
        session: SessionId,
        /// For which lock.
        lock: Arc<str>,
    },
    /// An acquire ended; its caller knows now.
    AcquireEnded {
        /// Number of the acquire.
        call: u64,
        /// Who asked.
        client: u32,
        /// With which session.
        session: SessionId,
        /// For which lock.
        lock: Arc<str>,
        /// How it ended.
        end: End,
    },
    /// A release is about to be sent: from here on the holder does not count on the lock. Record it *before* sending.
    ReleaseSent {
        /// Who releases.
        client: u32,
        /// With which session.
        session: SessionId,
        /// Which lock.
        lock: Arc<str>,
        /// The token of the hold.
        token: u64,
    },
    /// A release ended.
    ReleaseEnded {
        /// Who released.
        client: u32,
        /// With which session.
        session: SessionId,
        /// Which lock.
        lock: Arc<str>,
        /// The token of the hold.
        token: u64,
        /// How it ended.
        end: ReleaseEnd,
    },
    /// The holder noticed that it has lost the lock: its local deadline passed, or it was told.
    HoldLost {
        /// Who held.
        client: u32,
        /// With which session.
        session: SessionId,
        /// Which lock.
        lock: Arc<str>,
        /// The token of the hold.
        token: u64,
    },
    /// A write to the fenced resource was answered now.
    FencedWrite {
        /// The object that was written to.
        object: Arc<str>,
        /// The lock that protects it.
        lock: Arc<str>,
        /// The token that came with the write.
        token: u64,
        /// When the write was sent; the event's own time where the resource itself records.
        sent: u64,
        /// Whether it was accepted.
        accepted: bool,
    },
    /// A look at a lock's queue was answered now.
    QueueObserved {
        /// The lock.
        lock: Arc<str>,
        /// When the look was asked for: the queue is as it was at some moment since.
        asked: u64,
        /// Who held.
        holder: Option<SessionId>,
        /// Who waited, first in line first.
        waiting: Vec<SessionId>,
    },
}

/// A fact and its moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds of the run's one monotonic clock (CLOCK_MONOTONIC or CLOCK_BOOTTIME, where several
    /// processes of one machine record).
    pub at: u64,
    /// What.
    #[serde(flatten)]
    pub fact: Fact,
}

impl Event {
    /// A fact at a moment.
    #[must_use]
    pub const fn new(at: u64, fact: Fact) -> Self {
        Self { at, fact }
    }

    /// The lock that the event is about; `None` for those of sessions and of fenced objects.
    #[must_use]
    pub fn lock(&self) -> Option<&Arc<str>> {
        match &self.fact {
            Fact::AcquireSent { lock, .. }
            | Fact::CancelSent { lock, .. }
            | Fact::AcquireEnded { lock, .. }
            | Fact::ReleaseSent { lock, .. }
            | Fact::ReleaseEnded { lock, .. }
            | Fact::HoldLost { lock, .. }
            | Fact::QueueObserved { lock, .. } => Some(lock),
            Fact::SessionOpened { .. }
            | Fact::KeepaliveAcknowledged { .. }
            | Fact::SessionSilent { .. }
            | Fact::SessionEnded { .. }
            | Fact::FencedWrite { .. } => None,
        }
    }

    /// Whether it is about a session, and so about all locks.
    #[must_use]
    pub const fn is_of_session(&self) -> bool {
        match self.fact {
            Fact::SessionOpened { .. }
            | Fact::KeepaliveAcknowledged { .. }
            | Fact::SessionSilent { .. }
            | Fact::SessionEnded { .. } => true,
            Fact::AcquireSent { .. }
            | Fact::CancelSent { .. }
            | Fact::AcquireEnded { .. }
            | Fact::ReleaseSent { .. }
            | Fact::ReleaseEnded { .. }
            | Fact::HoldLost { .. }
            | Fact::FencedWrite { .. }
            | Fact::QueueObserved { .. } => false,
        }
    }
}
