//! The history of one test: what its clients saw, on one clock.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use holdfast_history::{Checker, End, Event, Fact, Limits, SessionEnd, SessionId};

/// Events shown with a violation.
const SHOWN: usize = 40;

/// How an acquire ended, for a test to assert on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Granted(u64),
    Busy,
    TimedOut,
    Cancelled,
    SessionLost,
    /// Refused for another reason, with its code.
    Refused(String),
    /// Nobody can say, and why.
    Unknown(String),
}

impl Outcome {
    /// The token of a grant.
    #[track_caller]
    pub(crate) fn token(self) -> u64 {
        match self {
            Self::Granted(token) => token,
            other => panic!("not granted: {other:?}"),
        }
    }

    pub(crate) const fn end(&self) -> End {
        match self {
            Self::Granted(token) => End::Granted(*token),
            Self::Busy => End::Busy,
            Self::TimedOut => End::TimedOut,
            Self::Cancelled => End::Cancelled,
            Self::SessionLost => End::SessionLost,
            Self::Refused(_) => End::Error,
            Self::Unknown(_) => End::Unknown,
        }
    }
}

/// What clients saw so far.
#[derive(Debug)]
pub(crate) struct Record {
    began: Instant,
    events: Mutex<Vec<Event>>,
    calls: AtomicU64,
    clients: AtomicU32,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            events: Mutex::new(Vec::new()),
            calls: AtomicU64::new(0),
            clients: AtomicU32::new(0),
        }
    }

    /// Now, on the history's clock.
    pub(crate) fn now(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    /// Notes what is seen now.
    pub(crate) fn note(&self, fact: Fact) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // The moment is taken under the lock: the list is in the order of times.
        events.push(Event::new(self.now(), fact));
    }

    /// A number for another client.
    pub(crate) fn client(&self) -> u32 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for another acquire.
    pub(crate) fn call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// The client was killed, frozen or cut off on purpose.
    pub(crate) fn silent(&self, session: SessionId) {
        self.note(Fact::SessionSilent { session, last_sent: self.now() });
    }

    /// The session is over, as its client was told.
    pub(crate) fn lost(&self, session: SessionId) {
        self.note(Fact::SessionEnded { session, end: SessionEnd::Lost });
    }

    /// An operator ended the session.
    pub(crate) fn forced(&self, session: SessionId) {
        self.note(Fact::SessionEnded { session, end: SessionEnd::Forced });
    }

    /// Judges everything; panics with what is wrong.
    #[track_caller]
    pub(crate) fn judge(&self, limits: Limits) {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut checker = Checker::new(limits);
        events.iter().for_each(|event| checker.observe(event));
        checker.finish(self.now());
        let found = checker.violations();
        if found.is_empty() {
            return;
        }
        let last: Vec<String> =
            events.iter().rev().take(SHOWN).rev().map(|event| format!("  {event}")).collect();
        let found: Vec<String> = found.iter().map(|violation| format!("{violation}")).collect();
        panic!("BROKEN PROMISE:\n{}\nits end:\n{}", found.join("\n"), last.join("\n"));
    }
}

pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
