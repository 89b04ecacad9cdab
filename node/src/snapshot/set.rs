//! The description of a snapshot set: one snapshot of every group, which together are a cluster at one map epoch.
//!
//! It is written last and only once, as a snapshot's manifest is. Which snapshots may make a set is decided in
//! [`super::consistency`]; this module knows only what is written down of it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{
    manifest::{Manifest, ManifestFault, SnapshotId},
    store::{ObjectName, StoreError},
};
use crate::{
    log::{group_number::GroupNumber, identity::ClusterId},
    raft::types::MemberId,
};

/// Version of the description that is written here.
pub const SET_FORMAT: u32 = 1;
/// What every set's id begins with, and no snapshot's.
const SET_MARK: &str = "set-";
/// Longest set id, bytes.
const MAX_ID_LEN: usize = 64;

/// Name of a set: when it was taken (Unix milliseconds, 14 digits), the map epoch, the member that put it together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SetId(String);

/// The text is no set id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no id of a snapshot set; `holdfast snapshots sets` shows them")]
pub struct InvalidSetId {
    /// What was given.
    pub text: String,
}

impl SetId {
    /// The id of a set that is put together now.
    #[must_use]
    pub fn new(created_unix_ms: u64, map_epoch: u64, member: MemberId) -> SetId {
        SetId(format!("{SET_MARK}{created_unix_ms:014}-e{map_epoch}-m{member}"))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a text means a set, not a snapshot.
    #[must_use]
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(SET_MARK)
    }
}

impl FromStr for SetId {
    type Err = InvalidSetId;

    fn from_str(text: &str) -> Result<SetId, InvalidSetId> {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let rest = text.strip_prefix(SET_MARK).unwrap_or_default();
        if !rest.is_empty() && text.len() <= MAX_ID_LEN && rest.bytes().all(letter) {
            Ok(SetId(text.to_owned()))
        } else {
            Err(InvalidSetId { text: text.to_owned() })
        }
    }
}

impl TryFrom<String> for SetId {
    type Error = InvalidSetId;

    fn try_from(text: String) -> Result<SetId, InvalidSetId> {
        text.parse()
    }
}

impl From<SetId> for String {
    fn from(id: SetId) -> String {
        id.0
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is known of one set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetManifest {
    /// Version of this description.
    pub format_version: u32,
    /// The cluster.
    pub cluster: ClusterId,
    /// The set.
    pub set: SetId,
    /// Epoch of the partition map in the snapshot of group 0; every other group owned then what that map gives it.
    pub map_epoch: u64,
    /// One snapshot of every group of the map, by group; group 0 is the first.
    pub snapshots: Vec<SetMember>,
    /// When it was put together, Unix milliseconds by its member's clock. For people; nothing is decided by it.
    pub created_unix_ms: u64,
    /// The member that put it together: the leader of group 0.
    pub member: MemberId,
}

/// One snapshot of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMember {
    /// Its group.
    pub group: GroupNumber,
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// Index of the last entry in it.
    pub log_index: u64,
    /// SHA-256 of its data as its manifest has it, lower-case hex.
    pub sha256: String,
}

impl From<&Manifest> for SetMember {
    fn from(manifest: &Manifest) -> Self {
        Self {
            group: manifest.group,
            snapshot: manifest.snapshot.clone(),
            log_index: manifest.log_index,
            sha256: manifest.sha256.clone(),
        }
    }
}

impl SetManifest {
    /// Describes a set of these snapshots, one per group.
    #[must_use]
    pub fn of(
        cluster: &ClusterId,
        map_epoch: u64,
        snapshots: &[Manifest],
        member: MemberId,
        now_unix_ms: u64,
    ) -> SetManifest {
        let mut snapshots: Vec<SetMember> = snapshots.iter().map(SetMember::from).collect();
        snapshots.sort_unstable_by_key(|one| one.group);
        SetManifest {
            format_version: SET_FORMAT,
            cluster: cluster.clone(),
            set: SetId::new(now_unix_ms, map_epoch, member),
            map_epoch,
            snapshots,
            created_unix_ms: now_unix_ms,
            member,
        }
    }

    /// Where it stands.
    ///
    /// # Errors
    /// Never for ids made here; the store's rule for names decides.
    pub fn object(&self) -> Result<ObjectName, StoreError> {
        set_object(&self.cluster, &self.set)
    }

    /// Whether the set names a snapshot.
    #[must_use]
    pub fn names(&self, group: GroupNumber, snapshot: &SnapshotId) -> bool {
        self.snapshots.iter().any(|one| one.group == group && one.snapshot == *snapshot)
    }

    /// Order of the sets of one cluster, oldest first: by the log of group 0, which never goes back; clocks do.
    #[must_use]
    pub fn age_order(&self) -> (u64, u64, &SetId) {
        let meta = self.snapshots.first().map_or(0, |meta| meta.log_index);
        (meta, self.created_unix_ms, &self.set)
    }

