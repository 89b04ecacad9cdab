//! What one group measures: events into instruments, and the figures of its gauges.
//!
//! Knows which prefix a name counts under. Does not know exporters.

use std::{sync::Arc, time::Duration};

use holdfast_locktable::{
    command::SessionEndReason,
    event::Removal,
    name::{Name, NameKind},
    outcome::Rejection,
    view::QueueView,
};
use holdfast_partitioner::{GroupId, PartitionMap};
use tokio::sync::watch;

use super::{
    Group,
    call::{GroupAnswer, GroupResult},
    load::LoadMeter,
    proposer::GroupError,
};
use crate::{
    metrics::{
        Instruments,
        figures::{GroupFigures, LeaderFigures, PrefixFigures, ReplicaRole},
        lock::WaitOutcome,
        raft::ProposalFailure,
        service::Refusal,
    },
    raft::status::GroupStatus,
};

/// The instruments of one group. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GroupMetrics {
    group: GroupId,
    instruments: Instruments,
    map: watch::Receiver<Option<Arc<PartitionMap>>>,
    load: LoadMeter,
}

impl GroupMetrics {
    /// Instruments for a group; the map says which prefix a name counts under.
    pub fn new(
        group: GroupId,
        instruments: Instruments,
        map: watch::Receiver<Option<Arc<PartitionMap>>>,
    ) -> Self {
        let load = LoadMeter::new(group, map.clone());
        Self { group, instruments, map, load }
    }

    /// What its names cost.
    pub(super) const fn load(&self) -> &LoadMeter {
        &self.load
    }

    fn prefix_of(&self, name: &Name) -> String {
        let map = self.map.borrow();
        let rule = map.as_ref().and_then(|map| map.rule_of(name.internal()));
        rule.map(|(prefix, _)| prefix.to_owned()).unwrap_or_default()
    }

    /// A proposal ended, to change this name or none.
    pub(super) fn proposal(&self, name: Option<&Name>, took: Duration, failed: Option<&GroupError>) {
        if matches!(failed, None | Some(GroupError::Rejected(_))) {
            self.load.count(name, took);
        }
        let result = match failed {
            None | Some(GroupError::Rejected(_)) => Ok(()),
            Some(GroupError::NotLeader { .. } | GroupError::HomeUnavailable { .. }) => {
                Err(ProposalFailure::NotLeader)
            }
            Some(GroupError::Overloaded) => {
                self.instruments.service.refused(Refusal::QueueFull);
                Err(ProposalFailure::Overloaded)
            }
            // Verbs of the meta group, which proposes by itself, answer the last two.
            Some(
                GroupError::Unknown
                | GroupError::Fatal(_)
                | GroupError::Refused { .. }
                | GroupError::Conflict { .. },
            ) => Err(ProposalFailure::Timeout),
        };
        self.instruments.raft.proposal_ended(self.group, result, took);
    }

    /// An acquire ended.
    pub(super) fn acquired(&self, name: &Name, took: Duration, result: &GroupResult) {
        let outcome = match result {
            Ok(GroupAnswer::Granted { .. }) => WaitOutcome::Acquired,
            Ok(GroupAnswer::NotGranted(Removal::TimedOut)) => WaitOutcome::Timeout,
            Ok(GroupAnswer::NotGranted(Removal::SessionEnded(_)))
            | Err(GroupError::Rejected(Rejection::SessionLost { .. })) => WaitOutcome::SessionLost,
            Ok(_) => WaitOutcome::Cancelled,
            Err(GroupError::Rejected(_)) => WaitOutcome::Refused,
            // The next leader measures the rest.
            Err(_) => return,
        };
        self.instruments.lock.wait_ended(self.group, &self.prefix_of(name), outcome, took);
    }

    /// New work was refused, because what was taken before waits for too long.
    pub(super) fn shed(&self) {
        self.instruments.service.refused(Refusal::Overload);
    }

    /// A waiter came into a queue behind so many.
    pub(super) fn queued(&self, ahead: u32) {
        self.instruments.lock.queued(self.group, ahead);
    }

