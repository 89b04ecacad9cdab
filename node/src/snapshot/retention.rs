//! Which snapshots of a group may go.
//!
//! Plain decisions on what a listing showed; nothing here deletes.

use std::num::NonZeroUsize;

use super::manifest::{Manifest, SnapshotId};

/// Age at which data without a manifest are surely of an upload that never ended. An upload takes seconds.
pub const ORPHAN_AGE_MS: u64 = 3_600_000;

/// The snapshots beyond the newest `keep`, oldest first. At least one is always kept.
#[must_use]
pub fn expired(manifests: &[Manifest], keep: NonZeroUsize) -> Vec<&Manifest> {
    let mut by_age: Vec<&Manifest> = manifests.iter().collect();
    by_age.sort_unstable_by(|left, right| left.age_order().cmp(&right.age_order()));
    by_age.truncate(by_age.len().saturating_sub(keep.get()));
    by_age
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
            map_epoch: 1,
            size_bytes: 1,
            sha256: String::new(),
            created_unix_ms,
            member: 1,
        }
    }

    fn expired_revisions(manifests: &[Manifest], keep: usize) -> Vec<u64> {
        expired(manifests, NonZeroUsize::new(keep).unwrap()).iter().map(|m| m.revision).collect()
    }

    #[test]
    fn the_newest_by_revision_stay_whatever_the_clock_said() {
        let manifests = [manifest(30, 1_000), manifest(10, 9_000), manifest(20, 5_000)];
        assert_eq!(expired_revisions(&manifests, 1), [10, 20]);
        assert_eq!(expired_revisions(&manifests, 2), [10]);
        assert!(expired_revisions(&manifests, 3).is_empty());
        assert!(expired_revisions(&manifests[..1], 1).is_empty(), "the last one is never expired");
        assert!(expired_revisions(&[], 1).is_empty());
    }

    #[test]
    fn only_old_data_without_a_manifest_are_orphans() {
        let snapshot = SnapshotId::new(1_000_000, 1, 1);
        assert!(!is_orphan(&snapshot, 1_000_000 + ORPHAN_AGE_MS));
        assert!(is_orphan(&snapshot, 1_000_001 + ORPHAN_AGE_MS));
        assert!(!is_orphan(&snapshot, 5), "a clock that was set back deletes nothing");
    }
}
