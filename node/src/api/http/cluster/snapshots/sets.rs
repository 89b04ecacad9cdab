//! `/v1/snapshots/sets`: snapshots of all groups that go together.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::look::SnapshotAnswer;
use crate::{
    api::http::{
        api::{Api, actor, to_the_end},
        fields::{GroupNumber, SetText},
        input::{JsonBody, NoArgs, QueryArgs},
        problem::Problem,
    },
    snapshot::{
        inspect::ExaminedSet,
        set::{SetManifest, SetMember},
    },
};

/// Takes a snapshot set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeSetBody {}

/// Which set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetBody {
    #[schema(inline)]
    set: SetText,
}

/// Snapshot sets in the snapshot store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetsAnswer {
    sets: Vec<SetJson>,
}

/// One snapshot set.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetJson {
    id: String,
    cluster: String,
    /// Epoch of its partition map.
    map_epoch: u64,
    /// One snapshot of every group of the map; group 0 comes first.
    snapshots: Vec<SetMemberJson>,
    /// Milliseconds since 1970 by the wall clock of the member that put it together.
    created_at_ms: u64,
    /// The member that put it together.
    member: u64,
}

/// One snapshot of a set.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetMemberJson {
    group: GroupNumber,
    id: String,
    /// Last log index inside.
    log_index: u64,
    /// SHA-256 of its data in hex.
    sha256: String,
}

/// A snapshot set, and what is in it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VerifiedSetAnswer {
    set: SetJson,
    /// Its snapshots, as far as they are there.
    snapshots: Vec<SnapshotAnswer>,
    /// Whether all its snapshots are whole and go together.
    whole: bool,
    /// Why it cannot be used, and what to do.
    fault: Option<String>,
}

impl From<SetMember> for SetMemberJson {
    fn from(member: SetMember) -> Self {
        let group = holdfast_partitioner::GroupId(member.group.get()).into();
        Self { group, id: member.snapshot.into(), log_index: member.log_index, sha256: member.sha256 }
    }
}

impl From<SetManifest> for SetJson {
    fn from(set: SetManifest) -> Self {
        Self {
            id: set.set.into(),
            cluster: set.cluster.as_str().to_owned(),
            map_epoch: set.map_epoch,
            snapshots: set.snapshots.into_iter().map(Into::into).collect(),
            created_at_ms: set.created_unix_ms,
            member: set.member,
        }
    }
}

impl From<Vec<SetManifest>> for SetsAnswer {
    fn from(sets: Vec<SetManifest>) -> Self {
        Self { sets: sets.into_iter().map(Into::into).collect() }
    }
}

impl From<ExaminedSet> for VerifiedSetAnswer {
    fn from(examined: ExaminedSet) -> Self {
        let ExaminedSet { set, snapshots, fault } = examined;
        let snapshots = snapshots.into_iter().map(Into::into).collect();
        Self { set: set.into(), snapshots, whole: fault.is_none(), fault }
    }
}

/// List snapshot sets
#[utoipa::path(get, path = "/v1/snapshots/sets", operation_id = "list_snapshot_sets", tag = "cluster",
    responses((status = 200, description = "Snapshot sets in the snapshot store, oldest first.", body = SetsAnswer)))]
pub(crate) async fn list(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(SetsAnswer::from(api.endpoint.snapshot_sets().await?)))
}

/// Take a snapshot set
///
/// One snapshot of every group, the meta group included, with no move of a range in the middle. The answer comes once
/// it is durable and was read back. The audit log says who asked.
#[utoipa::path(post, path = "/v1/snapshots/sets", operation_id = "take_snapshot_set", tag = "cluster",
    request_body = TakeSetBody,
    responses((status = 202, description = "The set that was taken.", body = SetJson),
        (status = 409, description = "`changed`: there is no set now; the detail says why.")))]
pub(crate) async fn take(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(TakeSetBody {}): JsonBody<TakeSetBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor) = (api.endpoint.clone(), actor(&request));
    let taken = to_the_end(async move { endpoint.take_snapshot_set(actor).await }).await?;
    Ok(HttpResponse::Accepted().json(SetJson::from(taken)))
}

/// Verify a snapshot set
///
/// Verifies each of its snapshots, and that they go together. A set that cannot be used is no error: `whole` is false
/// then.
#[utoipa::path(post, path = "/v1/snapshots/sets/verify", operation_id = "verify_snapshot_set", tag = "cluster",
    request_body = SetBody,
    responses((status = 200, description = "The set, and what is in it or wrong with it.", body = VerifiedSetAnswer),
        (status = 404, description = "`not_found`: there is no such set.")))]
pub(crate) async fn verify(
    api: Data<Api>,
    JsonBody(body): JsonBody<SetBody>,
) -> Result<HttpResponse, Problem> {
    let examined = api.endpoint.verify_snapshot_set(&body.set.0).await?;
    Ok(HttpResponse::Ok().json(VerifiedSetAnswer::from(examined)))
}
