//! What the meta group can be asked, and what it answers. Encodings are frozen by golden tests: a change is a new
//! variant at the end.

use holdfast_partitioner::{MapEpoch, PartitionMap};
use serde::{Deserialize, Serialize};

use crate::raft::types::MemberId;

/// What can be asked of the meta group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MetaCommand {
    /// Sets the first partition map. Refused ([`MetaRejection::MapExists`]) once there is one.
    InitMap {
        /// The map.
        map: PartitionMap,
    },
    /// Adds a line to the audit log.
    Record(AuditRecord),
    /// Says where a member can be reached; replaces what was said before.
    SetMember(MemberRecord),
}

/// One act of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Milliseconds since 1970 by the recording leader's wall clock; for display only.
    pub at_ms: u64,
    /// Who.
    pub actor: String,
    /// What was done: `force_release`, `end_session`, `take_snapshot`, ….
    pub action: String,
    /// On what.
    pub target: String,
    /// Why.
    pub reason: String,
    /// `requested`, `ok` or an error code.
    pub outcome: String,
}

/// Where a member can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// The member.
    pub id: MemberId,
    /// Base URL of its HTTP listener.
    pub http: String,
    /// URL of its gRPC listener.
    pub grpc: String,
    /// Address (`host:port`) of its peer listener.
    pub peer: String,
}

/// A command that did what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MetaOutcome {
    /// The map is in force.
    MapSet {
        /// Its epoch.
        epoch: MapEpoch,
    },
    /// The line is in the audit log.
    Recorded {
        /// Its number, from 1.
        index: u64,
    },
    /// The member's addresses are known.
    MemberSet {
        /// Whether they differ from what was known before.
        changed: bool,
    },
}

/// A command that was refused; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum MetaRejection {
    /// There is a partition map already.
    #[error("the cluster has a partition map already (epoch {epoch}); change it by a split, move or merge")]
    MapExists {
        /// Its epoch.
        epoch: MapEpoch,
    },
}
