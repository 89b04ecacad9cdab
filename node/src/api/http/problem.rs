//! Errors as HTTP shows them: problem documents (RFC 9457) with a stable `code` and the facts that go with it.
//!
//! Knows statuses and headers. Does not know which request failed.

mod code;

use std::fmt;

use actix_web::{
    HttpResponse, ResponseError,
    http::{StatusCode, header},
};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

pub(crate) use self::code::Code;
use super::fields::{GroupNumber, SessionHex, TokenNumber};
use crate::endpoint::{ApiError, ErrorCode};

/// Media type of problem documents.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Seconds after which a refused request may come again.
const RETRY_AFTER_SECONDS: &str = "1";

/// An error (RFC 9457). Facts that do not belong to its code are absent.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemJson {
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
    /// How many partitions the claim has (`other_partitions`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    partitions: Option<u32>,
}

/// An error on its way out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    document: Box<ProblemJson>,
    /// The methods that the path knows, for the header of that name.
    allow: Option<Box<str>>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let document = ProblemJson {
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
            partitions: None,
        };
        Self { document: Box::new(document), allow: None }
    }

    /// A broken bound or form.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::Endpoint(ErrorCode::InvalidArgument), detail)
    }

    /// A path that knows other methods.
    pub(crate) fn method_not_allowed(method: &str, path: &str, allow: &str) -> Self {
        let mut problem =
            Self::new(Code::MethodNotAllowed, format!("{path} does not know {method}; it knows {allow}"));
        problem.allow = Some(allow.into());
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
        let document = &mut problem.document;
        document.holder = error.facts.holder.map(SessionHex);
        document.token = error.facts.token.map(TokenNumber::from);
        document.waiters = error.facts.waiters;
        document.oldest = error.facts.oldest.map(|revision| revision.0);
        document.group = error.facts.group.map(GroupNumber::from);
        document.ended = error.facts.ended;
        document.partitions = error.facts.partitions;
        problem
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.document.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.document.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        response.content_type(PROBLEM_JSON);
        if self.status_code() == StatusCode::SERVICE_UNAVAILABLE {
            response.insert_header((header::RETRY_AFTER, RETRY_AFTER_SECONDS));
        }
        if let Some(allow) = &self.allow {
            response.insert_header((header::ALLOW, allow.as_ref()));
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
