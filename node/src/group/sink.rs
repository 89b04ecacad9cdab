//! What applying tells the actors of a group: facts to the lease manager, events and facts to the watch fan-out.
//!
//! Fire and forget, in log order. Applying never waits for an actor.

use std::{sync::Arc, time::Duration};

use actix::Addr;
use holdfast_locktable::{
    event::{Change, Event, Fact},
    mutant,
    outcome::Applied,
    table::Position,
};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{ends::EndToTell, figures::GroupMetrics};
use crate::{
    clock::Clock,
    lease::{LeaseManager, SessionFacts},
    raft::sink::ApplySink,
    watch::{Audiences, Changes, Restored, WatchFanout},
};

/// Where a lock group's applied entries go.
pub struct GroupSink {
    group: GroupId,
    lease: Addr<LeaseManager>,
    fanout: Addr<WatchFanout>,
    metrics: GroupMetrics,
    clock: Clock,
    ends: Mutex<Option<mpsc::UnboundedSender<EndToTell>>>,
    audiences: Audiences,
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
        audiences: Audiences,
    ) -> Self {
        Self { group, lease, fanout, metrics, clock, ends: Mutex::new(None), audiences }
    }

    /// While this member leads: where ends go that other groups must learn.
    pub fn tell_ends(&self, queue: Option<mpsc::UnboundedSender<EndToTell>>) {
        *self.ends.lock() = queue;
    }

    /// Leader-scoped metrics count once, at the leader.
    fn leads(&self) -> bool {
        self.ends.lock().is_some()
    }

    /// One entry that ends a hold and grants is a hand-over: proposed at the stamp of its events, granted now.
    fn measure_hand_overs(&self, events: &[Event]) {
        let ends_hold = |event: &Event| matches!(event.change, Change::Delete { held: true, .. });
        let mut held_before = false;
        for event in events {
            held_before |= ends_hold(event);
            if held_before && matches!(event.change, Change::Grant { .. }) {
                let took_ms = self.clock.wall_ms().saturating_sub(event.at_ms);
                self.metrics.handed_over(Duration::from_millis(took_ms));
            }
        }
    }

    fn sort(&self, facts: Vec<Fact>, leads: bool, sessions: &mut Vec<Fact>, changes: &mut Vec<Fact>) {
        for fact in facts {
            match fact {
                Fact::SessionOpened { .. }
                | Fact::SessionArrived { .. }
                | Fact::RenewalStopped { .. }
                | Fact::EndRemembered { .. }
                | Fact::Marked { .. }
                | Fact::Cleared { .. } => sessions.push(fact),
                Fact::SessionEnded { reason, .. } => {
                    if leads {
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
                Fact::RangeLeft { .. } => changes.push(fact),
                // Only a leader's calls wait here; the next leader reads the waits from its table.
                Fact::Waiting { .. } | Fact::WaitEnded { .. } | Fact::ClaimChanged { .. } if leads => {
                    changes.push(fact);
                }
                Fact::HoldEnded { ref name, reason, granted_at_ms, .. } => {
                    if leads {
                        let held_ms = self.clock.wall_ms().saturating_sub(granted_at_ms);
                        self.metrics.hold_ended(name, reason, Duration::from_millis(held_ms));
                    }
                    if !self.audiences.followers.is_empty() {
                        changes.push(fact);
                    }
                }
                Fact::Waiting { .. } | Fact::WaitEnded { .. } | Fact::ClaimChanged { .. } => {}
            }
        }
    }
}

impl ApplySink<Applied> for GroupSink {
    fn applied(&self, batch: Vec<(Position, Applied)>) {
        let (mut sessions, mut changes, mut events) = (Vec::new(), Vec::new(), Vec::new());
        // Waking an actor for nothing costs more than the rest of this.
        let (leads, watched) = (self.leads(), !self.audiences.watchers.is_empty());
        for (_, applied) in batch {
            if leads {
                self.measure_hand_overs(&applied.events);
            }
            self.sort(applied.facts, leads, &mut sessions, &mut changes);
            if watched {
                events.extend(applied.events.into_iter().map(Arc::new));
            }
        }
        if mutant!("event-before-its-predecessor")
            && let [.., before, after] = events.as_mut_slice()
        {
            std::mem::swap(before, after);
        }
        if !sessions.is_empty() {
            self.lease.do_send(SessionFacts(sessions));
        }
        if !changes.is_empty() || !events.is_empty() {
            self.fanout.do_send(Changes { events, facts: changes });
        }
    }

    fn restored(&self) {
        self.fanout.do_send(Restored);
    }
}
