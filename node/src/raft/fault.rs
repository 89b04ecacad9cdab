//! Why a group does not do what it was asked, other than agreeing on a command.

use holdfast_partitioner::GroupId;

use super::{timing::InvalidTiming, types::MemberId};

/// Why a group cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The times contradict each other.
    #[error(transparent)]
    Timing(#[from] InvalidTiming),
    /// Log or snapshot cannot be read, or do not fit each other.
    #[error("group {group} cannot start from its log and snapshot: {reason}")]
    Storage {
        /// The group.
        group: GroupId,
        /// What is wrong.
        reason: String,
    },
}

/// Why a group cannot be given its first voters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InitializeError {
    /// This member is not among them.
    #[error("member {member} cannot begin group {group} because it is not one of its voters")]
    NotAVoter {
        /// The group.
        group: GroupId,
        /// This member.
        member: MemberId,
    },
    /// The group has stopped on this member.
    #[error("the group has stopped on this member: {0}")]
    Stopped(String),
}

/// Why leadership was not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// This member has none to give.
    #[error("this member does not lead the group")]
    NotLeader {
        /// Who does, as far as this member knows.
        leader: Option<MemberId>,
    },
    /// The other one can have none.
    #[error("member {to} is not a voter of the group")]
    NotAVoter {
        /// The other one.
        to: MemberId,
    },
    /// The other one did not take over in time. Whoever wins the next election leads.
    #[error("member {to} did not take over in time")]
    TimedOut {
        /// The other one.
        to: MemberId,
    },
}

/// Why there is no new snapshot. The group goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It could not be stored.
    #[error("the snapshot of group {group} cannot be stored: {reason}")]
    Store {
        /// The group.
        group: GroupId,
        /// What failed.
        reason: String,
    },
    /// Nothing has been applied yet.
    #[error("group {group} has nothing to take a snapshot of yet")]
    Empty {
        /// The group.
        group: GroupId,
    },
    /// The group has stopped on this member.
    #[error("group {group} has stopped on this member")]
    Stopped {
        /// The group.
        group: GroupId,
    },
}
