//! How an acquire or a campaign ends without a grant: each way told apart, none of them looks like success (P5).

use crate::{
    error::{ApiError, ErrorCode},
    ids::{SessionId, Token},
    state::LossReason,
};

/// Why an acquire or a campaign did not give the lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// A try found the lock held.
    #[error("{name:?} is held{}, {waiters} waiting; try later, or wait in line", by(.holder.as_ref()))]
    Busy {
        /// The lock.
        name: String,
        /// Who holds it, where the member said so.
        holder: Option<SessionId>,
        /// The holder's token, where the member said so.
        token: Option<Token>,
        /// How many wait behind the holder.
        waiters: u32,
    },
    /// The wait limit passed; the wait is out of the queue.
    #[error("{name:?} was not free within the wait limit")]
    Timeout {
        /// The lock.
        name: String,
    },
    /// The session is over, so nothing can be acquired with it. Open a new one.
    #[error("{name:?} was not acquired: {reason}; open a new session")]
    SessionLost {
        /// The lock.
        name: String,
        /// Why the session is over.
        reason: LossReason,
    },
    /// This very session holds the lock already: a session holds a lock at most once.
    #[error("this session holds {name:?} already{}", with(.token.as_ref()))]
    AlreadyHeld {
        /// The lock.
        name: String,
        /// The token it holds with.
        token: Option<Token>,
    },
    /// This very session waits for the lock already.
    #[error("this session waits for {name:?} already")]
    AlreadyWaiting {
        /// The lock.
        name: String,
    },
    /// Somebody else deleted the wait.
    #[error("the wait for {name:?} was removed by somebody else")]
    Removed {
        /// The lock.
        name: String,
    },
    /// The wait was cancelled elsewhere.
    #[error("the wait for {name:?} was cancelled elsewhere")]
    Cancelled {
        /// The lock.
        name: String,
    },
    /// Nobody can say how it ended. The client goes on giving the lock back in the background, but until that succeeds, or
    /// the session ends, the server may show this session as holder.
    #[error("whether {name:?} was acquired is unknown: {reason}; it is being given back")]
    Unknown {
        /// The lock.
        name: String,
        /// What happened last.
        reason: String,
    },
    /// No member could be reached before the limit, and nothing was sent: the lock is certainly not held.
    #[error("{name:?} was not acquired, no member could be reached: {reason}")]
    Unreachable {
        /// The lock.
        name: String,
        /// What happened last.
        reason: String,
    },
    /// The request breaks a bound or form; the text says which.
    #[error("{0}")]
    Invalid(String),
    /// A member refused the request, and nothing was changed.
    #[error(transparent)]
    Refused(ApiError),
}

fn by(holder: Option<&SessionId>) -> String {
    holder.map_or_else(String::new, |holder| format!(" by session {holder}"))
}

fn with(token: Option<&Token>) -> String {
    token.map_or_else(String::new, |token| format!(" with token {token}"))
}

impl AcquireError {
    /// Whether the same call, made again a little later with the same session, may succeed.
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Busy { .. }
            | Self::Timeout { .. }
            | Self::Removed { .. }
            | Self::Cancelled { .. }
            | Self::Unknown { .. }
            | Self::Unreachable { .. } => true,
            Self::SessionLost { .. }
            | Self::AlreadyHeld { .. }
            | Self::AlreadyWaiting { .. }
            | Self::Invalid(_) => false,
            Self::Refused(error) => error.code.retryable(),
        }
    }

    /// What a member's final answer means. Retryable answers are not final: they are for the caller to repeat.
    pub(crate) fn from_answer(name: &str, error: ApiError) -> Self {
        let name = name.to_owned();
        match error.code {
            ErrorCode::Busy => Self::Busy {
                name,
                holder: error.facts.holder,
                token: error.facts.token,
                waiters: error.facts.waiters.unwrap_or(0),
            },
            ErrorCode::Timeout => Self::Timeout { name },
            ErrorCode::SessionLost => {
                Self::SessionLost { name, reason: LossReason::SessionEnded(error.message) }
            }
            ErrorCode::AlreadyHeld => Self::AlreadyHeld { name, token: error.facts.token },
            ErrorCode::AlreadyWaiting => Self::AlreadyWaiting { name },
            ErrorCode::Removed => Self::Removed { name },
            ErrorCode::Cancelled => Self::Cancelled { name },
            ErrorCode::InvalidArgument => Self::Invalid(error.message),
            ErrorCode::StaleRequest => match error.facts.ended.as_deref() {
                Some("timed_out") => Self::Timeout { name },
                Some("removed") => Self::Removed { name },
                Some("cancelled") => Self::Cancelled { name },
                Some(_) | None => Self::Unknown { name, reason: error.message },
            },
            ErrorCode::UnknownOutcome | ErrorCode::Internal => Self::Unknown { name, reason: error.message },
            ErrorCode::NotFound
            | ErrorCode::NotHolder
            | ErrorCode::TooManyOutstanding
            | ErrorCode::Changed
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Facts;

    fn answer(code: ErrorCode, facts: Facts) -> AcquireError {
        AcquireError::from_answer("a", ApiError { code, message: "m".into(), facts })
    }

    #[test]
    fn busy_keeps_who_holds() {
        let facts = Facts {
            holder: "1f".parse().ok(),
            token: Some(Token::new(7)),
            waiters: Some(2),
            ..Facts::default()
        };
        let error = answer(ErrorCode::Busy, facts);
        assert!(error.to_string().contains("by session 1f, 2 waiting"), "{error}");
        assert!(error.retryable());
    }

    #[test]
    fn a_stale_repeat_tells_how_the_first_one_ended() {
        let ended = |how: &str| {
            answer(ErrorCode::StaleRequest, Facts { ended: Some(how.into()), ..Facts::default() })
        };
        assert_eq!(ended("timed_out"), AcquireError::Timeout { name: "a".into() });
        assert!(matches!(ended("released"), AcquireError::Unknown { .. }));
    }

    #[test]
    fn what_a_repeat_cannot_help_is_not_retryable() {
        assert!(!answer(ErrorCode::InvalidArgument, Facts::default()).retryable());
        assert!(!answer(ErrorCode::AlreadyHeld, Facts::default()).retryable());
        assert!(!answer(ErrorCode::SessionLost, Facts::default()).retryable());
    }
}