    /// Decodes the description that stands at `object`.
    ///
    /// # Errors
    /// Any [`ManifestFault`].
    pub fn decode(object: &ObjectName, json: &[u8]) -> Result<SetManifest, ManifestFault> {
        #[derive(Deserialize)]
        struct Version {
            format_version: u32,
        }
        let content = |err: serde_json::Error| ManifestFault::Content { reason: err.to_string() };
        // The version first: what else a newer one holds is unknown.
        let Version { format_version: found } = serde_json::from_slice(json).map_err(content)?;
        if found > SET_FORMAT {
            return Err(ManifestFault::Format { found });
        }
        if found < SET_FORMAT {
            return Err(ManifestFault::Version { found });
        }
        let set: SetManifest = serde_json::from_slice(json).map_err(content)?;
        let ordered = set.snapshots.is_sorted_by(|one, next| one.group < next.group);
        if !ordered || set.snapshots.first().is_none_or(|first| first.group.get() != 0) {
            let reason = "it does not name one snapshot per group, of group 0 first".to_owned();
            return Err(ManifestFault::Content { reason });
        }
        if set.object().as_ref() != Ok(object) {
            return Err(ManifestFault::Misplaced { found: format!("the set {}", set.set) });
        }
        Ok(set)
    }
}

/// What the names of all sets of a cluster begin with.
pub(crate) fn set_prefix(cluster: &ClusterId) -> String {
    format!("cluster/{cluster}/set/")
}

/// Where a set's description stands.
pub(crate) fn set_object(cluster: &ClusterId, set: &SetId) -> Result<ObjectName, StoreError> {
    format!("{}{set}.json", set_prefix(cluster)).parse()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn member_of(group: u32, log_index: u64) -> SetMember {
        SetMember {
            group: GroupNumber::new(group).unwrap(),
            snapshot: SnapshotId::new(1_000, log_index, 1),
            log_index,
            sha256: "ab".to_owned(),
        }
    }

    pub(crate) fn set(created_unix_ms: u64, meta_index: u64) -> SetManifest {
        SetManifest {
            format_version: SET_FORMAT,
            cluster: "c-1".parse().unwrap(),
            set: SetId::new(created_unix_ms, 4, 2),
            map_epoch: 4,
            snapshots: vec![member_of(0, meta_index), member_of(1, 70)],
            created_unix_ms,
            member: 2,
        }
    }

    fn fault(set: &SetManifest) -> ManifestFault {
        let object = set.object().unwrap();
        SetManifest::decode(&object, &serde_json::to_vec(set).unwrap()).unwrap_err()
    }

    #[test]
    fn set_ids_are_checked_and_are_no_snapshot_ids() {
        let id = SetId::new(1_700_000_000_123, 42, 3);
        assert_eq!(id.as_str(), "set-01700000000123-e42-m3");
        assert_eq!(id.as_str().parse::<SetId>().unwrap(), id);
        assert!(id.as_str().parse::<SnapshotId>().is_err() && SetId::is_meant_by(id.as_str()));
        for bad in ["", "set-", "1-2", "set-A", "set-a/b", "set-.", &format!("set-{}", "x".repeat(64))] {
            assert!(bad.parse::<SetId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_description_is_read_back_only_where_it_belongs() {
        let good = set(1_000, 9);
        let object = good.object().unwrap();
        assert_eq!(object.as_str(), "cluster/c-1/set/set-00000000001000-e4-m2.json");
        let json = serde_json::to_vec(&good).unwrap();
        assert_eq!(SetManifest::decode(&object, &json).unwrap(), good);
        let other = set_object(&good.cluster, &SetId::new(1, 4, 2)).unwrap();
        assert!(matches!(SetManifest::decode(&other, &json), Err(ManifestFault::Misplaced { .. })));
        assert!(SetManifest::decode(&object, &json[1..]).is_err());
    }

    #[test]
    fn descriptions_that_make_no_sense_are_refused() {
        let newer = SetManifest { format_version: SET_FORMAT + 1, ..set(1_000, 9) };
        assert_eq!(fault(&newer), ManifestFault::Format { found: 2 });
        let older = SetManifest { format_version: 0, ..set(1_000, 9) };
        assert_eq!(fault(&older), ManifestFault::Version { found: 0 });
        let none = SetManifest { snapshots: Vec::new(), ..set(1_000, 9) };
        let no_meta = SetManifest { snapshots: vec![member_of(1, 1)], ..set(1_000, 9) };
        let twice = SetManifest { snapshots: vec![member_of(0, 1), member_of(0, 2)], ..set(1_000, 9) };
        for bad in [none, no_meta, twice] {
            assert!(matches!(fault(&bad), ManifestFault::Content { .. }), "{bad:?}");
        }
    }

    #[test]
    fn sets_are_ordered_by_the_log_of_group_0() {
        let (older, newer) = (set(9_000, 5), set(1_000, 6));
        assert!(older.age_order() < newer.age_order());
        assert!(newer.names(GroupNumber::new(1).unwrap(), &SnapshotId::new(1_000, 70, 1)));
        assert!(!newer.names(GroupNumber::new(2).unwrap(), &SnapshotId::new(1_000, 70, 1)));
    }
}
