//! Errors as HTTP shows them: problem documents (RFC 9457) with a stable `code` and the facts that go with it.
//!
//! Knows statuses and headers. Does not know which request failed.

use std::fmt;

use actix_web::{
    HttpResponse, ResponseError,
    http::{StatusCode, header},
};
use serde::{Serialize, Serializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use super::fields::{GroupNumber, SessionHex, TokenNumber};
use crate::endpoint::{ApiError, ErrorCode};

/// Media type of problem documents.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Seconds after which a refused request may come again.
const RETRY_AFTER_SECONDS: &str = "1";

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
    pub(crate) const ALL: [Self; 24] = [
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
    const fn title(self) -> &'static str {
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

/// An error (RFC 9457). Facts that do not belong to its code are absent.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// A URI for the kind of problem: `urn:holdfast:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The same words for every problem of one code.
    title: &'static str,
    /// The HTTP status again.
    status: u16,
    /// What happened, to which name, what to do next.
    detail: String,
    code: Code,
    /// Who holds (`busy`, `changed`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    holder: Option<SessionHex>,
    /// The token in question (`busy`, `already_held`, `changed`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token: Option<TokenNumber>,
    /// How many wait behind the holder (`busy`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    waiters: Option<u32>,
    /// The oldest usable revision (`compacted`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    oldest: Option<u64>,
    /// Which group is concerned (`no_leader`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    group: Option<GroupNumber>,
    /// How the earlier request ended (`stale_request`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ended: Option<String>,
    #[serde(skip)]
    #[schema(ignore)]
    allow: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:holdfast:problem:{}", code.as_str()),
            title: code.title(),
            status: code.status(),
            detail: detail.into(),
            code,
            holder: None,
            token: None,
            waiters: None,
            oldest: None,
            group: None,
            ended: None,
            allow: None,
        }
    }

    /// A broken bound or form.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::Endpoint(ErrorCode::InvalidArgument), detail)
    }

    /// A path that knows other methods.
    pub(crate) fn method_not_allowed(method: &str, path: &str, allow: &str) -> Self {
        let mut problem =
            Self::new(Code::MethodNotAllowed, format!("{path} does not know {method}; it knows {allow}"));
        problem.allow = Some(allow.to_owned());
        problem
    }

    /// The member stops while the request waits.
    pub(crate) fn stopped_while_waiting() -> Self {
        Self::new(
            Code::Endpoint(ErrorCode::UnknownOutcome),
            "this member stops, so the answer is unknown; repeat the request with the same request_id at another member",
        )
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        if error.code == ErrorCode::Internal {
            tracing::error!(error = %error.message, "a request failed");
        }
        let mut problem = Self::new(Code::Endpoint(error.code), error.message);
        problem.holder = error.facts.holder.map(SessionHex);
        problem.token = error.facts.token.map(TokenNumber::from);
        problem.waiters = error.facts.waiters;
        problem.oldest = error.facts.oldest.map(|revision| revision.0);
        problem.group = error.facts.group.map(GroupNumber::from);
        problem.ended = error.facts.ended;
        problem
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        response.content_type(PROBLEM_JSON);
        if self.status_code() == StatusCode::SERVICE_UNAVAILABLE {
            response.insert_header((header::RETRY_AFTER, RETRY_AFTER_SECONDS));
        }
        if let Some(allow) = &self.allow {
            response.insert_header((header::ALLOW, allow.as_str()));
        }
        response.json(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use actix_web::body::to_bytes;
    use holdfast_locktable::ids::{Revision, SessionId};
    use holdfast_partitioner::GroupId;
    use serde_json::{Value, json};

    use super::*;
    use crate::endpoint::Facts;

    #[test]
    fn codes_are_distinct_and_have_the_statuses_of_errors() {
        let names: BTreeSet<&str> = Code::ALL.map(Code::as_str).into_iter().collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!((400..600).contains(&code.status()), "{code:?}");
            assert!(!code.title().is_empty());
        }
    }

    #[test]
    fn busy_tells_who_holds_and_how_many_wait() {
        let mut error = ApiError::new(ErrorCode::Busy, "lock jobs/x is held");
        error.facts = Facts {
            holder: SessionId::new(0x2f),
            token: Some(Revision(42)),
            waiters: Some(3),
            ..Facts::default()
        };
        assert_eq!(
            serde_json::to_value(Problem::from(error)).unwrap(),
            json!({
                "type": "urn:holdfast:problem:busy",
                "title": "The lock is held",
                "status": 409,
                "detail": "lock jobs/x is held",
                "code": "busy",
                "holder": "2f",
                "token": 42,
                "waiters": 3,
            })
        );
    }

    #[test]
    fn the_other_facts_have_their_names() {
        let mut error = ApiError::no_leader(GroupId(4));
        error.facts.oldest = Some(Revision(7));
        error.facts.ended = Some("released".into());
        let value = serde_json::to_value(Problem::from(error)).unwrap();
        assert_eq!(
            (&value["group"], &value["oldest"], &value["ended"]),
            (&json!(4), &json!(7), &json!("released"))
        );
    }

    #[actix_web::test]
    async fn every_code_becomes_a_response_of_its_status() {
        for code in Code::ALL {
            let response = Problem::new(code, "why").error_response();
            assert_eq!(response.status().as_u16(), code.status());
            assert_eq!(response.headers().get(header::CONTENT_TYPE).unwrap(), PROBLEM_JSON);
            assert_eq!(
                response.headers().contains_key(header::RETRY_AFTER),
                code.status() == 503,
                "{code:?}"
            );
            let body: Value = serde_json::from_slice(&to_bytes(response.into_body()).await.unwrap()).unwrap();
            assert_eq!(body["code"], code.as_str());
            assert_eq!(body["status"], code.status());
        }
    }
}
