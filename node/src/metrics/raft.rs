//! Elections, proposals, the log and apply: what openraft does not count itself.

use std::time::Duration;

use holdfast_partitioner::GroupId;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};

use super::{buckets, labels};

/// How an election that this member started ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionResult {
    /// This member leads.
    Won,
    /// Another one does.
    Lost,
    /// Nobody got a quorum in time.
    Timeout,
}

/// Why a group has another leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderChange {
    /// The old one went silent.
    Election,
    /// It handed over on request.
    Transfer,
}

/// Why a proposal failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalFailure {
    /// This member did not lead the group, or lost it meanwhile.
    NotLeader,
    /// No quorum answered in time.
    Timeout,
    /// The queue of proposals was full.
    Overloaded,
    /// The log or the state machine failed.
    Internal,
}

/// Instruments of Raft.
#[derive(Clone, Debug)]
pub struct RaftMetrics {
    elections: Counter<u64>,
    leader_changes: Counter<u64>,
    leaderless: Histogram<f64>,
    proposal: Histogram<f64>,
    proposal_failures: Counter<u64>,
    fsync: Histogram<f64>,
    append: Histogram<f64>,
    apply: Histogram<f64>,
    confirm: Histogram<f64>,
}

impl RaftMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            elections: counter(
                meter,
                "holdfast.raft.elections",
                "{election}",
                "Elections this member started, by result: won, lost, timeout",
            ),
            leader_changes: counter(
                meter,
                "holdfast.raft.leader_changes",
                "{change}",
                "Changes of a group's leader as this member saw them, by cause: election, transfer",
            ),
            leaderless: histogram(
                meter,
                "holdfast.raft.leaderless.duration",
                "Time a group was without a leader, as this member saw it",
                &buckets::MINUTES,
            ),
            proposal: histogram(
                meter,
                "holdfast.raft.proposal.duration",
                "Time from a proposal at the leader to the apply of its entry, by outcome",
                &buckets::COMMIT,
            ),
            proposal_failures: counter(
                meter,
                "holdfast.raft.proposal_failures",
                "{proposal}",
                "Proposals that failed, by reason: not_leader, timeout, overloaded, internal",
            ),
            fsync: histogram(
                meter,
                "holdfast.raft.log.fsync.duration",
                "Time of one commit of the log file with its fsync, one for all groups of a batch",
                &buckets::DISK,
            ),
            append: histogram(
                meter,
                "holdfast.raft.log.append.duration",
                "Time from the arrival of an append at the log to its callback, the fsync included",
                &buckets::DISK,
            ),
            apply: histogram(
                meter,
                "holdfast.raft.apply.duration",
                "Time to apply one batch of committed entries",
                &buckets::MEMORY,
            ),
            confirm: histogram(
                meter,
                "holdfast.raft.confirm.duration",
                "Time of one proof of leadership by a quorum, for all keepalives and reads that wait for it, by outcome",
                &buckets::COMMIT,
            ),
        }
    }

    /// An election that this member started has ended.
    pub fn election_ended(&self, group: GroupId, result: ElectionResult) {
        let result = match result {
            ElectionResult::Won => "won",
            ElectionResult::Lost => "lost",
            ElectionResult::Timeout => "timeout",
        };
        self.elections.add(1, &[labels::group(group), KeyValue::new("result", result)]);
    }

    /// This member saw a group change its leader.
    pub fn leader_changed(&self, group: GroupId, cause: LeaderChange) {
        let cause = match cause {
            LeaderChange::Election => "election",
            LeaderChange::Transfer => "transfer",
        };
        self.leader_changes.add(1, &[labels::group(group), KeyValue::new("cause", cause)]);
    }

    /// A group has a leader again, after so long without.
    pub fn leader_found(&self, group: GroupId, leaderless: Duration) {
        self.leaderless.record(leaderless.as_secs_f64(), &[labels::group(group)]);
    }

    /// A proposal was applied, or failed.
    pub fn proposal_ended(&self, group: GroupId, result: Result<(), ProposalFailure>, took: Duration) {
        self.proposal.record(took.as_secs_f64(), &[labels::group(group), labels::outcome(result.is_ok())]);
        let reason = match result {
            Ok(()) => return,
            Err(ProposalFailure::NotLeader) => "not_leader",
            Err(ProposalFailure::Timeout) => "timeout",
            Err(ProposalFailure::Overloaded) => "overloaded",
            Err(ProposalFailure::Internal) => "internal",
        };
        self.proposal_failures.add(1, &[labels::group(group), KeyValue::new("reason", reason)]);
    }

    /// A quorum has confirmed that this member leads, or has not.
    pub fn confirmed(&self, group: GroupId, success: bool, took: Duration) {
        self.confirm.record(took.as_secs_f64(), &[labels::group(group), labels::outcome(success)]);
    }

    /// The log file was committed and synced.
    pub fn log_synced(&self, took: Duration) {
        self.fsync.record(took.as_secs_f64(), &[]);
    }

    /// An append's callback fired.
    pub fn log_appended(&self, took: Duration) {
        self.append.record(took.as_secs_f64(), &[]);
    }

    /// A batch of entries was applied.
    pub fn applied(&self, group: GroupId, took: Duration) {
        self.apply.record(took.as_secs_f64(), &[labels::group(group)]);
    }
}

fn counter(meter: &Meter, name: &'static str, unit: &'static str, what: &'static str) -> Counter<u64> {
    meter.u64_counter(name).with_unit(unit).with_description(what).build()
}

fn histogram(meter: &Meter, name: &'static str, what: &'static str, bounds: &[f64]) -> Histogram<f64> {
    meter.f64_histogram(name).with_unit("s").with_description(what).with_boundaries(bounds.to_vec()).build()
}
