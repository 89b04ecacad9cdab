//! What goes wrong at an endpoint, in the words that clients match on and people act on.
//!
//! One error for all surfaces: HTTP shows it as problem+json, gRPC as a status with details. Nothing here knows which.

use holdfast_locktable::ids::{Revision, SessionId, Token};
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

/// The stable code of an error; its text form is what clients match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request breaks a published bound or form. 400.
    InvalidArgument,
    /// There is no such thing. 404.
    NotFound,
    /// The wait limit passed and the wait is out of the queue. 408.
    Timeout,
    /// A try found the lock held. 409.
    Busy,
    /// The session holds the lock under another request id. 409.
    AlreadyHeld,
    /// The session waits for the lock under another request id. 409.
    AlreadyWaiting,
    /// Session, name and token name no hold. 409.
    NotHolder,
    /// The request was answered before and is not executed again. 409.
    StaleRequest,
    /// Too many requests of the session without an answer. 409.
    TooManyOutstanding,
    /// The lock has another holder than the operator saw. 409.
    Changed,
    /// The waiting key was deleted by somebody else. 409.
    Removed,
    /// The wait was cancelled by another call. 409.
    Cancelled,
    /// The claim has another number of partitions. 409.
    OtherPartitions,
    /// The claim has as many members as it may have. 409.
    ClaimFull,
    /// The session takes no part in the claim. 409.
    NotMember,
    /// The session has ended or never was. 410.
    SessionLost,
    /// The history asked for is gone. 410.
    Compacted,
    /// The group has no leader (within three election timeouts). 503, retryable.
    NoLeader,
    /// A queue of the member is full. 503, retryable.
    Overloaded,
    /// The answer was lost: the request may or may not have been executed; repeat it with the same request id. 503.
    UnknownOutcome,
    /// A defect or a dying disk. 500.
    Internal,
}

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
            Self::NoLeader => "no_leader",
            Self::Overloaded => "overloaded",
            Self::UnknownOutcome => "unknown_outcome",
            Self::Internal => "internal",
        }
    }

    /// The HTTP status that goes with it.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidArgument => 400,
            Self::NotFound => 404,
            Self::Timeout => 408,
            Self::Busy
            | Self::AlreadyHeld
            | Self::AlreadyWaiting
            | Self::NotHolder
            | Self::StaleRequest
            | Self::TooManyOutstanding
            | Self::Changed
            | Self::Removed
            | Self::Cancelled
            | Self::OtherPartitions
            | Self::ClaimFull
            | Self::NotMember => 409,
            Self::SessionLost | Self::Compacted => 410,
            Self::NoLeader | Self::Overloaded | Self::UnknownOutcome => 503,
            Self::Internal => 500,
        }
    }

    /// Whether the same request may be sent again as it is.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::NoLeader | Self::Overloaded | Self::UnknownOutcome)
    }
}

/// An error with its words for people and the facts that go with its code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Who holds (`busy`, `changed`).
    pub holder: Option<SessionId>,
    /// The token in question (`busy`, `already_held`, `changed`).
    pub token: Option<Token>,
    /// How many wait behind the holder (`busy`).
    pub waiters: Option<u32>,
    /// The oldest usable revision (`compacted`).
    pub oldest: Option<Revision>,
    /// Which group is concerned (`no_leader`).
    pub group: Option<GroupId>,
    /// How the earlier request ended (`stale_request`).
    pub ended: Option<String>,
    /// How many partitions the claim has (`other_partitions`).
    pub partitions: Option<u32>,
}

impl ApiError {
    /// An error without facts.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), facts: Facts::default() }
    }

    /// A broken bound or form.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    /// A group without leader.
    pub fn no_leader(group: GroupId) -> Self {
        let mut error = Self::new(
            ErrorCode::NoLeader,
            format!("group {group} has no leader right now; nothing was changed; try again in a second"),
        );
        error.facts.group = Some(group);
        error
    }

    /// A session that has ended or never was.
    pub fn session_lost(session: SessionId) -> Self {
        Self::new(
            ErrorCode::SessionLost,
            format!("session {session} has ended or never was; its locks are free; open a new session"),
        )
    }
}
