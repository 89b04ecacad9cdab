//! Histories written down briefly: times in milliseconds, session n belongs to client n, all acquires want lock "a".

use std::sync::Arc;

use holdfast_history::{
    Check, End, Event, Fact, Limits, Online, ReleaseEnd, SessionEnd, SessionId, Violation, Wait, judge,
};

pub(crate) const MS: u64 = 1_000_000;

/// A history that grows.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) events: Vec<Event>,
}

fn lock() -> Arc<str> {
    Arc::from("a")
}

impl Story {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(mut self, at: u64, fact: Fact) -> Self {
        self.events.push(Event::new(at * MS, fact));
        self
    }

    /// A session is opened, the request being sent at the same moment.
    pub(crate) fn open(self, at: u64, session: u64, ttl: u64) -> Self {
        let client = session as u32;
        let session = SessionId(session);
        self.add(at, Fact::SessionOpened { session, client, ttl: ttl * MS, sent: at * MS })
    }

    pub(crate) fn keepalive(self, sent: u64, at: u64, session: u64) -> Self {
        self.add(at, Fact::KeepaliveAcknowledged { session: SessionId(session), sent: sent * MS })
    }

    pub(crate) fn silent(self, at: u64, session: u64) -> Self {
        self.add(at, Fact::SessionSilent { session: SessionId(session), last_sent: at * MS })
    }

    pub(crate) fn session_end(self, at: u64, session: u64, end: SessionEnd) -> Self {
        self.add(at, Fact::SessionEnded { session: SessionId(session), end })
    }

    pub(crate) fn ask(self, at: u64, session: u64, call: u64, wait: Wait) -> Self {
        let client = session as u32;
        self.add(at, Fact::AcquireSent { call, client, session: SessionId(session), lock: lock(), wait })
    }

    pub(crate) fn give_up(self, at: u64, session: u64, call: u64) -> Self {
        let client = session as u32;
        self.add(at, Fact::CancelSent { call, client, session: SessionId(session), lock: lock() })
    }

    pub(crate) fn answer(self, at: u64, session: u64, call: u64, end: End) -> Self {
        let client = session as u32;
        self.add(at, Fact::AcquireEnded { call, client, session: SessionId(session), lock: lock(), end })
    }

    /// An acquire that is granted; calls are numbered by their tokens.
    pub(crate) fn hold(self, at: u64, session: u64, token: u64) -> Self {
        self.ask(at, session, token, Wait::Unlimited).answer(at, session, token, End::Granted(token))
    }

    pub(crate) fn release(self, at: u64, session: u64, token: u64) -> Self {
        let client = session as u32;
        self.add(at, Fact::ReleaseSent { client, session: SessionId(session), lock: lock(), token })
    }

    pub(crate) fn released(self, at: u64, session: u64, token: u64, end: ReleaseEnd) -> Self {
        let client = session as u32;
        self.add(at, Fact::ReleaseEnded { client, session: SessionId(session), lock: lock(), token, end })
    }

    pub(crate) fn lost(self, at: u64, session: u64, token: u64) -> Self {
        let client = session as u32;
        self.add(at, Fact::HoldLost { client, session: SessionId(session), lock: lock(), token })
    }

    pub(crate) fn queue(self, asked: u64, at: u64, holder: Option<u64>, waiting: &[u64]) -> Self {
        let waiting = waiting.iter().copied().map(SessionId).collect();
        let holder = holder.map(SessionId);
        self.add(at, Fact::QueueObserved { lock: lock(), asked: asked * MS, holder, waiting })
    }

    pub(crate) fn write(self, sent: u64, at: u64, token: u64, accepted: bool) -> Self {
        let object = Arc::from("file");
        self.add(at, Fact::FencedWrite { object, lock: lock(), token, sent: sent * MS, accepted })
    }

    /// Judges it both ways, which must agree.
    #[track_caller]
    pub(crate) fn judge(&self) -> Vec<Violation> {
        let limits = Limits { reclaim_slack: 2_000 * MS, ghost_grace: 2_000 * MS, order: true };
        let offline = judge(&self.events, limits);
        let online = Online::new(limits);
        for event in &self.events {
            online.observe(event);
        }
        online.finish(self.events.last().map_or(0, |event| event.at));
        let mut sorted = offline.clone();
        sorted.sort_by_key(|violation| violation.second.at);
        assert_eq!(online.violations(), sorted);
        assert_eq!(online.violation_count(), sorted.len() as u64);
        offline
    }

    /// It is right.
    #[track_caller]
    pub(crate) fn good(&self) {
        assert_eq!(self.judge().iter().map(Violation::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    }

    /// Exactly this check finds exactly one thing, and says so.
    #[track_caller]
    pub(crate) fn broken(&self, check: Check, words: &[&str]) -> Violation {
        let found = self.judge();
        let said: Vec<String> = found.iter().map(Violation::to_string).collect();
        assert_eq!(found.iter().map(|found| found.check).collect::<Vec<_>>(), [check], "{said:#?}");
        for word in words {
            assert!(said[0].contains(word), "{word:?} in {:?}", said[0]);
        }
        found[0].clone()
    }
}
