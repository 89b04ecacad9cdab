//! `/v1/snapshots/…`: what is in a snapshot, whether it is whole, and deleting it.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::SnapshotJson;
use crate::{
    api::http::{
        api::{Api, actor, to_the_end},
        fields::{GroupNumber, SnapshotText, present},
        input::{JsonBody, QueryArgs},
        problem::Problem,
    },
    endpoint::types::SnapshotView,
    snapshot::{
        inspect::{Checked, Content, Examined, LocksContent, MetaContent},
        set::SetId,
    },
};

/// Which snapshot.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SnapshotArgs {
    /// Its id.
    #[param(inline)]
    snapshot: SnapshotText,
    /// Its group, where several groups have a snapshot of that id.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    group: Option<GroupNumber>,
}

/// Which snapshot.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotBody {
    #[schema(inline)]
    snapshot: SnapshotText,
    /// Its group, where several groups have a snapshot of that id.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    group: Option<GroupNumber>,
}

/// One snapshot, and what is known of its data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SnapshotAnswer {
    snapshot: SnapshotJson,
    cluster: String,
    /// The member that took it.
    member: u64,
    /// Epoch of the partition map that the group knew.
    map_epoch: u64,
    /// How many restores the group's numbers had been through.
    incarnation: u64,
    /// Whether its data are what was written, can be decoded, and obey every rule; null where they were not read.
    whole: Option<bool>,
    /// Why it cannot be used, and what to do.
    fault: Option<String>,
    /// What it holds, where it was read and is of a lock group.
    locks: Option<LocksJson>,
    /// What it holds, where it was read and is of the meta group.
    meta: Option<MetaJson>,
}

/// What the snapshot of a lock group holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LocksJson {
    /// Sessions known in the group.
    sessions: u64,
    /// Locks held.
    held: u64,
    /// Waiters.
    waiting: u64,
    /// Waiters of the longest queue.
    longest_queue: u64,
    /// Claims.
    claims: u64,
    /// All keys.
    keys: u64,
    /// Ranges of names that the group owned.
    ranges: u64,
    /// The map epoch with which it owned them.
    ownership_epoch: u64,
    /// The move that it took part in.
    moving: Option<u64>,
}

/// What the snapshot of the meta group holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MetaJson {
    /// Epoch of its partition map; 0 where it has none.
    map_epoch: u64,
    /// Groups that the map names.
    groups: u64,
    /// Members whose addresses it has.
    members: u64,
    /// Lines of the audit log.
    audit_lines: u64,
    /// The change of the map that was under way.
    change: Option<u64>,
    /// Its move.
    moving: Option<u64>,
}

/// What was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedAnswer {
    /// Always true: what is not deleted is a problem.
    deleted: bool,
    /// Older snapshot sets that named it, and went with it.
    sets: Vec<String>,
}

impl From<LocksContent> for LocksJson {
    fn from(content: LocksContent) -> Self {
        let LocksContent { counts, claims, ranges, ownership_epoch, moving } = content;
        Self {
            sessions: counts.sessions,
            held: counts.held,
            waiting: counts.waiting,
            longest_queue: counts.longest_queue,
            claims,
            keys: counts.keys,
            ranges,
            ownership_epoch: ownership_epoch.0,
            moving: moving.map(|number| number.0),
        }
    }
}

impl From<MetaContent> for MetaJson {
    fn from(content: MetaContent) -> Self {
        let MetaContent { map_epoch, groups, members, audit_lines, change, moving } = content;
        let (map_epoch, moving) = (map_epoch.0, moving.map(|number| number.0));
        Self { map_epoch, groups, members, audit_lines, change, moving }
    }
}

impl From<Examined> for SnapshotAnswer {
    fn from(examined: Examined) -> Self {
        let Examined { manifest, checked } = examined;
        let (whole, fault, locks, meta) = match checked {
            Checked::NotYet => (None, None, None, None),
            Checked::Broken { why } => (Some(false), Some(why), None, None),
            Checked::Whole(Content::Locks(locks)) => (Some(true), None, Some(locks.into()), None),
            Checked::Whole(Content::Meta(meta)) => (Some(true), None, None, Some(meta.into())),
        };
        Self {
            cluster: manifest.cluster.as_str().to_owned(),
            member: manifest.member,
            map_epoch: manifest.map_epoch,
            incarnation: manifest.incarnation,
            snapshot: SnapshotView::from(manifest).into(),
            whole,
            fault,
            locks,
            meta,
        }
    }
}

impl From<Vec<SetId>> for DeletedAnswer {
    fn from(sets: Vec<SetId>) -> Self {
        Self { deleted: true, sets: sets.into_iter().map(String::from).collect() }
    }
}

/// Show one snapshot
///
/// Its data are not read.
#[utoipa::path(get, path = "/v1/snapshots/show", operation_id = "show_snapshot", tag = "cluster", params(SnapshotArgs),
    responses((status = 200, description = "The snapshot.", body = SnapshotAnswer),
        (status = 404, description = "`not_found`: there is no such snapshot.")))]
pub(crate) async fn show(
    api: Data<Api>,
    QueryArgs(args): QueryArgs<SnapshotArgs>,
) -> Result<HttpResponse, Problem> {
    let (id, group) = (args.snapshot.0, args.group.map(GroupNumber::group));
    Ok(HttpResponse::Ok().json(SnapshotAnswer::from(api.endpoint.show_snapshot(group, &id).await?)))
}

/// Verify one snapshot
///
/// Reads it back, compares it with its digest, decodes it, and checks every rule that a state must obey. One that
/// cannot be used is no error: `whole` is false then, and `fault` says why.
#[utoipa::path(post, path = "/v1/snapshots/verify", operation_id = "verify_snapshot", tag = "cluster",
    request_body = SnapshotBody,
    responses((status = 200, description = "The snapshot, and what is in it or wrong with it.", body = SnapshotAnswer),
        (status = 404, description = "`not_found`: there is no such snapshot.")))]
pub(crate) async fn verify(
    api: Data<Api>,
    JsonBody(body): JsonBody<SnapshotBody>,
) -> Result<HttpResponse, Problem> {
    let (id, group) = (body.snapshot.0, body.group.map(GroupNumber::group));
    Ok(HttpResponse::Ok().json(SnapshotAnswer::from(api.endpoint.verify_snapshot(group, &id).await?)))
}

/// Delete one snapshot
///
/// The last good one of a group stays, and those of the newest snapshot set. The audit log says who asked.
#[utoipa::path(post, path = "/v1/snapshots/delete", operation_id = "delete_snapshot", tag = "cluster",
    request_body = SnapshotBody,
    responses((status = 200, description = "It is gone.", body = DeletedAnswer),
        (status = 404, description = "`not_found`: there is no such snapshot."),
        (status = 409, description = "`changed`: it must stay; the detail says why.")))]
pub(crate) async fn delete(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<SnapshotBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor) = (api.endpoint.clone(), actor(&request));
    let (id, group) = (body.snapshot.0, body.group.map(GroupNumber::group));
    let sets = to_the_end(async move { endpoint.delete_snapshot(group, &id, actor).await }).await?;
    Ok(HttpResponse::Ok().json(DeletedAnswer::from(sets)))
}
