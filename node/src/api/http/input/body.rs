//! Bodies: JSON objects of at most 1 MiB.

use std::time::Duration;

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::header,
    web::{BytesMut, Payload as BodyStream},
};
use futures::{StreamExt, future::LocalBoxFuture};
use serde::de::DeserializeOwned;

use super::{NoArgs, misfit, query};
use crate::api::http::problem::{Code, Problem};

/// Longest body in bytes.
const MAX_BODY_BYTES: usize = 1_024 * 1_024;

/// A body that takes longer to arrive is refused, so that nobody holds a connection with half a request.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(30);

/// A body that was read into `T`.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned + 'static> FromRequest for JsonBody<T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let body = BodyStream::from_request(&request, payload);
        Box::pin(async move {
            check_announced_length(&request)?;
            let stream = body.await.map_err(|_| incomplete())?;
            let arrival = tokio::time::timeout(ARRIVAL_LIMIT, collect(stream));
            let bytes = arrival.await.map_err(|_| {
                Problem::invalid(format!("the body did not arrive within {} s", ARRIVAL_LIMIT.as_secs()))
            })??;
            check_content_type(&request)?;
            query::parse::<NoArgs>(request.query_string())?;
            parse(&bytes).map(Self)
        })
    }
}

fn check_announced_length(request: &HttpRequest) -> Result<(), Problem> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match announced.map(str::parse::<u64>) {
        // A length that is no number is refused before requests come here; one that overflows is too long as well.
        Some(Ok(length)) if length <= MAX_BODY_BYTES as u64 => Ok(()),
        Some(Ok(_) | Err(_)) => Err(too_long()),
        None => Ok(()),
    }
}

async fn collect(mut stream: BodyStream) -> Result<BytesMut, Problem> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| incomplete())?;
        if bytes.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(too_long());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn check_content_type(request: &HttpRequest) -> Result<(), Problem> {
    let text =
        |name| request.headers().get(name).map(|value: &header::HeaderValue| value.to_str().unwrap_or(""));
    if let Some(coding) =
        text(header::CONTENT_ENCODING).filter(|coding| !coding.eq_ignore_ascii_case("identity"))
    {
        return Err(unsupported(format!("the body is encoded as {coding:?}; send it as it is")));
    }
    let sent = text(header::CONTENT_TYPE);
    let essence = sent.and_then(|sent| sent.split(';').next()).map(str::trim);
    match essence {
        Some(essence) if essence.eq_ignore_ascii_case("application/json") => Ok(()),
        Some(_) | None => Err(unsupported(format!(
            "the content type is {}; send application/json",
            sent.map_or_else(|| "absent".to_owned(), |sent| format!("{sent:?}"))
        ))),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // Checked here because serde would read a struct from an array as well.
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        Some(_) => return Err(Problem::invalid("the body is no JSON object")),
        None => return Err(Problem::invalid("the body is empty; send a JSON object")),
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        if error.inner().is_data() { misfit("the body", error) } else { malformed(error.inner()) }
    })?;
    json.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

fn malformed(error: &serde_json::Error) -> Problem {
    Problem::invalid(format!("the body is no JSON: {error}"))
}

fn incomplete() -> Problem {
    Problem::invalid("the body ended before it was complete")
}

fn too_long() -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("the body is longer than {MAX_BODY_BYTES} bytes"))
}

fn unsupported(detail: String) -> Problem {
    Problem::new(Code::UnsupportedMediaType, detail)
}
