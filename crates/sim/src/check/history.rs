//! I1 to I7 over what clients saw: the checks of `holdfast-history`, fed while the run goes on; and whether each lock is
//! linearizable, at its end.
//!
//! Also the one place that writes what clients saw into the run's trace.

use std::sync::Arc;

use holdfast_history::{Checker, Event, Fact, Limits, SessionId};
use parking_lot::Mutex;

use super::{Findings, linear::Linear};
use crate::{time::World, trace::Trace};

const NS_PER_MS: u64 = 1_000_000;

/// Takes down what clients saw. Clones write into the same history.
#[derive(Clone, Debug)]
pub struct Journal {
    world: World,
    trace: Trace,
    findings: Findings,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    checker: Checker,
    linear: Linear,
    found: usize,
    events: u64,
}

impl Journal {
    /// An empty history. `slack_ms` is how long after its TTL a dead session's locks may still be held.
    #[must_use]
    pub fn new(world: World, trace: Trace, findings: Findings, slack_ms: u64, calm: bool) -> Self {
        let limits = Limits { reclaim_slack: slack_ms * NS_PER_MS, order: calm, ..Limits::default() };
        let inner = Inner { checker: Checker::new(limits), linear: Linear::default(), found: 0, events: 0 };
        Self { world, trace, findings, inner: Arc::new(Mutex::new(inner)) }
    }

    /// The run's clock as histories have it.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.world.now() * NS_PER_MS
    }

    /// A client saw something, now.
    pub fn note(&self, fact: Fact) {
        let event = Event::new(self.now_ns(), fact);
        self.trace.line(self.world.now(), event.to_string());
        let mut inner = self.inner.lock();
        inner.events += 1;
        inner.checker.observe(&event);
        inner.linear.observe(&event);
        self.report(&mut inner);
    }

    /// A session may have held a lock from some moment until now although its client was told otherwise.
    pub fn perhaps(&self, lock: &str, session: SessionId, from_ns: u64) {
        let now = self.now_ns();
        self.inner.lock().linear.perhaps(lock, session, from_ns, now);
    }

    /// The run is over and drained.
    pub fn finish(&self) {
        let mut inner = self.inner.lock();
        inner.checker.finish(self.now_ns());
        self.report(&mut inner);
        for wrong in std::mem::take(&mut inner.linear).finish() {
            self.findings.add("linear", self.world.now(), wrong);
        }
    }

    /// How many events were taken down.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.inner.lock().events
    }

    fn report(&self, inner: &mut Inner) {
        let Inner { checker, found, .. } = inner;
        for violation in &checker.violations()[*found..] {
            self.findings.add(&violation.check.to_string(), self.world.now(), violation.to_string());
        }
        *found = checker.violations().len();
    }
}
