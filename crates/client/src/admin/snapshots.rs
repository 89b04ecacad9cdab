//! Snapshots in the snapshot store: look into them, verify, delete; and sets of them.

use holdfast_proto::v1::{self, admin_client::AdminClient};
use serde::Serialize;

use super::{Admin, MAX_ANSWER_BYTES, SnapshotView};
use crate::error::Error;

/// One snapshot, and what is known of its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotDetail {
    /// The snapshot.
    #[serde(flatten)]
    pub snapshot: SnapshotView,
    /// Its cluster.
    pub cluster: String,
    /// The member that took it.
    pub member: u64,
    /// Epoch of the partition map that the group knew.
    pub map_epoch: u64,
    /// How many restores the group's numbers had been through.
    pub incarnation: u64,
    /// Whether its data can be used; none where they were not read.
    pub whole: Option<bool>,
    /// Why they cannot be used, and what to do.
    pub fault: Option<String>,
    /// What they hold; none where they were not read or cannot be used.
    pub content: Option<SnapshotContent>,
}

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotContent {
    /// Of a lock group.
    Locks(SnapshotLocks),
    /// Of the meta group.
    Meta(SnapshotMeta),
}

/// What the snapshot of a lock group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotLocks {
    /// Sessions known in the group.
    pub sessions: u64,
    /// Locks held.
    pub held: u64,
    /// Waiters.
    pub waiting: u64,
    /// Waiters of the longest queue.
    pub longest_queue: u64,
    /// Claims.
    pub claims: u64,
    /// All keys.
    pub keys: u64,
    /// Ranges of names that the group owned.
    pub ranges: u64,
    /// The map epoch with which it owned them.
    pub ownership_epoch: u64,
    /// The move that it took part in.
    pub moving: Option<u64>,
}

/// What the snapshot of the meta group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotMeta {
    /// Epoch of its partition map; 0 where it has none.
    pub map_epoch: u64,
    /// Groups that the map names.
    pub groups: u64,
    /// Members whose addresses it has.
    pub members: u64,
    /// Lines of the audit log.
    pub audit_lines: u64,
    /// The change of the map that was under way.
    pub change: Option<u64>,
    /// Its move.
    pub moving: Option<u64>,
}

/// Snapshots of all groups that go together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotSet {
    /// Its id.
    pub id: String,
    /// Its cluster.
    pub cluster: String,
    /// Epoch of its partition map.
    pub map_epoch: u64,
    /// One of every group of the map; group 0 comes first.
    pub snapshots: Vec<SnapshotSetMember>,
    /// Milliseconds since 1970 by the wall clock of the member that put it together.
    pub created_at_ms: u64,
    /// The member that put it together.
    pub member: u64,
}

/// One snapshot of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotSetMember {
    /// Its group.
    pub group: u32,
    /// Its id.
    pub id: String,
    /// Last log index inside.
    pub log_index: u64,
    /// SHA-256 of its data, hex.
    pub sha256: String,
}

/// A snapshot set, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotSetDetail {
    /// The set.
    pub set: SnapshotSet,
    /// Its snapshots, as far as they are there.
    pub snapshots: Vec<SnapshotDetail>,
    /// Why it cannot be used, and what to do; none where it can.
    pub fault: Option<String>,
}

impl Admin {
    /// One snapshot, without reading its data. The group is needed where several have a snapshot of that id.
    ///
    /// # Errors
    /// As the member answers (`NotFound` where there is none), or none did.
    pub async fn snapshot(&self, id: &str, group: Option<u32>) -> Result<SnapshotDetail, Error> {
        let request = v1::SnapshotRequest { id: id.to_owned(), group };
        ask!(self, AdminClient, get_snapshot, request).map(Into::into)
    }

    /// Has a member read a snapshot back and check it all. One that cannot be used is no error, but has a fault.
    ///
    /// # Errors
    /// As the member answers (`NotFound` where there is none), or none did.
    pub async fn verify_snapshot(&self, id: &str, group: Option<u32>) -> Result<SnapshotDetail, Error> {
        let request = v1::SnapshotRequest { id: id.to_owned(), group };
        ask!(self, AdminClient, verify_snapshot, request).map(Into::into)
    }

