//! The types that openraft is instantiated with, named once.
//!
//! Commands travel as opaque bytes: they are encoded once by whoever proposes them and decoded once by each apply, so
//! that neither the log store nor the transport knows what is inside.

use std::fmt;

use bytes::Bytes;
use holdfast_locktable::{
    ids::Revision,
    outcome::{Outcome, Rejection},
};
use serde::{Deserialize, Serialize};

use crate::meta::command::{MetaOutcome, MetaRejection};

/// One encoded command of a group, as it stands in the Raft log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload(pub Bytes);

impl Payload {
    /// No command: an entry whose only use is that it was agreed on.
    pub const NOTHING: Self = Self(Bytes::new());
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// What applying one entry answers to the proposer on the same member; it never travels between members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The entry carried no command (a blank, an empty or a membership entry).
    Nothing,
    /// A command of a lock group was applied.
    Lock {
        /// What it did, or why it was refused.
        result: Result<Outcome, Rejection>,
        /// The group's revision afterwards.
        revision: Revision,
    },
    /// A command of the meta group was applied: what it did, or why it was refused.
    Meta(Result<MetaOutcome, MetaRejection>),
}

/// Number of a cluster member; never reused for another disk.
pub type MemberId = u64;

openraft::declare_raft_types!(
    /// The openraft configuration of every group of a member.
    pub TypeConfig:
        D = Payload,
        R = Reply,
        NodeId = MemberId,
        Node = openraft::BasicNode,
);

/// One entry of a group's Raft log.
pub type Entry = <TypeConfig as openraft::RaftTypeConfig>::Entry;
/// A vote as it is stored and sent.
pub type Vote = openraft::type_config::alias::VoteOf<TypeConfig>;
/// Position of an entry: leader id (term, member) and index.
pub type LogId = openraft::type_config::alias::LogIdOf<TypeConfig>;
/// Who led when an entry was appended: term and member.
pub type LeaderId = openraft::type_config::alias::CommittedLeaderIdOf<TypeConfig>;
/// Members of a group, with the log position that set them.
pub type StoredMembership = openraft::type_config::alias::StoredMembershipOf<TypeConfig>;
/// What a snapshot covers: the last log position inside, and the members.
pub type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<TypeConfig>;

/// A leader's append or heartbeat.
pub type AppendRequest = openraft::raft::AppendEntriesRequest<TypeConfig>;
/// The answer to one append: up to where the log matches and is on disk, or why not.
pub type AppendAnswer = openraft::raft::StreamAppendResult<TypeConfig>;
/// A candidate's request, real or as a pre-vote.
pub type VoteRequest = openraft::raft::VoteRequest<TypeConfig>;
/// The answer to a vote request.
pub type VoteResponse = openraft::raft::VoteResponse<TypeConfig>;
/// A leader's request that another member takes over.
pub type TransferRequest = openraft::raft::TransferLeaderRequest<TypeConfig>;
/// The answer to it.
pub type TransferResponse = openraft::raft::TransferLeaderResponse<TypeConfig>;
/// The answer to a snapshot.
pub type SnapshotResponse = openraft::raft::SnapshotResponse<TypeConfig>;
