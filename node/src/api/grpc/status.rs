//! How errors of the endpoint look over gRPC: as messages inside a session stream, as statuses with the same message in
//! their details elsewhere. The one place of this conversion.

use holdfast_proto::{status::with_error, v1};
use tonic::{Code, Status};

use crate::endpoint::{ApiError, ErrorCode};

impl From<ApiError> for v1::Error {
    fn from(error: ApiError) -> Self {
        let facts = error.facts;
        let facts = v1::Facts {
            holder: facts.holder.map(|session| session.get()),
            token: facts.token.map(|token| token.0),
            waiters: facts.waiters,
            oldest: facts.oldest.map(|revision| revision.0),
            group: facts.group.map(|group| group.0),
            ended: facts.ended,
            partitions: facts.partitions,
        };
        let facts = Some(facts).filter(|facts| *facts != v1::Facts::default());
        Self { code: error.code.as_str().to_owned(), message: error.message, facts }
    }
}

/// The status of an error.
pub(super) fn status(error: ApiError) -> Status {
    with_error(grpc_code(error.code), &error.into())
}

/// The gRPC code that goes with an error, for clients that know no other.
const fn grpc_code(code: ErrorCode) -> Code {
    match code {
        ErrorCode::InvalidArgument => Code::InvalidArgument,
        ErrorCode::NotFound | ErrorCode::SessionLost => Code::NotFound,
        ErrorCode::Timeout => Code::DeadlineExceeded,
        ErrorCode::Busy
        | ErrorCode::AlreadyHeld
        | ErrorCode::AlreadyWaiting
        | ErrorCode::NotHolder
        | ErrorCode::StaleRequest
        | ErrorCode::Changed
        | ErrorCode::Removed
        | ErrorCode::OtherPartitions
        | ErrorCode::NotMember => Code::FailedPrecondition,
        ErrorCode::Cancelled => Code::Aborted,
        ErrorCode::Compacted => Code::OutOfRange,
        ErrorCode::TooManyOutstanding | ErrorCode::ClaimFull | ErrorCode::Overloaded => {
            Code::ResourceExhausted
        }
        ErrorCode::NoLeader => Code::Unavailable,
        ErrorCode::UnknownOutcome => Code::Unknown,
        ErrorCode::Internal => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_locktable::ids::SessionId;
    use holdfast_partitioner::GroupId;
    use holdfast_proto::status::error_of;

    use super::*;

    #[test]
    fn an_error_arrives_with_its_code_and_facts() {
        let status = status(ApiError::no_leader(GroupId(3)));
        assert_eq!(status.code(), Code::Unavailable);
        let error = error_of(&status).unwrap();
        assert_eq!((error.code.as_str(), error.facts.and_then(|facts| facts.group)), ("no_leader", Some(3)));
    }

    #[test]
    fn facts_that_do_not_apply_are_absent() {
        let error = v1::Error::from(ApiError::session_lost(SessionId::new(1).unwrap()));
        assert_eq!((error.code.as_str(), error.facts), ("session_lost", None));
    }
}
