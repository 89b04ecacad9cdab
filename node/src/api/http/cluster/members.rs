//! `/v1/members/change`, `…/changes` and `…/cancel`: who the members are.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    api::http::{
        api::{Api, actor, to_the_end},
        fields::{Reason, present},
        input::{JsonBody, NoArgs, QueryArgs},
        problem::Problem,
    },
    config::MemberEntry,
    endpoint::{
        roster::MembersWanted,
        types::cluster::{MemberChangeView, MemberChangesView},
    },
};

/// Changes the members: one more, one less, or both for one in the place of another.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeMembersBody {
    /// The new member.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    add: Option<NewMemberJson>,
    /// The member that goes.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    remove: Option<u64>,
    /// A number of your choice: a repeat with the same one begins nothing again and is answered as the first.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    request: Option<u64>,
    /// Why, for the audit log.
    reason: Reason,
    /// Only say whether it could begin.
    #[serde(default)]
    dry_run: bool,
}

/// A new member.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMemberJson {
    /// Its id; 0 for the next that was never used.
    #[serde(default)]
    id: u64,
    /// Base URL of its HTTP listener; may be left out where it comes in the place of another, which was reached there.
    #[serde(default)]
    http: String,
    /// URL of its gRPC listener; as `http`.
    #[serde(default)]
    grpc: String,
    /// Address of its peer listener; as `http`.
    #[serde(default)]
    peer: String,
}

/// A change of the members.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberChangeJson {
    /// Its number, from 1.
    number: u64,
    /// What it is, in words.
    what: String,
    /// The member that comes.
    #[schema(required)]
    comes: Option<NewMemberJson>,
    /// The member that goes.
    #[schema(required)]
    goes: Option<u64>,
    /// Who asked for it.
    actor: String,
    /// Why.
    reason: String,
    /// When it began, in milliseconds since 1970.
    since_ms: u64,
    /// How far it is, in words, while it is under way.
    #[schema(required)]
    doing: Option<String>,
    /// When it ended, in milliseconds since 1970.
    #[schema(required)]
    ended_ms: Option<u64>,
    /// Why it was stopped, where it was.
    #[schema(required)]
    stopped: Option<String>,
}

impl From<MemberChangeView> for MemberChangeJson {
    fn from(change: MemberChangeView) -> Self {
        let json = |MemberEntry { id, http, grpc, peer }| NewMemberJson { id, http, grpc, peer };
        Self {
            number: change.number,
            what: change.what,
            comes: change.comes.map(json),
            goes: change.goes,
            actor: change.actor,
            reason: change.reason,
            since_ms: change.since_ms,
            doing: change.doing,
            ended_ms: change.ended_ms,
            stopped: change.stopped,
        }
    }
}

/// The changes of the members.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberChangesAnswer {
    /// The one under way.
    #[schema(required)]
    under_way: Option<MemberChangeJson>,
    /// Those that are over, oldest first.
    past: Vec<MemberChangeJson>,
}

impl From<MemberChangesView> for MemberChangesAnswer {
    fn from(changes: MemberChangesView) -> Self {
        Self {
            under_way: changes.under_way.map(Into::into),
            past: changes.past.into_iter().map(Into::into).collect(),
        }
    }
}

/// Stops a change of the members.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelMemberChangeBody {
    /// Its number.
    change: u64,
    /// Why, for the audit log.
    reason: Reason,
}

/// What that answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelMemberChangeAnswer {
    /// Always true: what is not done is a problem.
    ok: bool,
}

/// Change the members
///
/// The change goes on by itself after the answer, and there is one at a time. The audit log says who asked.
#[utoipa::path(post, path = "/v1/members/change", operation_id = "change_members", tag = "cluster",
    request_body = ChangeMembersBody,
    responses((status = 202, description = "The change has begun, or with `dry_run` could.", body = MemberChangeJson),
        (status = 409, description = "`changed`: another change is under way, or groups could lose their majority by this one.")))]
pub(crate) async fn change(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<ChangeMembersBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor) = (api.endpoint.clone(), actor(&request));
    let entry = |NewMemberJson { id, http, grpc, peer }| MemberEntry { id, http, grpc, peer };
    let wanted = MembersWanted {
        add: body.add.map(entry),
        remove: body.remove,
        request: body.request,
        dry_run: body.dry_run,
    };
    let change =
        to_the_end(async move { endpoint.change_members(wanted, body.reason.0, actor).await }).await?;
    Ok(HttpResponse::Accepted().json(MemberChangeJson::from(change)))
}

/// Show the changes of the members
#[utoipa::path(get, path = "/v1/members/changes", operation_id = "member_changes", tag = "cluster",
    responses((status = 200, description = "The change under way and those before it.", body = MemberChangesAnswer)))]
pub(crate) async fn show(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(MemberChangesAnswer::from(api.endpoint.member_changes().await?)))
}

/// Stop a change of the members
///
/// A new member that has not come stays out, and one that was to go stays. The audit log says who asked.
#[utoipa::path(post, path = "/v1/members/cancel", operation_id = "cancel_member_change", tag = "cluster",
    request_body = CancelMemberChangeBody,
    responses((status = 200, description = "It is stopped.", body = CancelMemberChangeAnswer),
        (status = 409, description = "`changed`: it is not under way, or the new member has come.")))]
pub(crate) async fn cancel(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<CancelMemberChangeBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor) = (api.endpoint.clone(), actor(&request));
    to_the_end(async move { endpoint.cancel_member_change(body.change, body.reason.0, actor).await }).await?;
    Ok(HttpResponse::Ok().json(CancelMemberChangeAnswer { ok: true }))
}
