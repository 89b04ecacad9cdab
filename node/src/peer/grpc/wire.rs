//! How messages stand on the wire: a version byte, then postcard, inside the protobuf of `peer.proto`.

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use tonic::{Code, Request, Status, metadata::BinaryMetadataValue};

use crate::{
    peer::{service::Envelope, transport::LinkError},
    raft::types::MemberId,
};

/// The generated messages, client and server.
#[allow(missing_docs, missing_debug_implementations, unreachable_pub, clippy::all, clippy::pedantic)]
pub(crate) mod proto {
    tonic::include_proto!("holdfast.peer.v1");
}

/// Version of the bodies, their first byte.
const FORMAT: u8 = 1;
/// Metadata in which the [`Envelope`] travels.
const ENVELOPE: &str = "holdfast-envelope-bin";

/// Why a body makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a message without content")]
    Empty,
    #[error("a message of format {0}, and this version knows only {FORMAT}")]
    Format(u8),
    #[error("a message that cannot be decoded ({0})")]
    Content(#[from] postcard::Error),
}

/// The body of a message.
pub(crate) fn encode<T: Serialize>(content: &T) -> Result<Bytes, WireError> {
    Ok(postcard::to_extend(content, vec![FORMAT])?.into())
}

/// Reads a body.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    let (format, content) = body.split_first().ok_or(WireError::Empty)?;
    if *format != FORMAT {
        return Err(WireError::Format(*format));
    }
    Ok(postcard::from_bytes(content)?)
}

/// The envelope as it goes with every request of one sender to one receiver.
pub(crate) fn seal(envelope: &Envelope) -> BinaryMetadataValue {
    // Encoding it cannot fail; an empty one would be refused by the receiver.
    BinaryMetadataValue::from_bytes(&encode(envelope).unwrap_or_default())
}

/// Puts the envelope on a request.
pub(crate) fn stamp<T>(envelope: &BinaryMetadataValue, content: T) -> Request<T> {
    let mut request = Request::new(content);
    request.metadata_mut().insert_bin(ENVELOPE, envelope.clone());
    request
}

/// Reads the envelope of a request.
pub(crate) fn envelope<T>(request: &Request<T>) -> Result<Envelope, Status> {
    let missing = || refused("the message says neither from whom nor for whom it is");
    let value = request.metadata().get_bin(ENVELOPE).ok_or_else(missing)?;
    let bytes = value.to_bytes().map_err(|_| missing())?;
    decode(&bytes).map_err(|err| refused(err.to_string()))
}

/// The message was not looked at.
pub(crate) fn refused(reason: impl Into<String>) -> Status {
    Status::failed_precondition(reason)
}

/// Whether a status says that the message was not looked at.
pub(crate) fn is_refusal(status: &Status) -> bool {
    status.code() == Code::FailedPrecondition
}

/// What the receiving side answers in place of a result.
pub(crate) fn status(err: &LinkError) -> Status {
    match err {
        LinkError::Refused { reason, .. } => refused(reason.clone()),
        LinkError::Unreachable { .. } | LinkError::TimedOut { .. } | LinkError::Broken { .. } => {
            Status::aborted(err.to_string())
        }
    }
}

/// What the sending side makes of a status.
pub(crate) fn link_error(to: MemberId, status: &Status) -> LinkError {
    let reason = reason(status);
    if is_refusal(status) {
        LinkError::Refused { to, reason: status.message().to_owned() }
    } else if never_sent(status) {
        LinkError::Unreachable { to, reason }
    } else {
        LinkError::Broken { to, reason }
    }
}

/// Whether there was no connection on which the message could have gone out.
pub(crate) fn never_sent(status: &Status) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(status);
    while let Some(err) = source {
        if err.is::<tonic::ConnectError>() {
            return true;
        }
        source = err.source();
    }
    false
}

/// A status in words, with the innermost cause, which alone says something.
pub(crate) fn reason(status: &Status) -> String {
    let mut innermost: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(status);
    while let Some(deeper) = innermost.and_then(std::error::Error::source) {
        innermost = Some(deeper);
    }
    match innermost {
        Some(cause) => format!("{} ({cause})", status.message()),
        None => status.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_carry_their_version() {
        let body = encode(&(1u8, "x")).unwrap();
        assert_eq!(&body[..], b"\x01\x01\x01x");
        assert_eq!(decode::<(u8, String)>(&body).unwrap(), (1, "x".to_owned()));
        assert_eq!(decode::<(u8, String)>(b"\x02\x01\x01x"), Err(WireError::Format(2)));
        assert_eq!(decode::<(u8, String)>(b""), Err(WireError::Empty));
        assert!(matches!(decode::<(u8, String)>(b"\x01\x01"), Err(WireError::Content(_))));
    }

    #[test]
    fn the_envelope_survives_the_metadata() {
        let sent = Envelope { cluster: "east".parse().unwrap(), from: 1, to: 2 };
        let request = stamp(&seal(&sent), ());
        assert_eq!(envelope(&request).unwrap(), sent);
        assert!(is_refusal(&envelope(&Request::new(())).unwrap_err()));
    }
}
