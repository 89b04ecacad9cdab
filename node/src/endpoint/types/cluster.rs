//! The cluster as operators see it: its members and groups.

use holdfast_locktable::ids::Revision;
use holdfast_partitioner::{GroupId, MapEpoch};
use serde::{Deserialize, Serialize};

use crate::{config::MemberEntry, raft::types::MemberId};

/// One member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberView {
    /// Its id.
    pub id: MemberId,
    /// Base URL of its HTTP listener.
    pub http: String,
    /// URL of its gRPC listener.
    pub grpc: String,
    /// Address of its peer listener.
    pub peer: String,
    /// Whether it is the one that answers.
    pub this: bool,
    /// Whether the answering member heard from it within the last election timeout.
    pub reachable: bool,
    /// Groups it leads, as the answering member knows.
    pub leads: Vec<GroupId>,
    /// Lock groups it carries.
    pub carries: Vec<GroupId>,
    /// Whether it is drained: it is to carry and to lead no lock group.
    pub drained: bool,
}

/// One Raft group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupView {
    /// Its number; 0 is the meta group.
    pub group: GroupId,
    /// Its leader, as the answering member knows.
    pub leader: Option<MemberId>,
    /// Its term.
    pub term: u64,
    /// Last index in the answering member's log.
    pub last_log_index: u64,
    /// Last committed index that the answering member knows.
    pub committed_index: u64,
    /// Last applied index of the answering member.
    pub applied_index: u64,
    /// The group's revision on the answering member; 0 for the meta group.
    pub revision: Revision,
    /// The members that are to carry it; none for the meta group.
    pub replicas: Vec<MemberId>,
    /// Its voters; with the last index they have stored, where the answering member leads.
    pub voters: Vec<VoterView>,
    /// Members that are sent its log and do not vote.
    pub learners: Vec<VoterView>,
    /// Whether one set of voters is just replacing another.
    pub joint: bool,
    /// Index of the entry that set its members.
    pub members_index: u64,
    /// Locks held.
    pub held: u64,
    /// Waiters.
    pub waiting: u64,
    /// Sessions known.
    pub sessions: u64,
}

impl GroupView {
    /// A group that nobody answered for.
    pub const fn unreachable(group: GroupId) -> Self {
        Self {
            group,
            leader: None,
            term: 0,
            last_log_index: 0,
            committed_index: 0,
            applied_index: 0,
            revision: Revision(0),
            replicas: Vec::new(),
            voters: Vec::new(),
            learners: Vec::new(),
            joint: false,
            members_index: 0,
            held: 0,
            waiting: 0,
            sessions: 0,
        }
    }
}

/// A change of the members, under way or over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChangeView {
    /// Its number, from 1.
    pub number: u64,
    /// What it is, in words.
    pub what: String,
    /// The member that comes.
    pub comes: Option<MemberEntry>,
    /// The member that goes.
    pub goes: Option<MemberId>,
    /// Who asked for it.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// When it began, in milliseconds since 1970.
    pub since_ms: u64,
    /// How far it is, in words, while it is under way.
    pub doing: Option<String>,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// Why it was stopped, where it was.
    pub stopped: Option<String>,
}

/// The changes of the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChangesView {
    /// The one under way.
    pub under_way: Option<MemberChangeView>,
    /// Those that are over, oldest first.
    pub past: Vec<MemberChangeView>,
}

/// One group, and what is going on with it and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupDetail {
    /// Its figures.
    pub view: GroupView,
    /// Members that carry it and are to carry it no more.
    pub leaving: Vec<MemberId>,
    /// What is under way, in words.
    pub under_way: Option<String>,
    /// Why.
    pub why: Option<String>,
    /// Entries per second, as the meta group's leader has measured it.
    pub entries_per_s: Option<f64>,
}

/// One voter or learner of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoterView {
    /// The member.
    pub member: MemberId,
    /// Last index it has stored on disk; known to the leader only.
    pub matched_index: Option<u64>,
}

/// What a member says of itself and its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// The cluster's name.
    pub cluster: String,
    /// The answering member.
    pub member: MemberId,
    /// Version of its program.
    pub version: String,
    /// Epoch of the partition map it knows.
    pub map_epoch: MapEpoch,
    /// Its groups.
    pub groups: Vec<GroupView>,
}
