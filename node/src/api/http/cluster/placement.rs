//! `/v1/groups/…` and `/v1/members/…`: which members carry and lead which groups.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::status::GroupJson;
use crate::{
    api::http::{
        api::{Api, actor, to_the_end},
        fields::{GroupNumber, Reason, present},
        input::{JsonBody, QueryArgs},
        problem::Problem,
    },
    endpoint::types::cluster::GroupDetail,
};

/// Which group.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct GroupArgs {
    /// Its number; 0 is the meta group.
    group: GroupNumber,
}

/// One group, and what is going on with it and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupAnswer {
    group: GroupJson,
    /// Members that carry it and are to carry it no more.
    leaving: Vec<u64>,
    /// What is under way, in words.
    under_way: Option<String>,
    /// Why.
    why: Option<String>,
    /// Entries per second, as the meta group's leader has measured it.
    entries_per_s: Option<f64>,
}

impl From<GroupDetail> for GroupAnswer {
    fn from(detail: GroupDetail) -> Self {
        Self {
            group: detail.view.into(),
            leaving: detail.leaving,
            under_way: detail.under_way,
            why: detail.why,
            entries_per_s: detail.entries_per_s,
        }
    }
}

/// Adds lock groups.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddGroupsBody {
    /// How many; there are at most 32 in all.
    count: u16,
    /// A number of your choice: a repeat with the same one adds nothing again and is answered as the first.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    request: Option<u64>,
    /// Why, for the audit log.
    reason: Reason,
}

/// New lock groups.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedGroupsAnswer {
    groups: Vec<GroupNumber>,
}

/// Lets another member lead a group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferBody {
    group: GroupNumber,
    /// The member, one of the group's voters.
    to: u64,
    /// Why, for the audit log.
    reason: Reason,
}

/// Drains a member, or takes it back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrainBody {
    member: u64,
    /// Why, for the audit log.
    reason: Reason,
}

/// What a change of the placement answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlacedAnswer {
    /// Always true: what is not done is a problem.
    ok: bool,
}

/// Show one group
#[utoipa::path(get, path = "/v1/groups/show", operation_id = "group", tag = "cluster", params(GroupArgs),
    responses((status = 200, description = "The group, and what is going on with it and why.", body = GroupAnswer),
        (status = 404, description = "`not_found`: there is no such group.")))]
pub(crate) async fn show(
    api: Data<Api>,
    QueryArgs(args): QueryArgs<GroupArgs>,
) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(GroupAnswer::from(api.endpoint.group(args.group.group()).await?)))
}

/// Add lock groups
///
/// They own nothing yet: spread the partition map over them. The audit log says who asked.
#[utoipa::path(post, path = "/v1/groups/add", operation_id = "add_groups", tag = "cluster", request_body = AddGroupsBody,
    responses((status = 200, description = "The new groups.", body = AddedGroupsAnswer),
        (status = 409, description = "`changed`: there would be none or too many.")))]
pub(crate) async fn add(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<AddGroupsBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor) = (api.endpoint.clone(), actor(&request));
    let groups =
        to_the_end(async move { endpoint.add_groups(body.count, body.request, body.reason.0, actor).await })
            .await?;
    let groups = groups.into_iter().map(GroupNumber::from).collect();
    Ok(HttpResponse::Ok().json(AddedGroupsAnswer { groups }))
}

/// Let another member lead a group
///
/// Calls wait for the moment without leader. The audit log says who asked.
#[utoipa::path(post, path = "/v1/groups/transfer-leader", operation_id = "transfer_leader", tag = "cluster",
    request_body = TransferBody,
    responses((status = 200, description = "It leads.", body = PlacedAnswer),
        (status = 404, description = "`not_found`: there is no such group."),
        (status = 409, description = "`changed`: the member lacks too much of the group's log yet.")))]
pub(crate) async fn transfer(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<TransferBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor, group) = (api.endpoint.clone(), actor(&request), body.group.group());
    to_the_end(async move { endpoint.transfer_leader(group, body.to, body.reason.0, actor).await }).await?;
    Ok(HttpResponse::Ok().json(PlacedAnswer { ok: true }))
}

/// Drain a member
///
/// Its groups go to other members one after the other, and it leads none. The audit log says who asked.
#[utoipa::path(post, path = "/v1/members/drain", operation_id = "drain_member", tag = "cluster", request_body = DrainBody,
    responses((status = 202, description = "It is being drained.", body = PlacedAnswer),
        (status = 409, description = "`changed`: there is no such member, or fewer members than replicas would be left.")))]
pub(crate) async fn drain(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<DrainBody>,
) -> Result<HttpResponse, Problem> {
    set_drained(&api, &request, body, true).await
}

/// Take a drained member back
#[utoipa::path(post, path = "/v1/members/undrain", operation_id = "undrain_member", tag = "cluster", request_body = DrainBody,
    responses((status = 202, description = "It may carry groups again.", body = PlacedAnswer),
        (status = 409, description = "`changed`: there is no such member.")))]
pub(crate) async fn undrain(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<DrainBody>,
) -> Result<HttpResponse, Problem> {
    set_drained(&api, &request, body, false).await
}

async fn set_drained(
    api: &Data<Api>,
    request: &HttpRequest,
    body: DrainBody,
    drained: bool,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor) = (api.endpoint.clone(), actor(request));
    to_the_end(async move { endpoint.drain_member(body.member, drained, body.reason.0, actor).await })
        .await?;
    Ok(HttpResponse::Accepted().json(PlacedAnswer { ok: true }))
}
