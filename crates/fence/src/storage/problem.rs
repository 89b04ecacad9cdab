//! Errors as RFC 9457 problems.
//!
//! The one place that gives a [`FenceError`] its HTTP status, and that logs it. Routes are not known here.

use actix_web::{
    HttpResponse, HttpResponseBuilder, ResponseError,
    http::{StatusCode, header},
};
use serde::Serialize;

use crate::error::FenceError;

/// Seconds after which a client may try again what was no refusal.
const RETRY_AFTER_SECS: &str = "1";

/// Why a request got no answer.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: String,
    more: serde_json::Map<String, serde_json::Value>,
    /// For 405: the methods that the path takes.
    allow: Option<&'static str>,
}

/// The same as it goes over the wire.
#[derive(Debug, Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    #[serde(flatten)]
    more: &'a serde_json::Map<String, serde_json::Value>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, title: &'static str, detail: String) -> Self {
        Self { status, code, title, detail, more: serde_json::Map::new(), allow: None }
    }

    pub(super) fn invalid(detail: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_argument", "The request is not valid", detail)
    }

    pub(super) fn not_found(detail: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "There is no such thing", detail)
    }

    pub(super) fn method_not_allowed(allow: &'static str) -> Self {
        let detail = format!("this path takes {allow}");
        let title = "The path does not take this method";
        let problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", title, detail);
        Self { allow: Some(allow), ..problem }
    }

    fn with(mut self, field: &str, value: impl Into<serde_json::Value>) -> Self {
        self.more.insert(field.to_owned(), value.into());
        self
    }
}

impl From<FenceError> for Problem {
    fn from(error: FenceError) -> Self {
        let (code, detail) = (error.code(), error.to_string());
        log(&error);
        let of = |status, title| Self::new(status, code, title, detail.clone());
        match error {
            FenceError::Stale { lock, token, highest } => {
                of(StatusCode::PRECONDITION_FAILED, "A newer holder has been seen")
                    .with("highest", highest)
                    .with("lock", lock)
                    .with("token", token)
            }
            FenceError::WrongLock { object, lock, bound_to } => {
                of(StatusCode::CONFLICT, "The object belongs to another lock")
                    .with("name", object)
                    .with("lock", lock)
                    .with("bound_to", bound_to)
            }
            FenceError::UnknownToken { lock, token, highest_granted } => {
                of(StatusCode::CONFLICT, "The token was never granted")
                    .with("highest_granted", highest_granted)
                    .with("lock", lock)
                    .with("token", token)
            }
            FenceError::InvalidArgument { .. } => Self::invalid(detail),
            FenceError::NotBound { .. } => Self::not_found(detail),
            FenceError::CheckUnavailable { .. } => {
                of(StatusCode::SERVICE_UNAVAILABLE, "The lock service does not answer")
            }
            FenceError::Overloaded => of(StatusCode::SERVICE_UNAVAILABLE, "Too many requests are waiting"),
            FenceError::OutcomeUnknown(_) => {
                of(StatusCode::SERVICE_UNAVAILABLE, "The write may or may not be stored")
            }
            FenceError::NewerSchema { .. } | FenceError::Database(_) => {
                of(StatusCode::SERVICE_UNAVAILABLE, "The database does not answer")
            }
        }
    }
}

/// Logged here and nowhere else.
fn log(error: &FenceError) {
    let code = error.code();
    match error {
        FenceError::Database(_) | FenceError::OutcomeUnknown(_) | FenceError::NewerSchema { .. } => {
            tracing::error!(code, %error, "the database failed a request");
        }
        FenceError::Overloaded | FenceError::CheckUnavailable { .. } => {
            tracing::warn!(code, %error, "request put off");
        }
        FenceError::Stale { .. } | FenceError::WrongLock { .. } | FenceError::UnknownToken { .. } => {
            tracing::info!(code, %error, "write refused");
        }
        FenceError::InvalidArgument { .. } | FenceError::NotBound { .. } => {
            tracing::debug!(code, %error, "request not valid");
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponseBuilder::new(self.status);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.insert_header((header::RETRY_AFTER, RETRY_AFTER_SECS));
        }
        if let Some(allow) = self.allow {
            response.insert_header((header::ALLOW, allow));
        }
        response.insert_header((header::CONTENT_TYPE, "application/problem+json")).json(Body {
            kind: format!("urn:holdfast:problem:{}", self.code),
            title: self.title,
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            more: &self.more,
        })
    }
}
