//! Reading a JSON body within bounds.
//!
//! Size is judged first, then the media type, then the text. What the fields mean is not known here.

use std::time::Duration;

use actix_web::{
    HttpRequest,
    http::{StatusCode, header},
    web::{BytesMut, Payload},
};
use futures::StreamExt;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// Largest body in bytes: 1 MiB.
const MAX_BODY_BYTES: usize = 1 << 20;

/// How long a client may take to send its body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn read_json<T: DeserializeOwned>(
    req: &HttpRequest,
    payload: Payload,
) -> Result<T, Problem> {
    let body = tokio::time::timeout(BODY_TIMEOUT, read(req, payload)).await.map_err(|_elapsed| {
        let detail = format!("the body was not complete after {} s", BODY_TIMEOUT.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "The request took too long", detail)
    })??;
    check_media_type(req)?;
    serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))
}

async fn read(req: &HttpRequest, mut payload: Payload) -> Result<BytesMut, Problem> {
    let announced =
        req.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|bytes: u64| bytes > MAX_BODY_BYTES as u64) {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| Problem::invalid(format!("the body broke off: {error}")))?;
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn too_large() -> Problem {
    let detail = format!("a body has {MAX_BODY_BYTES} bytes at most");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "The body is too large", detail)
}

fn check_media_type(req: &HttpRequest) -> Result<(), Problem> {
    let text = |name| req.headers().get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let media_type = text(header::CONTENT_TYPE);
    let essence = media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    let json = essence.eq_ignore_ascii_case("application/json")
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    let encoding =
        text(header::CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
    let detail = match (json, encoding) {
        (true, None) => return Ok(()),
        (true, Some(encoding)) => {
            format!("a body in the content encoding {encoding:?} is not read; send it plain")
        }
        (false, _) => {
            format!("send application/json; this is {}", media_type.unwrap_or("without a content type"))
        }
    };
    let title = "The body is not JSON";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", title, detail))
}
