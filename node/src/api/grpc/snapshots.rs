//! The verbs about snapshots and sets of them, as messages. Decides nothing.

use holdfast_partitioner::GroupId;
use holdfast_proto::v1;

use super::input;
use crate::{
    endpoint::{ApiError, Endpoint, types::SnapshotView},
    snapshot::{
        inspect::{Checked, Content, Examined, ExaminedSet, LocksContent, MetaContent},
        manifest::SnapshotId,
        set::{SetId, SetManifest, SetMember},
    },
};

fn id(text: &str) -> Result<SnapshotId, ApiError> {
    text.parse::<SnapshotId>().map_err(|error| ApiError::invalid(error.to_string()))
}

pub(super) async fn show(
    endpoint: &Endpoint,
    request: v1::SnapshotRequest,
) -> Result<v1::SnapshotDetail, ApiError> {
    endpoint.show_snapshot(request.group.map(GroupId), &id(&request.id)?).await.map(Into::into)
}

pub(super) async fn verify(
    endpoint: &Endpoint,
    request: v1::SnapshotRequest,
) -> Result<v1::SnapshotDetail, ApiError> {
    endpoint.verify_snapshot(request.group.map(GroupId), &id(&request.id)?).await.map(Into::into)
}

pub(super) async fn delete(
    endpoint: &Endpoint,
    request: v1::DeleteSnapshotRequest,
) -> Result<v1::DeleteSnapshotResponse, ApiError> {
    let (id, actor) = (id(&request.id)?, input::actor(request.actor)?);
    let sets = endpoint.delete_snapshot(request.group.map(GroupId), &id, actor).await?;
    Ok(v1::DeleteSnapshotResponse { sets: sets.into_iter().map(String::from).collect() })
}

pub(super) async fn sets(endpoint: &Endpoint) -> Result<v1::SnapshotSetsResponse, ApiError> {
    let sets = endpoint.snapshot_sets().await?;
    Ok(v1::SnapshotSetsResponse { sets: sets.into_iter().map(Into::into).collect() })
}

pub(super) async fn take_set(
    endpoint: &Endpoint,
    request: v1::TakeSnapshotSetRequest,
) -> Result<v1::SnapshotSet, ApiError> {
    endpoint.take_snapshot_set(input::actor(request.actor)?).await.map(Into::into)
}

pub(super) async fn verify_set(
    endpoint: &Endpoint,
    request: v1::VerifySnapshotSetRequest,
) -> Result<v1::SnapshotSetDetail, ApiError> {
    let id = request.id.parse::<SetId>().map_err(|error| ApiError::invalid(error.to_string()))?;
    endpoint.verify_snapshot_set(&id).await.map(Into::into)
}

impl From<Examined> for v1::SnapshotDetail {
    fn from(examined: Examined) -> Self {
        use v1::snapshot_detail::Content as Inside;
        let Examined { manifest, checked } = examined;
        let (whole, fault, content) = match checked {
            Checked::NotYet => (None, None, None),
            Checked::Broken { why } => (Some(false), Some(why), None),
            Checked::Whole(Content::Locks(locks)) => (Some(true), None, Some(Inside::Locks(locks.into()))),
            Checked::Whole(Content::Meta(meta)) => (Some(true), None, Some(Inside::Meta(meta.into()))),
        };
        Self {
            cluster: manifest.cluster.as_str().to_owned(),
            member: manifest.member,
            map_epoch: manifest.map_epoch,
            incarnation: manifest.incarnation,
            snapshot: Some(SnapshotView::from(manifest).into()),
            whole,
            fault,
            content,
        }
    }
}

impl From<LocksContent> for v1::SnapshotLocks {
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

impl From<MetaContent> for v1::SnapshotMeta {
    fn from(content: MetaContent) -> Self {
        let MetaContent { map_epoch, groups, members, audit_lines, change, moving } = content;
        let (map_epoch, moving) = (map_epoch.0, moving.map(|number| number.0));
        Self { map_epoch, groups, members, audit_lines, change, moving }
    }
}

impl From<SetMember> for v1::SnapshotSetMember {
    fn from(member: SetMember) -> Self {
        let SetMember { group, snapshot, log_index, sha256 } = member;
        Self { group: group.get(), id: snapshot.into(), log_index, sha256 }
    }
}

impl From<SetManifest> for v1::SnapshotSet {
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

impl From<ExaminedSet> for v1::SnapshotSetDetail {
    fn from(examined: ExaminedSet) -> Self {
        let ExaminedSet { set, snapshots, fault } = examined;
        Self { set: Some(set.into()), snapshots: snapshots.into_iter().map(Into::into).collect(), fault }
    }
}
