//! Proposes commands to one lock group: stamps, encodes, and names what can go wrong.
//!
//! Nothing stands between this and openraft but the batching of `RaftGroup`. It does not forward to other members.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use holdfast_locktable::{
    codec::encode_proposal,
    command::{Command, Proposal},
    outcome::{Outcome, Rejection},
};
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::figures::GroupMetrics;
use crate::{
    clock::Clock,
    raft::{
        group::RaftGroup,
        propose::ProposeError,
        types::{MemberId, Reply},
    },
};

/// Why a group did not do what it was asked. Travels between members.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum GroupError {
    /// This member does not lead; certainly nothing was done.
    #[error("this member does not lead the group")]
    NotLeader {
        /// Who may.
        leader: Option<MemberId>,
    },
    /// Leadership was lost on the way: it may or may not have been done. A repeat with the same ids is harmless.
    #[error("leadership was lost before the outcome was known")]
    Unknown,
    /// The home group of the session does not answer, so that this group cannot meet the session; nothing was done.
    #[error("the session's home, group {home}, has no leader right now")]
    HomeUnavailable {
        /// The home group.
        home: GroupId,
    },
    /// A queue of the leader is full; nothing was done.
    #[error("the group's leader has too much to do")]
    Overloaded,
    /// The state refused; nothing was done.
    #[error("refused: {0:?}")]
    Rejected(Rejection),
    /// The member is going down.
    #[error("the member is stopping: {0}")]
    Fatal(String),
    /// What was asked cannot be done; nothing was changed.
    #[error("{why}")]
    Refused {
        /// Why, for people.
        why: String,
    },
    /// What was asked does not go together with what is; nothing was changed.
    #[error("{why}")]
    Conflict {
        /// Why, for people.
        why: String,
    },
}

impl GroupError {
    /// Whether it says that nothing was done and nothing will be, for want of a leader or of room.
    pub const fn not_executed(&self) -> bool {
        match self {
            Self::NotLeader { .. } | Self::HomeUnavailable { .. } | Self::Overloaded => true,
            Self::Unknown
            | Self::Rejected(_)
            | Self::Fatal(_)
            | Self::Refused { .. }
            | Self::Conflict { .. } => false,
        }
    }
}

/// Proposes commands to one group. Cheap to clone.
///
/// Actors hold one before the group's Raft half exists, since that half tells the actors what it applies; until it is
/// bound, nobody leads here.
#[derive(Clone)]
pub struct Proposer {
    group: GroupId,
    raft: Arc<OnceLock<RaftGroup>>,
    clock: Clock,
    metrics: GroupMetrics,
    patience: Duration,
}

impl fmt::Debug for Proposer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proposer(group {})", self.group())
    }
}

impl Proposer {
    /// A proposer for a group whose Raft half is still to come. What is not agreed on within `patience` (three times the
    /// longest election timeout) is `Unknown`.
    pub fn unbound(group: GroupId, clock: Clock, metrics: GroupMetrics, patience: Duration) -> Self {
        Self { group, raft: Arc::new(OnceLock::new()), clock, metrics, patience }
    }

    /// Hands over the Raft half, once, for all clones.
    pub fn bind(&self, raft: RaftGroup) {
        // A second one would be a defect of the start; the first one stays.
        let _ = self.raft.set(raft);
    }

    /// How long a proposal may take.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// The group.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// Proposes a command and waits until it is applied here. Dropping the future does not take the command back.
    pub async fn propose(&self, command: Command) -> Result<Outcome, GroupError> {
        let raft = self.raft.get().ok_or(GroupError::NotLeader { leader: None })?;
        let started = Instant::now();
        let name = command.name().cloned();
        let proposal = Proposal { at_ms: self.clock.wall_ms(), command };
        let payload = encode_proposal(&proposal).into();
        let result = match tokio::time::timeout(self.patience, raft.propose(payload)).await {
            Ok(Ok(Reply::Lock { result, .. })) => result.map_err(GroupError::Rejected),
            Ok(Ok(other)) => Err(GroupError::Fatal(format!("a lock group answered {other:?}"))),
            Ok(Err(error)) => Err(error.into()),
            // A leader that was cut off after it took the command hears of its fate only once it is back.
            Err(_) => Err(GroupError::Unknown),
        };
        self.metrics.proposal(name.as_ref(), started.elapsed(), result.as_ref().err());
        result
    }
}

impl From<ProposeError> for GroupError {
    fn from(error: ProposeError) -> Self {
        match error {
            ProposeError::NotLeader { leader } => Self::NotLeader { leader },
            ProposeError::Unknown => Self::Unknown,
            ProposeError::Overloaded => Self::Overloaded,
            // Certainly not done; another member may lead by now.
            ProposeError::Stopped => Self::NotLeader { leader: None },
        }
    }
}
