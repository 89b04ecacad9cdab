//! `/v1/elections/campaign`, `proclaim` and `resign`.

use actix_web::{HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    api::http::{
        api::Api,
        fields::{
            CandidateValue, ElectionName, MetadataMap, RequestText, SessionHex, TokenNumber, WaitMs, present,
        },
        input::JsonBody,
        locks::{acquire::GrantAnswer, release::ReleaseAnswer},
        problem::Problem,
    },
    endpoint::types::AcquireRequest,
};

/// Asks to lead.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CampaignBody {
    name: ElectionName,
    session: SessionHex,
    /// What the candidate says once it leads; empty where it is absent.
    #[serde(default)]
    value: CandidateValue,
    /// How long to wait in line, in milliseconds. 0 is a try; absent waits until the session ends.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    wait_ms: Option<WaitMs>,
    /// Makes a repeat harmless: the same request id gets the same answer. Absent makes every call a request of its own.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    request_id: Option<RequestText>,
    /// Shown to operators with the leader or candidate.
    #[serde(default)]
    metadata: MetadataMap,
}

impl CampaignBody {
    pub(super) fn into_request(self) -> AcquireRequest {
        AcquireRequest {
            name: self.name.0,
            session: self.session.0,
            request: RequestText::or_unique(self.request_id),
            wait: WaitMs::wait(self.wait_ms),
            metadata: self.metadata.0,
            value: self.value.0,
        }
    }
}

/// The leader replaces its value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProclaimBody {
    name: ElectionName,
    session: SessionHex,
    token: TokenNumber,
    value: CandidateValue,
}

/// The new value is in place.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProclaimAnswer {
    pub(super) proclaimed: bool,
}

/// The leader steps down.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResignBody {
    name: ElectionName,
    session: SessionHex,
    token: TokenNumber,
}

/// Campaign in an election
///
/// The answer comes when the session leads. Everything said of acquiring a lock holds here as well.
#[utoipa::path(post, path = "/v1/elections/campaign", operation_id = "campaign", tag = "elections", request_body = CampaignBody,
    responses((status = 200, description = "The session leads.", body = GrantAnswer),
        (status = 408, description = "`timeout`: the wait limit passed and the wait is out of the queue."),
        (status = 409, description = "`busy` (with `holder`, `token` and `waiters`), `already_held` (with `token`), \
            `already_waiting`, `stale_request`, `too_many_outstanding`, `removed`, `cancelled`."),
        (status = 410, description = "`session_lost`: the session has ended or never was.")))]
pub(crate) async fn campaign(
    api: Data<Api>,
    JsonBody(body): JsonBody<CampaignBody>,
) -> Result<HttpResponse, Problem> {
    let request = body.into_request();
    let (name, session) = (request.name.clone(), request.session);
    let granted = api.waiting(api.endpoint.acquire(request)).await?;
    Ok(HttpResponse::Ok().json(GrantAnswer::new(&name, session, granted)))
}

/// Replace the leader's value
#[utoipa::path(post, path = "/v1/elections/proclaim", operation_id = "proclaim", tag = "elections", request_body = ProclaimBody,
    responses((status = 200, description = "The new value is in place.", body = ProclaimAnswer),
        (status = 409, description = "`not_holder`: the session does not lead with this token."),
        (status = 410, description = "`session_lost`: the session has ended or never was.")))]
pub(crate) async fn proclaim(
    api: Data<Api>,
    JsonBody(body): JsonBody<ProclaimBody>,
) -> Result<HttpResponse, Problem> {
    api.endpoint.proclaim(body.name.0, body.session.0, body.token.token(), body.value.0).await?;
    Ok(HttpResponse::Ok().json(ProclaimAnswer { proclaimed: true }))
}

/// Resign
#[utoipa::path(post, path = "/v1/elections/resign", operation_id = "resign", tag = "elections", request_body = ResignBody,
    responses((status = 200, description = "The session does not lead any more.", body = ReleaseAnswer),
        (status = 409, description = "`not_holder`: the session does not lead with this token."),
        (status = 410, description = "`session_lost`: the session has ended or never was.")))]
pub(crate) async fn resign(
    api: Data<Api>,
    JsonBody(body): JsonBody<ResignBody>,
) -> Result<HttpResponse, Problem> {
    let released = api.endpoint.release(body.name.0, body.session.0, body.token.token()).await?;
    Ok(HttpResponse::Ok().json(ReleaseAnswer { released }))
}