    /// A hold ended, so long after it was granted.
    pub(super) fn hold_ended(&self, name: &Name, reason: Removal, held: Duration) {
        self.instruments.lock.hold_ended(self.group, &self.prefix_of(name), reason, held);
    }

    /// The end of a hold granted the lock to the next waiter, so long after it was proposed.
    pub(super) fn handed_over(&self, took: Duration) {
        self.instruments.lock.handed_over(self.group, took);
    }

    /// A session was opened at its home.
    pub(super) fn session_opened(&self) {
        self.instruments.session.opened(self.group);
    }

    /// A session ended here.
    pub(super) fn session_ended(&self, reason: SessionEndReason) {
        self.instruments.session.ended(self.group, reason);
    }

    /// A batch of keepalives was answered.
    pub(super) fn keepalives(&self, took: Duration, renewed: bool) {
        self.instruments.session.keepalive_answered(self.group, renewed, took);
    }

    /// Sessions were found expired and the expiry is committed, so long after.
    pub(crate) fn expired(&self, delay: Duration) {
        self.instruments.session.expired_late(self.group, delay);
    }
}

impl Group {
    /// Figures of this group's replica for gauges.
    pub fn figures(&self) -> GroupFigures {
        let (status, leads) = (self.raft().status(), self.leads().is_some());
        replica_figures(self.id(), &status, leads, leads.then(|| self.leader_figures(&status)))
    }

    fn leader_figures(&self, status: &GroupStatus) -> LeaderFigures {
        let now = self.parts.clock.wall_ms();
        let (counts, prefixes) = self.locks(|table| {
            let kinds = [NameKind::Lock, NameKind::Election];
            let queues = kinds.into_iter().flat_map(|kind| table.queues("", kind, None, usize::MAX).0);
            (table.counts(), self.prefix_figures(queues, now))
        });
        let behind = |voter: &crate::raft::status::VoterStatus| {
            Some((voter.member, status.last_log.saturating_sub(voter.matched?)))
        };
        LeaderFigures {
            sessions: counts.sessions,
            contended: counts.contended,
            longest_queue: counts.longest_queue,
            quorum_ack_age: Duration::from_millis(status.quorum_ack_age_ms.unwrap_or_default()),
            prefixes,
            replication_lag: status.voters.iter().filter_map(behind).collect(),
        }
    }

    fn prefix_figures(&self, queues: impl Iterator<Item = QueueView>, now_ms: u64) -> Vec<PrefixFigures> {
        let mut figures = std::collections::BTreeMap::<String, PrefixFigures>::new();
        for queue in queues {
            let prefix = self.parts.metrics.prefix_of(&queue.name);
            let line =
                figures.entry(prefix.clone()).or_insert(PrefixFigures { prefix, ..PrefixFigures::default() });
            line.held += 1;
            line.waiting += queue.entries.len().saturating_sub(1) as u64;
            let age = |at_ms: u64| Duration::from_millis(now_ms.saturating_sub(at_ms));
            let hold = queue.entries.first().and_then(|entry| entry.granted_at_ms).map(age);
            let wait = queue.entries.get(1).map(|entry| age(entry.queued_at_ms));
            (line.oldest_hold, line.oldest_wait) = (line.oldest_hold.max(hold), line.oldest_wait.max(wait));
        }
        figures.into_values().collect()
    }
}

/// Figures of any group's replica.
pub fn replica_figures(
    group: GroupId,
    status: &GroupStatus,
    leads: bool,
    leader: Option<LeaderFigures>,
) -> GroupFigures {
    GroupFigures {
        group,
        role: if leads { ReplicaRole::Leader } else { ReplicaRole::Follower },
        has_leader: status.leader.is_some(),
        term: status.term.0,
        apply_lag: status.committed.saturating_sub(status.applied),
        proposals_pending: status.last_log.saturating_sub(status.committed),
        snapshot: None,
        leader,
    }
}
