//! `/v1/sessions`: open, keep alive, close, end, list.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    api::{Api, actor, to_the_end},
    fields::{GroupNumber, MetadataMap, Reason, SessionHex, TtlMs, present},
    input::{JsonBody, QueryArgs},
    problem::Problem,
};
use crate::endpoint::types::{
    DEFAULT_TTL_MS, GroupLease, KeepaliveAck, LeaseState, SessionInfo, SessionLock, SessionOpened,
    SessionPage,
};

/// Opens a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenSessionBody {
    /// How long the session lives without a keepalive, in milliseconds; 10,000 where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, default = 10_000)]
    ttl_ms: Option<TtlMs>,
    #[serde(default)]
    metadata: MetadataMap,
}

/// Names a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionBody {
    session: SessionHex,
}

/// An operator ends a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndSessionBody {
    session: SessionHex,
    reason: Reason,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsArgs {
    /// Only this session; 404 where there is none.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    session: Option<SessionHex>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CloseSessionArgs {
    /// The session to close.
    session: SessionHex,
}

/// A session that was opened.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionAnswer {
    session: SessionHex,
    /// How long it lives without a keepalive, in milliseconds.
    ttl_ms: u64,
}

impl From<SessionOpened> for SessionAnswer {
    fn from(opened: SessionOpened) -> Self {
        Self { session: SessionHex(opened.session), ttl_ms: opened.ttl_ms }
    }
}

/// The session lives for `ttl_ms` from the moment this keepalive was sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeepaliveAnswer {
    ttl_ms: u64,
    /// One line per lock group: a lock's own deadline moves only with the renewal of the group that granted it. That counts
    /// also for a lock that has moved to another group since.
    groups: Vec<GroupLeaseJson>,
}

/// How one group answered a keepalive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupLeaseJson {
    group: GroupNumber,
    state: LeaseStateJson,
}

/// What a group says of a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LeaseStateJson {
    /// Renewed for a full TTL.
    Renewed,
    /// Not known there: it holds nothing in this group, though locks may have moved from there to another one.
    Unknown,
    /// It has ended, or is being ended.
    Lost,
    /// The group did not answer in time.
    Unavailable,
    /// The group is there, and does not renew the session while locks of it change groups: in a moment one of them does.
    Moving,
}

impl From<KeepaliveAck> for KeepaliveAnswer {
    fn from(ack: KeepaliveAck) -> Self {
        Self { ttl_ms: ack.ttl_ms, groups: ack.groups.into_iter().map(GroupLeaseJson::from).collect() }
    }
}

impl From<GroupLease> for GroupLeaseJson {
    fn from(lease: GroupLease) -> Self {
        let state = match lease.state {
            LeaseState::Renewed => LeaseStateJson::Renewed,
            LeaseState::Unknown => LeaseStateJson::Unknown,
            LeaseState::Lost => LeaseStateJson::Lost,
            LeaseState::Unavailable => LeaseStateJson::Unavailable,
            LeaseState::Moving => LeaseStateJson::Moving,
        };
        Self { group: lease.group.into(), state }
    }
}

/// Sessions by home group and id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionsAnswer {
    sessions: Vec<SessionJson>,
    /// Groups that had no leader, so that their sessions are missing here.
    unavailable_groups: Vec<GroupNumber>,
}

impl From<SessionPage> for SessionsAnswer {
    fn from(page: SessionPage) -> Self {
        Self {
            sessions: page.sessions.into_iter().map(SessionJson::from).collect(),
            unavailable_groups: numbers(page.unavailable_groups),
        }
    }
}

/// One session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionJson {
    session: SessionHex,
    ttl_ms: u64,
    /// Milliseconds left at its home's leader; null where it did not say.
    #[schema(required)]
    ttl_left_ms: Option<u64>,
    /// The group that decides whether it exists.
    home: GroupNumber,
    /// Other groups that know it.
    groups: Vec<GroupNumber>,
    /// Milliseconds since it was opened, as leaders saw it.
    open_ms: u64,
    metadata: MetadataMap,
    /// The queues it stands in.
    locks: Vec<SessionLockJson>,
}

impl From<SessionInfo> for SessionJson {
    fn from(info: SessionInfo) -> Self {
        Self {
            session: SessionHex(info.session),
            ttl_ms: info.ttl_ms,
            ttl_left_ms: info.ttl_left_ms,
            home: info.home.into(),
            groups: numbers(info.groups),
            open_ms: info.open_ms,
            metadata: MetadataMap(info.metadata),
            locks: info.locks.into_iter().map(SessionLockJson::from).collect(),
        }
    }
}

