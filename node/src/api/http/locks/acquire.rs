//! `/v1/locks/acquire` and `/v1/locks/cancel`.

use actix_web::{HttpResponse, web::Data};
use bytes::Bytes;
use holdfast_locktable::{ids::SessionId, name::Name, outcome::CancelOutcome};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    api::http::{
        api::Api,
        fields::{GroupNumber, LockName, MetadataMap, RequestText, SessionHex, TokenNumber, WaitMs, present},
        input::JsonBody,
        problem::Problem,
    },
    endpoint::types::{AcquireRequest, Granted},
};

/// Asks for a lock.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcquireBody {
    name: LockName,
    session: SessionHex,
    /// How long to wait in line, in milliseconds. 0 is a try; absent waits until the session ends.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    wait_ms: Option<WaitMs>,
    /// Makes a repeat harmless: the same request id gets the same answer. Absent makes every call a request of its own.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    request_id: Option<RequestText>,
    /// Shown to operators with the holder or waiter.
    #[serde(default)]
    metadata: MetadataMap,
}

impl AcquireBody {
    pub(super) fn into_request(self) -> AcquireRequest {
        AcquireRequest {
            name: self.name.0,
            session: self.session.0,
            request: RequestText::or_unique(self.request_id),
            wait: WaitMs::wait(self.wait_ms),
            metadata: self.metadata.0,
            value: Bytes::new(),
        }
    }
}

/// A grant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantAnswer {
    name: String,
    token: TokenNumber,
    session: SessionHex,
    /// The group that owns the name: whose line in the keepalive answers counts for it.
    group: GroupNumber,
}

impl GrantAnswer {
    pub(crate) fn new(name: &Name, session: SessionId, granted: Granted) -> Self {
        Self {
            name: name.text().to_owned(),
            token: granted.token.into(),
            session: SessionHex(session),
            group: granted.group.into(),
        }
    }
}

/// Names a wait.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    name: LockName,
    session: SessionHex,
    request_id: RequestText,
}

/// How a cancel found the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelAnswer {
    outcome: CancelWord,
    /// The token of the grant that came first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token: Option<TokenNumber>,
    /// Whether that grant was given back by this cancel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    released: Option<bool>,
}

/// How a cancel found the request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CancelWord {
    /// It waited, and does not any more.
    Cancelled,
    /// It had been granted.
    Granted,
    /// There is no such wait and no such hold.
    None,
}

impl From<CancelOutcome> for CancelAnswer {
    fn from(outcome: CancelOutcome) -> Self {
        match outcome {
            CancelOutcome::Cancelled => Self { outcome: CancelWord::Cancelled, token: None, released: None },
            CancelOutcome::Granted { token, released } => {
                Self { outcome: CancelWord::Granted, token: Some(token.into()), released: Some(released) }
            }
            CancelOutcome::None => Self { outcome: CancelWord::None, token: None, released: None },
        }
    }
}

/// Acquire a lock
///
/// The answer comes when the lock is granted, the wait limit has passed, or the session has ended. Closing the
/// connection, also only its sending half, cancels the wait, or gives its grant back. Waiting renews nothing: send
/// keepalives meanwhile.
#[utoipa::path(post, path = "/v1/locks/acquire", operation_id = "acquire_lock", tag = "locks", request_body = AcquireBody,
    responses((status = 200, description = "The lock is granted.", body = GrantAnswer),
        (status = 408, description = "`timeout`: the wait limit passed and the wait is out of the queue."),
        (status = 409, description = "`busy` (with `holder`, `token` and `waiters`), `already_held` (with `token`), \
            `already_waiting`, `stale_request`, `too_many_outstanding`, `removed`, `cancelled`."),
        (status = 410, description = "`session_lost`: the session has ended or never was.")))]
pub(crate) async fn acquire(
    api: Data<Api>,
    JsonBody(body): JsonBody<AcquireBody>,
) -> Result<HttpResponse, Problem> {
    let request = body.into_request();
    let (name, session) = (request.name.clone(), request.session);
    let granted = api.waiting(api.endpoint.acquire(request)).await?;
    Ok(HttpResponse::Ok().json(GrantAnswer::new(&name, session, granted)))
}

/// Cancel a waiting acquire
#[utoipa::path(post, path = "/v1/locks/cancel", operation_id = "cancel_wait", tag = "locks", request_body = CancelBody,
    responses((status = 200, description = "How the cancel found the request.", body = CancelAnswer),
        (status = 410, description = "`session_lost`: the session has ended or never was.")))]
pub(crate) async fn cancel(
    api: Data<Api>,
    JsonBody(body): JsonBody<CancelBody>,
) -> Result<HttpResponse, Problem> {
    let outcome = api.endpoint.cancel(body.name.0, body.session.0, body.request_id.request()).await?;
    Ok(HttpResponse::Ok().json(CancelAnswer::from(outcome)))
}
