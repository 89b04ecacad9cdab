//! What goes wrong, in words that programs match on and people act on. Knows codes and texts, not who retries.

use std::{fmt, str::FromStr};

use holdfast_proto::{status, v1};
use tonic::Status;

use crate::ids::{SessionId, Token};

/// The stable code of an error that a member answered with.
///
/// ```
/// # use holdfast_client::ErrorCode;
/// assert_eq!(ErrorCode::SessionLost.as_str(), "session_lost");
/// assert!(ErrorCode::NoLeader.retryable());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The request breaks a published bound or form.
    InvalidArgument,
    /// There is no such thing.
    NotFound,
    /// The wait limit passed and the wait is out of the queue.
    Timeout,
    /// A try found the lock held.
    Busy,
    /// The session holds the lock under another request.
    AlreadyHeld,
    /// The session waits for the lock under another request.
    AlreadyWaiting,
    /// Session, name and token name no hold.
    NotHolder,
    /// The request was answered before and is not executed again.
    StaleRequest,
    /// Too many requests of the session without an answer.
    TooManyOutstanding,
    /// The lock has another holder than the operator saw.
    Changed,
    /// The waiting key was deleted by somebody else.
    Removed,
    /// The wait was cancelled by another call.
    Cancelled,
    /// The claim has another number of partitions.
    OtherPartitions,
    /// The claim has as many members as it may have.
    ClaimFull,
    /// The session takes no part in the claim.
    NotMember,
    /// The session has ended or never was.
    SessionLost,
    /// The history asked for is gone.
    Compacted,
    /// The caller may not do this.
    PermissionDenied,
    /// The group has no leader; retryable.
    NoLeader,
    /// A queue of the member is full; retryable.
    Overloaded,
    /// The answer was lost; a repeat of the same request finds out.
    UnknownOutcome,
    /// A defect or a dying disk.
    Internal,
    /// A code this client does not know, or an answer that no Holdfast member gave.
    Other,
}

const CODES: [ErrorCode; 22] = [
    ErrorCode::InvalidArgument,
    ErrorCode::NotFound,
    ErrorCode::Timeout,
    ErrorCode::Busy,
    ErrorCode::AlreadyHeld,
    ErrorCode::AlreadyWaiting,
    ErrorCode::NotHolder,
    ErrorCode::StaleRequest,
    ErrorCode::TooManyOutstanding,
    ErrorCode::Changed,
    ErrorCode::Removed,
    ErrorCode::Cancelled,
    ErrorCode::OtherPartitions,
    ErrorCode::ClaimFull,
    ErrorCode::NotMember,
    ErrorCode::SessionLost,
    ErrorCode::Compacted,
    ErrorCode::PermissionDenied,
    ErrorCode::NoLeader,
    ErrorCode::Overloaded,
    ErrorCode::UnknownOutcome,
    ErrorCode::Internal,
];

impl ErrorCode {
    /// The code as it stands in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::AlreadyHeld => "already_held",
            Self::AlreadyWaiting => "already_waiting",
            Self::NotHolder => "not_holder",
            Self::StaleRequest => "stale_request",
            Self::TooManyOutstanding => "too_many_outstanding",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Cancelled => "cancelled",
            Self::OtherPartitions => "other_partitions",
            Self::ClaimFull => "claim_full",
            Self::NotMember => "not_member",
            Self::SessionLost => "session_lost",
            Self::Compacted => "compacted",
            Self::PermissionDenied => "permission_denied",
            Self::NoLeader => "no_leader",
            Self::Overloaded => "overloaded",
            Self::UnknownOutcome => "unknown_outcome",
            Self::Internal => "internal",
            Self::Other => "other",
        }
    }

    /// Whether the same request may be sent again as it is.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::NoLeader | Self::Overloaded | Self::UnknownOutcome)
    }
}

impl FromStr for ErrorCode {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(CODES.into_iter().find(|code| code.as_str() == text).unwrap_or(Self::Other))
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error that a member answered with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened, to which name, what to do next.
    pub message: String,
    /// Facts that belong to the code.
    pub facts: Facts,
}