/// One queue that a session stands in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionLockJson {
    name: String,
    /// Whether it is an election's.
    election: bool,
    /// Create revision of its key: its token, once it holds.
    token: u64,
    /// Whether it holds; else it waits.
    held: bool,
}

impl From<SessionLock> for SessionLockJson {
    fn from(lock: SessionLock) -> Self {
        Self { name: lock.name, election: lock.election, token: lock.token.0, held: lock.held }
    }
}

/// All sessions, or the one that was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SessionsOrOne {
    /// Without `session`.
    All(SessionsAnswer),
    /// With `session`.
    One(SessionJson),
}

fn numbers(groups: Vec<GroupId>) -> Vec<GroupNumber> {
    groups.into_iter().map(GroupNumber::from).collect()
}

/// Open a session
#[utoipa::path(post, path = "/v1/sessions", operation_id = "open_session", tag = "sessions", request_body = OpenSessionBody,
    responses((status = 201, description = "The session is open.", body = SessionAnswer)))]
pub(crate) async fn open(
    api: Data<Api>,
    JsonBody(body): JsonBody<OpenSessionBody>,
) -> Result<HttpResponse, Problem> {
    let ttl_ms = body.ttl_ms.map_or(DEFAULT_TTL_MS, TtlMs::get);
    let opened = api.endpoint.open_session(ttl_ms, body.metadata.0).await?;
    Ok(HttpResponse::Created().json(SessionAnswer::from(opened)))
}

/// Renew a session
///
/// Renews it in every group that knows it. Nothing else renews a session: waiting does not.
#[utoipa::path(post, path = "/v1/sessions/keepalive", operation_id = "keepalive", tag = "sessions", request_body = SessionBody,
    responses((status = 200, description = "The session is renewed.", body = KeepaliveAnswer),
        (status = 410, description = "`session_lost`: it has ended or never was.")))]
pub(crate) async fn keepalive(
    api: Data<Api>,
    JsonBody(body): JsonBody<SessionBody>,
) -> Result<HttpResponse, Problem> {
    let ack = api.endpoint.keepalive(body.session.0).await?;
    Ok(HttpResponse::Ok().json(KeepaliveAnswer::from(ack)))
}

/// List sessions, or show one
#[utoipa::path(get, path = "/v1/sessions", operation_id = "list_sessions", tag = "sessions", params(SessionsArgs),
    responses((status = 200, description = "All sessions, or the one asked for.", body = SessionsOrOne),
        (status = 404, description = "`not_found`: there is no such session.")))]
pub(crate) async fn list(
    api: Data<Api>,
    QueryArgs(args): QueryArgs<SessionsArgs>,
) -> Result<HttpResponse, Problem> {
    let answer = match args.session {
        Some(session) => SessionsOrOne::One(api.endpoint.session(session.0).await?.into()),
        None => SessionsOrOne::All(api.endpoint.sessions().await?.into()),
    };
    Ok(HttpResponse::Ok().json(answer))
}

/// Close a session
///
/// For its client: all its locks come free at once.
#[utoipa::path(delete, path = "/v1/sessions", operation_id = "close_session", tag = "sessions", params(CloseSessionArgs),
    responses((status = 204, description = "The session has ended."),
        (status = 410, description = "`session_lost`: it had ended before.")))]
pub(crate) async fn close(
    api: Data<Api>,
    QueryArgs(args): QueryArgs<CloseSessionArgs>,
) -> Result<HttpResponse, Problem> {
    api.endpoint.close_session(args.session.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// End somebody else's session
///
/// For operators: all its locks come free at once, and the audit log says who did it and why.
#[utoipa::path(post, path = "/v1/sessions/end", operation_id = "end_session", tag = "sessions", request_body = EndSessionBody,
    responses((status = 204, description = "The session has ended."),
        (status = 410, description = "`session_lost`: it had ended before.")))]
pub(crate) async fn end(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<EndSessionBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor) = (api.endpoint.clone(), actor(&request));
    to_the_end(async move { endpoint.end_session(body.session.0, body.reason.0, actor).await }).await?;
    Ok(HttpResponse::NoContent().finish())
}

#[cfg(test)]
mod tests;
