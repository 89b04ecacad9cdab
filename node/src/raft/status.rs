//! Where a group stands on this member.

use holdfast_locktable::ids::Term;
use openraft::RaftMetrics;

use super::types::{LogId, MemberId, TypeConfig};

/// Where a group stands, as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// The leader, as far as this member knows.
    pub leader: Option<MemberId>,
    /// The newest term this member has seen.
    pub term: Term,
    /// Index of the last entry in the log; 0 while it is empty.
    pub last_log: u64,
    /// Index of the last entry known to be agreed on.
    pub committed: u64,
    /// Index of the last entry applied.
    pub applied: u64,
    /// Index of the last entry in the newest durable snapshot; `None` without one.
    pub snapshot: Option<u64>,
    /// Index of the last entry removed from the log.
    pub purged: Option<u64>,
    /// The voters by id; those of both configurations while one replaces the other.
    pub voters: Vec<VoterStatus>,
    /// Those that are only sent the log, by id.
    pub learners: Vec<VoterStatus>,
    /// Whether one set of voters is just replacing another.
    pub joint: bool,
    /// Index of the entry that set the members; 0 before there is one.
    pub members_since: u64,
    /// Milliseconds since a quorum last acknowledged this member as the leader; `None` where it does not lead.
    pub quorum_ack_age_ms: Option<u64>,
}

/// One voter of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoterStatus {
    /// The member.
    pub member: MemberId,
    /// Index of the last entry that it has on disk; known to the leader only.
    pub matched: Option<u64>,
}

impl GroupStatus {
    /// `applied` is the state's own word, which is ahead of openraft's.
    pub(crate) fn of(metrics: &RaftMetrics<TypeConfig>, applied: Option<LogId>) -> Self {
        let membership = metrics.membership_config.membership();
        let member = |member| VoterStatus {
            member,
            matched: metrics
                .replication
                .as_ref()
                .and_then(|progress| progress.get(&member).copied().flatten())
                .map(|id| id.index),
        };
        #[allow(deprecated, reason = "its successor knows no leader that is its own quorum")]
        let quorum_ack_age_ms = metrics.millis_since_quorum_ack;
        Self {
            leader: metrics.current_leader,
            term: Term(metrics.current_term),
            last_log: metrics.last_log_index.unwrap_or(0),
            committed: metrics.local_committed.map_or(0, |id| id.index),
            applied: applied.map_or(0, |id| id.index),
            snapshot: metrics.snapshot.map(|id| id.index),
            purged: metrics.purged.map(|id| id.index),
            voters: membership.voter_ids().map(member).collect(),
            learners: membership.learner_ids().map(member).collect(),
            joint: membership.get_joint_config().len() > 1,
            members_since: metrics.membership_config.log_id().map_or(0, |id| id.index),
            quorum_ack_age_ms,
        }
    }
}
