//! What a snapshot store says, in the words of a member's answers: so that both look the same.

use holdfast_client::{
    SnapshotContent, SnapshotDetail, SnapshotLocks, SnapshotMeta, SnapshotSet, SnapshotSetMember,
    SnapshotView,
};
use holdfast_node::snapshot::{
    inspect::{Checked, Content, Examined, LocksContent, MetaContent},
    manifest::Manifest,
    set::{SetManifest, SetMember},
};

pub(super) fn view(manifest: Manifest) -> SnapshotView {
    SnapshotView {
        id: manifest.snapshot.into(),
        group: manifest.group.get(),
        log_index: manifest.log_index,
        term: manifest.log_term,
        revision: manifest.revision,
        size_bytes: manifest.size_bytes,
        sha256: manifest.sha256,
        created_at_ms: manifest.created_unix_ms,
    }
}

pub(super) fn detail(examined: Examined) -> SnapshotDetail {
    let Examined { manifest, checked } = examined;
    let (whole, fault, content) = match checked {
        Checked::NotYet => (None, None, None),
        Checked::Broken { why } => (Some(false), Some(why), None),
        Checked::Whole(content) => (Some(true), None, Some(inside(content))),
    };
    SnapshotDetail {
        cluster: manifest.cluster.to_string(),
        member: manifest.member,
        map_epoch: manifest.map_epoch,
        incarnation: manifest.incarnation,
        snapshot: view(manifest),
        whole,
        fault,
        content,
    }
}

fn inside(content: Content) -> SnapshotContent {
    match content {
        Content::Locks(LocksContent { counts, claims, ranges, ownership_epoch, moving }) => {
            SnapshotContent::Locks(SnapshotLocks {
                sessions: counts.sessions,
                held: counts.held,
                waiting: counts.waiting,
                longest_queue: counts.longest_queue,
                claims,
                keys: counts.keys,
                ranges,
                ownership_epoch: ownership_epoch.0,
                moving: moving.map(|number| number.0),
            })
        }
        Content::Meta(MetaContent { map_epoch, groups, members, audit_lines, change, moving }) => {
            let (map_epoch, moving) = (map_epoch.0, moving.map(|number| number.0));
            SnapshotContent::Meta(SnapshotMeta { map_epoch, groups, members, audit_lines, change, moving })
        }
    }
}

pub(super) fn set(set: SetManifest) -> SnapshotSet {
    let member = |SetMember { group, snapshot, log_index, sha256 }| SnapshotSetMember {
        group: group.get(),
        id: snapshot.into(),
        log_index,
        sha256,
    };
    SnapshotSet {
        id: set.set.into(),
        cluster: set.cluster.to_string(),
        map_epoch: set.map_epoch,
        snapshots: set.snapshots.into_iter().map(member).collect(),
        created_at_ms: set.created_unix_ms,
        member: set.member,
    }
}
