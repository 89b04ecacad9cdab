//! `/v1/snapshots`. [`look`]: one of them. [`sets`]: sets of them.

pub(crate) mod look;
pub(crate) mod sets;

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    api::http::{
        api::{Api, actor, to_the_end},
        fields::{GroupNumber, present},
        input::{JsonBody, NoArgs, QueryArgs},
        problem::Problem,
    },
    endpoint::types::SnapshotView,
};

/// Takes snapshots.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeSnapshotBody {
    /// Only of this group; of all where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    group: Option<GroupNumber>,
}

/// Snapshots in the snapshot store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SnapshotsAnswer {
    snapshots: Vec<SnapshotJson>,
}

impl From<Vec<SnapshotView>> for SnapshotsAnswer {
    fn from(snapshots: Vec<SnapshotView>) -> Self {
        Self { snapshots: snapshots.into_iter().map(SnapshotJson::from).collect() }
    }
}

/// One snapshot.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SnapshotJson {
    id: String,
    group: GroupNumber,
    /// Last log index inside.
    log_index: u64,
    /// Its term.
    term: u64,
    /// The group's revision.
    revision: u64,
    size_bytes: u64,
    /// SHA-256 of its data in hex.
    sha256: String,
    /// Milliseconds since 1970 by the wall clock of the member that took it.
    created_at_ms: u64,
}

impl From<SnapshotView> for SnapshotJson {
    fn from(snapshot: SnapshotView) -> Self {
        Self {
            id: snapshot.id,
            group: snapshot.group.into(),
            log_index: snapshot.log_index,
            term: snapshot.term,
            revision: snapshot.revision.0,
            size_bytes: snapshot.size_bytes,
            sha256: snapshot.sha256,
            created_at_ms: snapshot.created_at_ms,
        }
    }
}

/// List snapshots
#[utoipa::path(get, path = "/v1/snapshots", operation_id = "list_snapshots", tag = "cluster",
    responses((status = 200, description = "Snapshots in the snapshot store.", body = SnapshotsAnswer)))]
pub(crate) async fn list(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(SnapshotsAnswer::from(api.endpoint.snapshots().await?)))
}

/// Take snapshots
///
/// The answer comes once they are durable. The audit log says who asked.
#[utoipa::path(post, path = "/v1/snapshots", operation_id = "take_snapshots", tag = "cluster", request_body = TakeSnapshotBody,
    responses((status = 202, description = "The snapshots that were taken.", body = SnapshotsAnswer),
        (status = 404, description = "`not_found`: there is no such group.")))]
pub(crate) async fn take(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<TakeSnapshotBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor, group) =
        (api.endpoint.clone(), actor(&request), body.group.map(GroupNumber::group));
    let taken = to_the_end(async move { endpoint.take_snapshot(group, actor).await }).await?;
    Ok(HttpResponse::Accepted().json(SnapshotsAnswer::from(taken)))
}
