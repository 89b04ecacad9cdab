//! What a group's leader can be asked by any member, and what it answers. Encoded with postcard between members.

use bytes::Bytes;
use holdfast_locktable::{
    command::{CancelReason, EndReason, IfGranted, LearnedEnd, RequestId},
    event::Removal,
    ids::{Revision, SessionEpoch, SessionId, Token},
    metadata::Metadata,
    name::{Name, NameKind},
    outcome::CancelOutcome,
};
use holdfast_partitioner::{GroupId, MapEpoch};
use serde::{Deserialize, Serialize};

use super::{
    claims::{ClaimAnswer, ClaimCall},
    load::Measured,
    locate::Found,
    members::MembersCall,
    moves::{MoveAnswer, MoveCall},
    proposer::GroupError,
};
use crate::{
    endpoint::types::{AcquireRequest, LockDetail, LockView, SessionInfo, SnapshotView, cluster::GroupView},
    watch::{holds::Hold, told::AttemptId},
};

/// A verb for the leader of one lock group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum GroupCall {
    /// Open a session here, its home.
    OpenSession {
        /// Chosen by the endpoint.
        session: SessionId,
        /// In milliseconds.
        ttl_ms: u64,
        /// About the client.
        metadata: Metadata,
    },
    /// End a session here, its home.
    EndSession {
        /// Which.
        session: SessionId,
        /// Why.
        reason: EndReason,
    },
    /// Another group meets the session (at home).
    AttachSession {
        /// Which.
        session: SessionId,
        /// The group.
        group: GroupId,
    },
    /// The home of sessions tells of their ends (at an attached group).
    LearnEnds(Vec<LearnedEnd>),
    /// Acquire or campaign, on behalf of this call at an endpoint.
    Acquire(AttemptId, AcquireRequest),
    /// The client of an answered or dropped acquire is gone.
    Detached {
        /// The queue.
        name: Name,
        /// Who asked.
        session: SessionId,
        /// Under which request.
        request: RequestId,
        /// With which call; others of the same request go on.
        attempt: AttemptId,
    },
    /// Cancel a wait.
    Cancel {
        /// The queue.
        name: Name,
        /// Who waits.
        session: SessionId,
        /// Under which request.
        request: RequestId,
        /// Why.
        reason: CancelReason,
        /// What to do with a grant that came first.
        granted: IfGranted,
    },
    /// Release a hold.
    Release {
        /// The queue.
        name: Name,
        /// Who holds.
        session: SessionId,
        /// With which token.
        token: Token,
    },
    /// Force a hold to end.
    ForceRelease {
        /// The queue.
        name: Name,
        /// The token the operator saw.
        token: Token,
    },
    /// Replace an election's value.
    Proclaim {
        /// The queue.
        name: Name,
        /// Who leads.
        session: SessionId,
        /// With which token.
        token: Token,
        /// The new value.
        value: Bytes,
    },
    /// Read a page of locks.
    Locks {
        /// Locks or elections.
        kind: NameKind,
        /// Beginning of their names.
        prefix: String,
        /// The name before the page.
        after: Option<Name>,
        /// At most so many.
        limit: u32,
    },
    /// Read one lock.
    Lock(Name),
    /// Read all sessions whose home this is.
    Sessions,
    /// Read one session.
    Session(SessionId),
    /// Say of these holds whether they stand here.
    Locate(Vec<Hold>),
    /// Figures of the group.
    Status,
    /// Take a snapshot into the snapshot store.
    TakeSnapshot,
    /// A verb of a move of a range.
    Move(MoveCall),
    /// A verb of claims.
    Claim(ClaimCall),
    /// What the group's names cost.
    Load,
    /// A verb about who is in the group.
    Members(MembersCall),
}

/// What a verb answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum GroupAnswer {
    /// Done.
    Done,
    /// A session's epoch and TTL in milliseconds.
    Session {
        /// Its epoch.
        epoch: SessionEpoch,
        /// TTL in milliseconds.
        ttl_ms: u64,
        /// About its client.
        metadata: Metadata,
    },
    /// The caller holds.
    Granted {
        /// With this token.
        token: Token,
        /// The group's ownership epoch before the grant; none where it is not known.
        epoch: MapEpoch,
    },
    /// The wait ended without a grant.
    NotGranted(Removal),
    /// How a cancel found the request.
    Cancel(CancelOutcome),
    /// Whether this release ended the hold.
    Released(bool),
    /// Whose hold was forced to end.
    ForceReleased(SessionId),
    /// At which revision the value changed.
    Proclaimed(Revision),
    /// A page of locks, and whether there are more.
    Locks {
        /// In name order.
        locks: Vec<LockView>,
        /// Whether there are more.
        more: bool,
    },
    /// One lock.
    Lock(Box<LockDetail>),
    /// Sessions.
    Sessions(Vec<SessionInfo>),
    /// How holds were found, in order.
    Located {
        /// The group's ownership epoch at that moment.
        epoch: MapEpoch,
        /// One line per hold.
        holds: Vec<Found>,
    },
    /// Figures.
    Status(Box<GroupView>),
    /// A snapshot.
    Snapshot(Box<SnapshotView>),
    /// To a verb of a move.
    Move(MoveAnswer),
    /// To a verb of claims.
    Claim(ClaimAnswer),
    /// What names cost; nothing where the member knows no map yet.
    Load(Option<Box<Measured>>),
}

/// The result of a verb.
pub type GroupResult = Result<GroupAnswer, GroupError>;

impl GroupCall {
    /// The queue that the verb may change: its range must be here, and not on its way to another group.
    pub(super) fn changes(&self) -> Option<&Name> {
        match self {
            Self::Acquire(_, request) => Some(&request.name),
            // A client's going away too: its request is given up by the group that has the name, and by no other.
            Self::Detached { name, .. }
            | Self::Cancel { name, .. }
            | Self::Release { name, .. }
            | Self::ForceRelease { name, .. }
            | Self::Proclaim { name, .. } => Some(name),
            Self::OpenSession { .. }
            | Self::EndSession { .. }
            | Self::AttachSession { .. }
            | Self::LearnEnds(_)
            | Self::Locks { .. }
            | Self::Lock(_)
            | Self::Sessions
            | Self::Session(_)
            | Self::Locate(_)
            | Self::Status
            | Self::TakeSnapshot
            | Self::Move(_)
            | Self::Claim(_)
            | Self::Load
            | Self::Members(_) => None,
        }
    }
}
