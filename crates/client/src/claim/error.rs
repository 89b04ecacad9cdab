//! How joining a claim fails, and how a part in one ends.

use crate::{
    error::{ApiError, Error, ErrorCode},
    state::LossReason,
};

/// Why a session takes no part in a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The claim has another number of partitions.
    #[error("{message}")]
    OtherPartitions {
        /// The claim.
        name: String,
        /// How many it has, in the member's words.
        message: String,
    },
    /// The session takes part already, with another handle.
    #[error("this session takes part in claim {name:?} already; use that handle, or leave first")]
    AlreadyJoined {
        /// The claim.
        name: String,
    },
    /// The session is over.
    #[error("claim {name:?} was not joined: {reason}")]
    SessionLost {
        /// The claim.
        name: String,
        /// Why.
        reason: LossReason,
    },
    /// A member refused, or none answered. Whatever came of it is left again in the background.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl ClaimError {
    /// Whether the same call may succeed a little later.
    pub const fn retryable(&self) -> bool {
        match self {
            Self::OtherPartitions { .. } | Self::AlreadyJoined { .. } | Self::SessionLost { .. } => false,
            Self::Failed(error) => error.retryable(),
        }
    }

    /// What a member's final answer means.
    pub(super) fn from_answer(name: &str, error: Error) -> Self {
        match error {
            Error::Api(ApiError { code: ErrorCode::OtherPartitions, message, .. }) => {
                Self::OtherPartitions { name: name.to_owned(), message }
            }
            Error::Api(ApiError { code: ErrorCode::SessionLost, message, .. }) => {
                Self::SessionLost { name: name.to_owned(), reason: LossReason::SessionEnded(message) }
            }
            other => Self::Failed(other),
        }
    }
}

/// Why a part in a claim is over. Nothing of it may be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimEnd {
    /// This member left.
    #[error("this member has left the claim")]
    Left,
    /// It was drained, or the service has ended its part.
    #[error(
        "this member takes no part in the claim any more: it was drained, or the service has ended its part"
    )]
    Removed,
    /// The session is over, or its deadline in the claim's group has passed.
    #[error("{0}")]
    Lost(LossReason),
}
