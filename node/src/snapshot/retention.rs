//! Which snapshots of a group may go.
//!
//! Plain decisions on what a listing showed; nothing here deletes.

use std::{num::NonZeroUsize, time::Duration};

use super::{
    manifest::{Manifest, SnapshotId},
    set::SetManifest,
};

/// Age at which data without a manifest are surely of an upload that never ended. An upload takes seconds.
pub const ORPHAN_AGE_MS: u64 = 3_600_000;

/// Which snapshots of a group stay. The newest always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// At most so many.
    pub keep: NonZeroUsize,
    /// None that is older, by the clock of the member that took it; none: whatever their age.
    pub max_age: Option<Duration>,
}

/// The snapshots that may go, oldest first; never the newest.
#[must_use]
pub fn expired(manifests: &[Manifest], retention: Retention, now_unix_ms: u64) -> Vec<&Manifest> {
    let mut by_age: Vec<&Manifest> = manifests.iter().collect();
    by_age.sort_unstable_by(|left, right| left.age_order().cmp(&right.age_order()));
    by_age.pop();
    let kept_beside_newest = retention.keep.get() - 1;
    let beyond_count = by_age.len().saturating_sub(kept_beside_newest);
    let max_age_ms = retention.max_age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let too_old = |manifest: &Manifest| {
        max_age_ms.is_some_and(|max| manifest.created_unix_ms.saturating_add(max) < now_unix_ms)
    };
    let numbered = by_age.into_iter().enumerate();
    numbered.filter(|(at, manifest)| *at < beyond_count || too_old(manifest)).map(|(_, m)| m).collect()
}

/// Those of `expired` that the newest set does not name: it can be restored as long as it is the newest.
#[must_use]
pub fn outside_newest_set<'m>(expired: Vec<&'m Manifest>, newest: Option<&SetManifest>) -> Vec<&'m Manifest> {
    let named = |manifest: &Manifest| newest.is_some_and(|set| set.names(manifest.group, &manifest.snapshot));
    expired.into_iter().filter(|manifest| !named(manifest)).collect()
}

/// Whether data without a manifest may be deleted.
#[must_use]
pub fn is_orphan(snapshot: &SnapshotId, now_unix_ms: u64) -> bool {
    snapshot.created_unix_ms().saturating_add(ORPHAN_AGE_MS) < now_unix_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{log::group_number::GroupNumber, snapshot::manifest::MANIFEST_FORMAT};

    fn manifest(revision: u64, created_unix_ms: u64) -> Manifest {
        Manifest {
            format_version: MANIFEST_FORMAT,
            cluster: "c".parse().unwrap(),
            group: GroupNumber::new(1).unwrap(),
            snapshot: SnapshotId::new(created_unix_ms, revision, 1),
            log_index: revision,
            log_term: 1,
            revision,
            incarnation: 0,
            map_epoch: 1,
            size_bytes: 1,
            stored_bytes: 1,
            sha256: String::new(),
            created_unix_ms,
            member: 1,
        }
    }

    fn expired_revisions(manifests: &[Manifest], keep: usize, max_age_ms: Option<u64>) -> Vec<u64> {
        let retention = Retention {
            keep: NonZeroUsize::new(keep).unwrap(),
            max_age: max_age_ms.map(Duration::from_millis),
        };
        expired(manifests, retention, 10_000).iter().map(|m| m.revision).collect()
    }

    #[test]
    fn the_newest_by_revision_stay_whatever_the_clock_said() {
        let manifests = [manifest(30, 1_000), manifest(10, 9_000), manifest(20, 5_000)];
        assert_eq!(expired_revisions(&manifests, 1, None), [10, 20]);
        assert_eq!(expired_revisions(&manifests, 2, None), [10]);
        assert!(expired_revisions(&manifests, 3, None).is_empty());
        assert!(expired_revisions(&manifests[..1], 1, None).is_empty(), "the last one is never expired");
        assert!(expired_revisions(&[], 1, None).is_empty());
    }

    #[test]
    fn old_ones_go_but_for_the_newest() {
        let manifests = [manifest(10, 1_000), manifest(20, 5_000), manifest(30, 6_000), manifest(40, 2_000)];
        assert_eq!(expired_revisions(&manifests, 9, Some(5_000)), [10]);
        assert_eq!(expired_revisions(&manifests, 9, Some(4_500)), [10, 20]);
        assert_eq!(expired_revisions(&manifests, 2, Some(5_000)), [10, 20]);
        assert_eq!(expired_revisions(&manifests, 9, Some(0)), [10, 20, 30], "the newest stays");
    }

    #[test]
    fn only_old_data_without_a_manifest_are_orphans() {
        let snapshot = SnapshotId::new(1_000_000, 1, 1);
        assert!(!is_orphan(&snapshot, 1_000_000 + ORPHAN_AGE_MS));
        assert!(is_orphan(&snapshot, 1_000_001 + ORPHAN_AGE_MS));
        assert!(!is_orphan(&snapshot, 5), "a clock that was set back deletes nothing");
    }
}