/// Facts that belong to an error code; those that do not apply are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Who holds (`busy`, `changed`).
    pub holder: Option<SessionId>,
    /// The token in question (`busy`, `already_held`, `changed`).
    pub token: Option<Token>,
    /// How many wait behind the holder (`busy`).
    pub waiters: Option<u32>,
    /// The oldest usable revision (`compacted`).
    pub oldest: Option<u64>,
    /// Which group is concerned (`no_leader`).
    pub group: Option<u32>,
    /// How the earlier request ended (`stale_request`).
    pub ended: Option<String>,
}

impl From<v1::Error> for ApiError {
    fn from(error: v1::Error) -> Self {
        let Ok(code) = error.code.parse();
        let facts = error.facts.unwrap_or_default();
        let facts = Facts {
            holder: facts.holder.map(SessionId::from_wire),
            token: facts.token.map(Token::new),
            waiters: facts.waiters,
            oldest: facts.oldest,
            group: facts.group,
            ended: facts.ended,
        };
        Self { code, message: error.message, facts }
    }
}

/// Why a request to the cluster failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A member answered, and this was its answer.
    #[error(transparent)]
    Api(ApiError),
    /// No member answered within the request timeout. The request may have been executed all the same.
    #[error("no member answered: {reason}; check the endpoints and that the cluster is up")]
    Unreachable {
        /// What happened at the member that was tried last.
        reason: String,
    },
}

impl Error {
    /// Whether the same call may succeed a little later.
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Api(error) => error.code.retryable(),
            Self::Unreachable { .. } => true,
        }
    }

    /// The code of a member's answer; `None` where none answered.
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Api(error) => Some(error.code),
            Self::Unreachable { .. } => None,
        }
    }
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// What a gRPC status means: a member's answer, or that the member could not be talked to.
pub(crate) fn from_status(code: &Status) -> Error {
    if let Some(error) = status::error_of(code) {
        return Error::Api(error.into());
    }
    match code.code() {
        tonic::Code::Unavailable
        | tonic::Code::Cancelled
        | tonic::Code::DeadlineExceeded
        | tonic::Code::Aborted
        | tonic::Code::Unknown
        | tonic::Code::Internal
        | tonic::Code::Ok => Error::Unreachable { reason: describe(code) },
        tonic::Code::InvalidArgument
        | tonic::Code::NotFound
        | tonic::Code::AlreadyExists
        | tonic::Code::PermissionDenied
        | tonic::Code::ResourceExhausted
        | tonic::Code::FailedPrecondition
        | tonic::Code::OutOfRange
        | tonic::Code::Unimplemented
        | tonic::Code::DataLoss
        | tonic::Code::Unauthenticated => {
            Error::Api(ApiError { code: ErrorCode::Other, message: describe(code), facts: Facts::default() })
        }
    }
}

fn describe(status: &Status) -> String {
    let mut text = if status.message().is_empty() {
        status.code().description().to_owned()
    } else {
        status.message().to_owned()
    };
    let mut cause = std::error::Error::source(status);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

/// Options that cannot make a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no endpoint to talk to.
    #[error("no endpoint was given; name at least one member, like http://127.0.0.1:7611")]
    NoEndpoint,
    /// An endpoint is no URL of a member's gRPC listener.
    #[error("{endpoint:?} is no endpoint: {reason}; write it like http://127.0.0.1:7611")]
    BadEndpoint {
        /// As it was given.
        endpoint: String,
        /// What is wrong.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back() {
        for code in CODES {
            assert_eq!(code.as_str().parse(), Ok(code));
        }
        assert_eq!("brand_new".parse(), Ok(ErrorCode::Other));
    }

    #[test]
    fn a_status_without_our_details_is_an_unreachable_member_or_a_foreign_answer() {
        assert!(matches!(from_status(&Status::unavailable("refused")), Error::Unreachable { .. }));
        assert_eq!(from_status(&Status::unimplemented("what?")).code(), Some(ErrorCode::Other));
    }
}
