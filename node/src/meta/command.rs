//! What the meta group can be asked, and what it answers. Encodings are frozen by golden tests: a change is a new
//! variant at the end.

use holdfast_locktable::{codec::Digest, ids::MoveNumber};
use holdfast_partitioner::{MapEpoch, PartitionMap, planner::PolicyEdit};
use serde::{Deserialize, Serialize};

use super::{
    changes::NewChange,
    placement::{PlaceCommand, PlaceRefusal, Placed},
    roster::{RosterCommand, RosterDone, RosterRefusal},
};
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
    /// Begins to carry out a change of the map; there is one at a time.
    BeginChange(NewChange),
    /// Gives the present step of a change a move number, where it has none.
    Reserve {
        /// The change.
        change: u64,
        /// The step, from 0.
        step: u32,
    },
    /// The range of a move belongs to its destination from here on.
    Decide {
        /// The move.
        move_number: MoveNumber,
        /// Fingerprint of the complete import.
        digest: Digest,
    },
    /// The range of a move stays with its source.
    GiveUp {
        /// The move.
        move_number: MoveNumber,
        /// Why.
        why: String,
    },
    /// All groups that took part in a move know how it ended.
    FinishMove {
        /// The move.
        move_number: MoveNumber,
        /// Milliseconds since 1970; for display only.
        at_ms: u64,
    },
    /// Does a step of a change that moves nothing.
    TakeStep {
        /// The change.
        change: u64,
        /// The step, from 0.
        step: u32,
        /// Milliseconds since 1970; for display only.
        at_ms: u64,
    },
    /// Stops a change where it is; what it has done stays.
    StopChange {
        /// The change.
        change: u64,
        /// Why.
        why: String,
        /// Milliseconds since 1970; for display only.
        at_ms: u64,
    },
    /// Changes when the planner acts.
    EditPolicy(PolicyEdit),
    /// Changes which members carry which groups.
    Place(PlaceCommand),
    /// Changes who the members are.
    Roster(RosterCommand),
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
    /// The change is under way.
    ChangeBegun {
        /// Its number.
        change: u64,
    },
    /// The present step has a move.
    Reserved {
        /// Its number.
        move_number: MoveNumber,
    },
    /// Done, now or before.
    Done,
    /// The placement is set.
    Placed(Placed),
    /// The roster is set.
    Roster(RosterDone),
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
    /// There is one change at a time.
    #[error("change {change} of the partition map is under way; wait for it, or stop it")]
    ChangeUnderWay {
        /// Its number.
        change: u64,
    },
    /// The map has changed since the change was planned.
    #[error("the change was planned for map epoch {planned}, the map has epoch {found}; plan it again")]
    OtherMap {
        /// The epoch that it was planned for.
        planned: MapEpoch,
        /// The epoch of the map.
        found: MapEpoch,
    },
    /// There is no map yet.
    #[error("the cluster has no partition map yet; try again in a moment")]
    NoMap,
    /// The change is over, or never was.
    #[error("change {change} is not under way")]
    NoSuchChange {
        /// The number asked for.
        change: u64,
    },
    /// The change is at another step, or at another point of it.
    #[error("the change is at another point")]
    OtherStep,
    /// The move was given up before.
    #[error("the move was given up: {why}")]
    MoveGivenUp {
        /// Why.
        why: String,
    },
    /// The move was decided before.
    #[error("the move was decided, the map has epoch {epoch} since")]
    MoveDecided {
        /// The map's epoch with it.
        epoch: MapEpoch,
    },
    /// A step does not apply to the map.
    #[error("{why}")]
    StepRefused {
        /// Why.
        why: String,
    },
    /// The policy of the planner would contradict itself.
    #[error("{why}")]
    BadPolicy {
        /// How.
        why: String,
    },
    /// Of the placement.
    #[error(transparent)]
    Place(PlaceRefusal),
    /// Of the roster.
    #[error(transparent)]
    Roster(RosterRefusal),
}

impl MetaRejection {
    /// Whether what was asked for is not valid; otherwise it does not go together with what is.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::BadPolicy { .. } => true,
            Self::MapExists { .. }
            | Self::ChangeUnderWay { .. }
            | Self::OtherMap { .. }
            | Self::NoMap
            | Self::NoSuchChange { .. }
            | Self::OtherStep
            | Self::MoveGivenUp { .. }
            | Self::MoveDecided { .. }
            | Self::StepRefused { .. }
            | Self::Place(_)
            | Self::Roster(_) => false,
        }
    }
}
