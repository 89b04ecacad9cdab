//! The types that openraft is instantiated with, named once.
//!
//! Commands travel as opaque bytes: they are encoded once by whoever proposes them and decoded once by each apply, so
//! that neither the log store nor the transport knows what is inside.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One encoded command of a group, as it stands in the Raft log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload(pub Bytes);

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
    /// The entry carried no command (a blank or a membership entry).
    Nothing,
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
