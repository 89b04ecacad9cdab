//! Records what clients see into the checks, while it happens. Measures nothing.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use holdfast_history::{Check, End, Event, Fact, Limits, Online, SessionEnd, SessionId, Violation, Wait};

use crate::clock::{nanos, now};

/// The checks of one run.
#[derive(Debug)]
pub(crate) struct Recorder {
    online: Online,
    calls: AtomicU64,
}

/// One client as the checks see it.
#[derive(Debug)]
pub(crate) struct Witness {
    recorder: Arc<Recorder>,
    client: u32,
    session: SessionId,
    ttl: Duration,
    /// When it was known last that the session stands well.
    looked: u64,
}

impl Recorder {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { online: Online::new(limits), calls: AtomicU64::new(0) })
    }

    pub(crate) fn observe(&self, at: u64, fact: Fact) {
        self.online.observe(&Event::new(at, fact));
    }

    /// The run is drained.
    pub(crate) fn finish(&self) {
        self.online.finish(now());
    }

    pub(crate) fn violation_count(&self) -> u64 {
        self.online.violation_count()
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.online.violations()
    }

    /// How many violations each check found, of those that were kept.
    pub(crate) fn by_check(&self) -> BTreeMap<Check, u64> {
        let mut counts = BTreeMap::new();
        for violation in self.online.violations() {
            *counts.entry(violation.check).or_default() += 1;
        }
        counts
    }
}

impl Witness {
    /// A client whose session was opened by a request sent at `sent`.
    pub(crate) fn new(recorder: Arc<Recorder>, client: u32, session: u64, ttl: Duration, sent: u64) -> Self {
        let session = SessionId(session);
        recorder.observe(now(), Fact::SessionOpened { session, client, ttl: nanos(ttl), sent });
        Self { recorder, client, session, ttl, looked: sent }
    }

    pub(crate) fn acquire_sent(&self, at: u64, lock: &Arc<str>, wait: Wait) -> u64 {
        let call = self.recorder.calls.fetch_add(1, Ordering::Relaxed);
        let (client, session, lock) = (self.client, self.session, lock.clone());
        self.recorder.observe(at, Fact::AcquireSent { call, client, session, lock, wait });
        call
    }

    pub(crate) fn acquire_ended(&self, at: u64, call: u64, lock: &Arc<str>, end: End) {
        let (client, session, lock) = (self.client, self.session, lock.clone());
        self.recorder.observe(at, Fact::AcquireEnded { call, client, session, lock, end });
    }

    pub(crate) fn release_sent(&self, at: u64, lock: &Arc<str>, token: u64) {
        let (client, session, lock) = (self.client, self.session, lock.clone());
        self.recorder.observe(at, Fact::ReleaseSent { client, session, lock, token });
    }

    pub(crate) fn hold_lost(&self, at: u64, lock: &Arc<str>, token: u64) {
        let (client, session, lock) = (self.client, self.session, lock.clone());
        self.recorder.observe(at, Fact::HoldLost { client, session, lock, token });
    }

    pub(crate) fn session_ended(&self, end: SessionEnd) {
        self.recorder.observe(now(), Fact::SessionEnded { session: self.session, end });
    }

    /// Whether it is time to look again how the session stands.
    pub(crate) fn wants_look(&self, at: u64) -> bool {
        at.saturating_sub(self.looked) > nanos(self.ttl) / 4
    }

    /// The session stands well: a keepalive sent less than half a TTL ago is acknowledged by every group. More precisely
    /// the client does not tell, so that this claims no more.
    pub(crate) fn is_safe(&mut self, at: u64) {
        self.looked = at;
        let sent = at.saturating_sub(nanos(self.ttl) / 2);
        self.recorder.observe(at, Fact::KeepaliveAcknowledged { session: self.session, sent });
    }
}
