//! One checker for a whole history: keeps the state per session, lock and object, and hands events to the checks.
//! Knows no thread and no clock.

use std::{collections::HashMap, sync::Arc};

use crate::{
    checks::{
        Context, LockCheck, calls::Calls, expiry, fence::Fence, ghosts::Ghosts, order::Order,
        overlap::Overlap, reclaim::Reclaim, tokens::Tokens,
    },
    event::{Event, Fact},
    sessions::Sessions,
    violation::Violation,
};

/// So many violations are kept with their events; more are only counted.
const KEPT: usize = 1_000;

/// How much time the service has where a promise leaves it some, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// I5: how long after a dead session's last keepalive + TTL its locks may still be held. Promised are 2 s, and half
    /// a TTL + 5 s more in runs in which leaders fall. Add what a grant takes to reach the next waiter.
    pub reclaim_slack: u64,
    /// I7: how long after giving up a waiter may still be seen in the queue. Promised are 2 s.
    pub ghost_grace: u64,
    /// Whether waiters must be granted in the order in which a look at the queue showed them. Not in runs that break
    /// connections: a client whose wait was given up meanwhile asks anew, and stands at the end of the line. Tokens prove
    /// the order of commits in any case.
    pub order: bool,
}

impl Default for Limits {
    /// As promised for a run without falling leaders, half a second for the way of a grant included.
    fn default() -> Self {
        Self { reclaim_slack: 2_500_000_000, ghost_grace: 2_000_000_000, order: true }
    }
}

/// The state of all checks of one lock.
#[derive(Debug, Default)]
struct Lock {
    calls: Calls,
    overlap: Overlap,
    tokens: Tokens,
    order: Order,
    reclaim: Reclaim,
    ghosts: Ghosts,
}

/// The checks of locks and fenced objects, without the sessions, which several of these may share.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    limits: Limits,
    locks: HashMap<Arc<str>, Lock>,
    fences: HashMap<Arc<str>, Fence>,
    found: Vec<Violation>,
    more: u64,
}

impl Judge {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes in an event of a session, and judges it.
    pub(crate) fn session(&mut self, event: &Event, sessions: &mut Sessions) {
        expiry::observe(event, sessions, &mut self.found);
        sessions.observe(event);
        self.bound();
    }

    /// Takes in an event of a lock or a fenced object, and judges it.
    pub(crate) fn observe(&mut self, event: &Event, sessions: &Sessions) {
        match &event.fact {
            Fact::SessionOpened { .. }
            | Fact::KeepaliveAcknowledged { .. }
            | Fact::SessionSilent { .. }
            | Fact::SessionEnded { .. } => {}
            Fact::FencedWrite { object, .. } => match self.fences.get_mut(object) {
                Some(fence) => fence.observe(event, &mut self.found),
                None => self.fences.entry(object.clone()).or_default().observe(event, &mut self.found),
            },
            Fact::AcquireSent { lock, .. }
            | Fact::CancelSent { lock, .. }
            | Fact::AcquireEnded { lock, .. }
            | Fact::ReleaseSent { lock, .. }
            | Fact::ReleaseEnded { lock, .. }
            | Fact::HoldLost { lock, .. }
            | Fact::QueueObserved { lock, .. } => {
                let state = match self.locks.get_mut(lock) {
                    Some(state) => state,
                    None => self.locks.entry(lock.clone()).or_default(),
                };
                state.observe(event, lock, sessions, &self.limits, &mut self.found);
            }
        }
        self.bound();
    }

    /// The run is over and drained.
    pub(crate) fn finish(&mut self, at: u64, sessions: &Sessions) {
        let mut names: Vec<Arc<str>> = self.locks.keys().cloned().collect();
        names.sort_unstable();
        for lock in names {
            if let Some(state) = self.locks.get_mut(&lock) {
                let context = Context { lock: &lock, sessions, calls: &state.calls, limits: &self.limits };
                state.reclaim.finish(at, &context, &mut self.found);
                state.calls.finish(at, &lock, sessions, &mut self.found);
            }
            self.bound();
        }
    }

    fn bound(&mut self) {
        if self.found.len() > KEPT {
            self.more += (self.found.len() - KEPT) as u64;
            self.found.truncate(KEPT);
        }
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.found
    }

    pub(crate) fn violation_count(&self) -> u64 {
        self.found.len() as u64 + self.more
    }
}

/// Judges a history while it happens.
///
/// Feed it events in the order of their times. Where several threads feed it, small inversions between events of
/// different clients are harmless, as long as each client records before it acts: an [`Fact::AcquireSent`] or
/// [`Fact::ReleaseSent`] before sending.
#[derive(Debug, Default)]
pub struct Checker {
    sessions: Sessions,
    judge: Judge,
}

impl Checker {
    /// A checker of an empty history.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { sessions: Sessions::default(), judge: Judge::new(limits) }
    }

    /// Takes in one event.
    pub fn observe(&mut self, event: &Event) {
        if event.is_of_session() {
            self.judge.session(event, &mut self.sessions);
        } else {
            self.judge.observe(event, &self.sessions);
        }
    }

    /// The run is over and drained: what has not ended by now never will.
    pub fn finish(&mut self, at: u64) {
        self.judge.finish(at, &self.sessions);
    }

    /// What was found so far, at most the first thousand.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        self.judge.violations()
    }

    /// How many violations were found so far, those that were not kept included.
    #[must_use]
    pub fn violation_count(&self) -> u64 {
        self.judge.violation_count()
    }
}

impl Lock {
    fn observe(
        &mut self,
        event: &Event,
        lock: &Arc<str>,
        sessions: &Sessions,
        limits: &Limits,
        found: &mut Vec<Violation>,
    ) {
        self.calls.begin(event, found);
        self.calls.give_up(event);
        let context = Context { lock, sessions, calls: &self.calls, limits };
        self.overlap.observe(event, &context, found);
        self.tokens.observe(event, &context, found);
        if limits.order {
            self.order.observe(event, &context, found);
        }
        self.reclaim.observe(event, &context, found);
        self.ghosts.observe(event, &context, found);
        self.calls.end(event, found);
    }
}
