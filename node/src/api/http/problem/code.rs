//! The codes of problems, with their statuses and titles.

use serde::{Serialize, Serializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use crate::endpoint::ErrorCode;

/// The code of a problem: the endpoint's, or one that only HTTP knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The endpoint says so.
    Endpoint(ErrorCode),
    /// The path does not know the method. 405.
    MethodNotAllowed,
    /// The body is longer than the bound. 413.
    PayloadTooLarge,
    /// The body is not JSON. 415.
    UnsupportedMediaType,
    /// The member may not serve yet, or not any more. 503.
    NotReady,
    /// The process or its disk loop hangs. 503.
    NotAlive,
    /// The member stops; a stream goes on at another one. 503.
    Stopping,
}

impl Code {
    /// Every code there is, for the published document.
    pub(crate) const ALL: [Self; 27] = [
        Self::Endpoint(ErrorCode::InvalidArgument),
        Self::Endpoint(ErrorCode::NotFound),
        Self::Endpoint(ErrorCode::Timeout),
        Self::Endpoint(ErrorCode::Busy),
        Self::Endpoint(ErrorCode::AlreadyHeld),
        Self::Endpoint(ErrorCode::AlreadyWaiting),
        Self::Endpoint(ErrorCode::NotHolder),
        Self::Endpoint(ErrorCode::StaleRequest),
        Self::Endpoint(ErrorCode::TooManyOutstanding),
        Self::Endpoint(ErrorCode::Changed),
        Self::Endpoint(ErrorCode::Removed),
        Self::Endpoint(ErrorCode::Cancelled),
        Self::Endpoint(ErrorCode::OtherPartitions),
        Self::Endpoint(ErrorCode::ClaimFull),
        Self::Endpoint(ErrorCode::NotMember),
        Self::Endpoint(ErrorCode::SessionLost),
        Self::Endpoint(ErrorCode::Compacted),
        Self::Endpoint(ErrorCode::NoLeader),
        Self::Endpoint(ErrorCode::Overloaded),
        Self::Endpoint(ErrorCode::UnknownOutcome),
        Self::Endpoint(ErrorCode::Internal),
        Self::MethodNotAllowed,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::NotReady,
        Self::NotAlive,
        Self::Stopping,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Endpoint(code) => code.as_str(),
            Self::MethodNotAllowed => "method_not_allowed",
            Self::PayloadTooLarge => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::NotReady => "not_ready",
            Self::NotAlive => "not_alive",
            Self::Stopping => "stopping",
        }
    }

    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Endpoint(code) => code.http_status(),
            Self::MethodNotAllowed => 405,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::NotReady | Self::NotAlive | Self::Stopping => 503,
        }
    }

    /// The same words for every problem of one code.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Endpoint(code) => match code {
                ErrorCode::InvalidArgument => "The request breaks a published bound or form",
                ErrorCode::NotFound => "There is no such thing",
                ErrorCode::Timeout => "The wait limit passed",
                ErrorCode::Busy => "The lock is held",
                ErrorCode::AlreadyHeld => "The session holds the lock under another request id",
                ErrorCode::AlreadyWaiting => "The session waits for the lock under another request id",
                ErrorCode::NotHolder => "Session, name and token name no hold",
                ErrorCode::StaleRequest => "The request was answered before",
                ErrorCode::TooManyOutstanding => "The session has too many requests without an answer",
                ErrorCode::Changed => "The lock has another holder",
                ErrorCode::Removed => "The waiting key was deleted",
                ErrorCode::Cancelled => "The wait was cancelled",
                ErrorCode::OtherPartitions => "The claim has another number of partitions",
                ErrorCode::ClaimFull => "The claim has as many members as it may have",
                ErrorCode::NotMember => "The session takes no part in the claim",
                ErrorCode::SessionLost => "The session has ended",
                ErrorCode::Compacted => "The history asked for is gone",
                ErrorCode::NoLeader => "The group has no leader",
                ErrorCode::Overloaded => "The member is overloaded",
                ErrorCode::UnknownOutcome => "The answer was lost",
                ErrorCode::Internal => "The member failed",
            },
            Self::MethodNotAllowed => "The path does not know this method",
            Self::PayloadTooLarge => "The body is too long",
            Self::UnsupportedMediaType => "The body is not JSON",
            Self::NotReady => "The member may not serve",
            Self::NotAlive => "The member hangs",
            Self::Stopping => "The member stops",
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(Self::ALL.map(Self::as_str)))
            .description(Some("The stable code of a problem: what clients match on. New ones may come."))
            .into()
    }
}

impl ToSchema for Code {}
