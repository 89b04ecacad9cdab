//! What goes wrong with a lock that is held: giving it back, or changing its value.

use crate::{
    error::{ApiError, ErrorCode},
    state::LossReason,
};

/// Why a release, resignation or proclamation did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// The lock is not held with this token any more: it was lost before.
    #[error("{name:?} is not held any more, it was lost before")]
    NotHolder {
        /// The lock.
        name: String,
    },
    /// The session is over, and the hold with it.
    #[error("{name:?} is not held any more: {reason}")]
    SessionLost {
        /// The lock.
        name: String,
        /// Why the session is over.
        reason: LossReason,
    },
    /// The request was sent, and nobody can say whether it was carried out. The guard stays responsible: call again, or
    /// drop it, and the client gives the lock back in the background.
    #[error("whether the request about {name:?} was carried out is unknown: {reason}; call again")]
    Unknown {
        /// The lock.
        name: String,
        /// What happened last.
        reason: String,
    },
    /// No member could be reached, and nothing was sent: the lock is held as before.
    #[error("the request about {name:?} was not sent, no member could be reached: {reason}; call again")]
    Unreachable {
        /// The lock.
        name: String,
        /// What happened last.
        reason: String,
    },
    /// A member refused the request, and nothing was changed.
    #[error(transparent)]
    Refused(ApiError),
}

impl HoldError {
    /// Whether the same call may succeed a little later.
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::Unreachable { .. } => true,
            Self::NotHolder { .. } | Self::SessionLost { .. } => false,
            Self::Refused(error) => error.code.retryable(),
        }
    }

    /// What a member's final answer means.
    pub(crate) fn from_answer(name: &str, error: ApiError) -> Self {
        let name = name.to_owned();
        match error.code {
            ErrorCode::NotHolder => Self::NotHolder { name },
            ErrorCode::SessionLost => {
                Self::SessionLost { name, reason: LossReason::SessionEnded(error.message) }
            }
            ErrorCode::UnknownOutcome | ErrorCode::Internal => Self::Unknown { name, reason: error.message },
            ErrorCode::InvalidArgument
            | ErrorCode::NotFound
            | ErrorCode::Timeout
            | ErrorCode::Busy
            | ErrorCode::AlreadyHeld
            | ErrorCode::AlreadyWaiting
            | ErrorCode::StaleRequest
            | ErrorCode::TooManyOutstanding
            | ErrorCode::Changed
            | ErrorCode::Removed
            | ErrorCode::Cancelled
            | ErrorCode::OtherPartitions
            | ErrorCode::ClaimFull
            | ErrorCode::NotMember
            | ErrorCode::Compacted
            | ErrorCode::PermissionDenied
            | ErrorCode::NoLeader
            | ErrorCode::Overloaded
            | ErrorCode::Other => Self::Refused(error),
        }
    }
}
