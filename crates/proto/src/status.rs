//! How a Holdfast error travels in a gRPC status: code and message as usual, the typed error in the details.
//!
//! The details have the wire form of `google.rpc.Status`, which every gRPC library can unpack. Which gRPC code goes
//! with which error is the server's choice; nothing here knows.

use bytes::Bytes;
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};

use crate::v1;

/// Type of the one detail in our statuses.
const TYPE_URL: &str = "type.googleapis.com/holdfast.v1.Error";

/// `google.rpc.Status`, as the header `grpc-status-details-bin` carries it.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// A status that carries `error`.
pub fn with_error(code: Code, error: &v1::Error) -> Status {
    let detail = Any { type_url: TYPE_URL.into(), value: error.encode_to_vec() };
    let details = RpcStatus { code: code.into(), message: error.message.clone(), details: vec![detail] };
    Status::with_details(code, error.message.clone(), Bytes::from(details.encode_to_vec()))
}

/// The error that a status carries; `None` for a status that no Holdfast member made, or a damaged one.
pub fn error_of(status: &Status) -> Option<v1::Error> {
    let details = RpcStatus::decode(status.details()).ok()?;
    let ours = details.details.iter().find(|detail| detail.type_url == TYPE_URL)?;
    v1::Error::decode(ours.value.as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_comes_out_of_a_status_as_it_went_in() {
        let facts = v1::Facts { holder: Some(31), token: Some(7), waiters: Some(0), ..v1::Facts::default() };
        let error =
            v1::Error { code: "busy".into(), message: "lock \"a\" is held".into(), facts: Some(facts) };
        let status = with_error(Code::FailedPrecondition, &error);
        assert_eq!(status.message(), error.message);
        assert_eq!(error_of(&status), Some(error));
    }

    #[test]
    fn foreign_and_damaged_details_are_no_error_of_ours() {
        assert_eq!(error_of(&Status::unavailable("connection refused")), None);
        let damaged = Status::with_details(Code::Internal, "x", Bytes::from_static(b"\xff\xff\xff"));
        assert_eq!(error_of(&damaged), None);
    }
}
