//! What applying tells the actors of a group: facts to the lease manager, events and facts to the watch fan-out.
//!
//! Fire and forget, in log order. Applying never waits for an actor.

use std::{sync::Arc, time::Duration};

use actix::Addr;
use holdfast_locktable::{event::Fact, outcome::Applied, table::Position};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{ends::EndToTell, figures::GroupMetrics};
use crate::{
    clock::Clock,
    lease::{LeaseManager, SessionFacts},
    raft::sink::ApplySink,
    watch::{Changes, Restored, WatchFanout},
};

/// Where a lock group's applied entries go.
pub struct GroupSink {
    group: GroupId,
    lease: Addr<LeaseManager>,
    fanout: Addr<WatchFanout>,
    metrics: GroupMetrics,
    clock: Clock,
    ends: Mutex<Option<mpsc::UnboundedSender<EndToTell>>>,
}

impl std::fmt::Debug for GroupSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GroupSink(group {})", self.group)
    }
}

impl GroupSink {
    /// A sink for a group.
    pub fn new(
        group: GroupId,
        lease: Addr<LeaseManager>,
        fanout: Addr<WatchFanout>,
        metrics: GroupMetrics,
        clock: Clock,
    ) -> Self {
        Self { group, lease, fanout, metrics, clock, ends: Mutex::new(None) }
    }

    /// While this member leads: where ends go that other groups must learn.
    pub fn tell_ends(&self, queue: Option<mpsc::UnboundedSender<EndToTell>>) {
        *self.ends.lock() = queue;
    }

    /// Leader-scoped metrics count once, at the leader.
    fn leads(&self) -> bool {
        self.ends.lock().is_some()
    }

    fn sort(&self, facts: Vec<Fact>, sessions: &mut Vec<Fact>, waits: &mut Vec<Fact>) {
        for fact in facts {
            match fact {
                Fact::SessionOpened { .. }
                | Fact::RenewalStopped { .. }
                | Fact::EndRemembered { .. }
                | Fact::Marked { .. }
                | Fact::Cleared { .. } => sessions.push(fact),
                Fact::SessionEnded { reason, .. } => {
                    if self.leads() {
                        self.metrics.session_ended(reason);
                    }
                    sessions.push(fact);
                }
                Fact::EndToTell { session, epoch, reason, group } => {
                    if let Some(queue) = self.ends.lock().as_ref() {
                        // Closed with leadership; the next leader tells it.
                        let _ = queue.send(EndToTell { session, epoch, reason, group });
                    }
                }
                Fact::EndTold { .. } => {}
                Fact::Waiting { .. } | Fact::WaitEnded { .. } => waits.push(fact),
                Fact::HoldEnded { name, reason, granted_at_ms, .. } if self.leads() => {
                    let held_ms = self.clock.wall_ms().saturating_sub(granted_at_ms);
                    self.metrics.hold_ended(&name, reason, Duration::from_millis(held_ms));
                }
                Fact::HoldEnded { .. } => {}
            }
        }
    }
}

impl ApplySink<Applied> for GroupSink {
    fn applied(&self, batch: Vec<(Position, Applied)>) {
        let (mut sessions, mut waits, mut events) = (Vec::new(), Vec::new(), Vec::new());
        for (_, applied) in batch {
            self.sort(applied.facts, &mut sessions, &mut waits);
            events.extend(applied.events.into_iter().map(Arc::new));
        }
        if !sessions.is_empty() {
            self.lease.do_send(SessionFacts(sessions));
        }
        if !waits.is_empty() || !events.is_empty() {
            self.fanout.do_send(Changes { events, facts: waits });
        }
    }

    fn restored(&self) {
        self.fanout.do_send(Restored);
    }
}