    /// Deletes a snapshot. Answers the older sets that named it, and went with it.
    ///
    /// # Errors
    /// As the member answers (`Changed` where it must stay), or none did.
    pub async fn delete_snapshot(
        &self,
        id: &str,
        group: Option<u32>,
        actor: &str,
    ) -> Result<Vec<String>, Error> {
        let request = v1::DeleteSnapshotRequest { id: id.to_owned(), group, actor: actor.to_owned() };
        Ok(ask!(self, AdminClient, delete_snapshot, request)?.sets)
    }

    /// Snapshot sets in the snapshot store, oldest first.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn snapshot_sets(&self) -> Result<Vec<SnapshotSet>, Error> {
        let answer = ask!(self, AdminClient, snapshot_sets, v1::SnapshotSetsRequest {})?;
        Ok(answer.sets.into_iter().map(Into::into).collect())
    }

    /// Takes snapshots of all groups that go together, and answers once they are durable and were read back.
    ///
    /// # Errors
    /// As the member answers (`Changed` where there is no set now), or none did.
    pub async fn take_snapshot_set(&self, actor: &str) -> Result<SnapshotSet, Error> {
        let request = v1::TakeSnapshotSetRequest { actor: actor.to_owned() };
        ask!(self, AdminClient, take_snapshot_set, request).map(Into::into)
    }

    /// Has a member verify each snapshot of a set, and that they go together. A set that cannot be used is no error,
    /// but has a fault.
    ///
    /// # Errors
    /// As the member answers (`NotFound` where there is none), or none did.
    pub async fn verify_snapshot_set(&self, id: &str) -> Result<SnapshotSetDetail, Error> {
        let request = v1::VerifySnapshotSetRequest { id: id.to_owned() };
        ask!(self, AdminClient, verify_snapshot_set, request).map(Into::into)
    }
}

impl From<v1::SnapshotDetail> for SnapshotDetail {
    fn from(detail: v1::SnapshotDetail) -> Self {
        use v1::snapshot_detail::Content;
        Self {
            snapshot: detail.snapshot.unwrap_or_default().into(),
            cluster: detail.cluster,
            member: detail.member,
            map_epoch: detail.map_epoch,
            incarnation: detail.incarnation,
            whole: detail.whole,
            fault: detail.fault,
            content: detail.content.map(|content| match content {
                Content::Locks(locks) => SnapshotContent::Locks(locks.into()),
                Content::Meta(meta) => SnapshotContent::Meta(meta.into()),
            }),
        }
    }
}

impl From<v1::SnapshotLocks> for SnapshotLocks {
    fn from(locks: v1::SnapshotLocks) -> Self {
        Self {
            sessions: locks.sessions,
            held: locks.held,
            waiting: locks.waiting,
            longest_queue: locks.longest_queue,
            claims: locks.claims,
            keys: locks.keys,
            ranges: locks.ranges,
            ownership_epoch: locks.ownership_epoch,
            moving: locks.moving,
        }
    }
}

impl From<v1::SnapshotMeta> for SnapshotMeta {
    fn from(meta: v1::SnapshotMeta) -> Self {
        Self {
            map_epoch: meta.map_epoch,
            groups: meta.groups,
            members: meta.members,
            audit_lines: meta.audit_lines,
            change: meta.change,
            moving: meta.moving,
        }
    }
}

impl From<v1::SnapshotSetMember> for SnapshotSetMember {
    fn from(member: v1::SnapshotSetMember) -> Self {
        Self { group: member.group, id: member.id, log_index: member.log_index, sha256: member.sha256 }
    }
}

impl From<v1::SnapshotSet> for SnapshotSet {
    fn from(set: v1::SnapshotSet) -> Self {
        Self {
            id: set.id,
            cluster: set.cluster,
            map_epoch: set.map_epoch,
            snapshots: set.snapshots.into_iter().map(Into::into).collect(),
            created_at_ms: set.created_at_ms,
            member: set.member,
        }
    }
}

impl From<v1::SnapshotSetDetail> for SnapshotSetDetail {
    fn from(detail: v1::SnapshotSetDetail) -> Self {
        Self {
            set: detail.set.unwrap_or_default().into(),
            snapshots: detail.snapshots.into_iter().map(Into::into).collect(),
            fault: detail.fault,
        }
    }
}
