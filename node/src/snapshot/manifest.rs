//! The description that stands beside each snapshot in the store; a snapshot without one does not exist.

use std::{fmt, str::FromStr};

use holdfast_locktable::ids::Revision;
use serde::{Deserialize, Serialize};

use super::{
    compression::Content,
    source::Capture,
    store::{ObjectName, StoreError},
};
use crate::{
    log::{group_number::GroupNumber, identity::ClusterId},
    raft::types::MemberId,
};

mod v1;

/// Version of the manifest and of the snapshot's framing that is written here: data packed with zstd. Another version has
/// other fields, at least one: a manifest that differs from this version in nothing but the number is damaged.
pub const MANIFEST_FORMAT: u32 = 2;
/// The version before: data as they are. It is still read.
pub const PLAIN_FORMAT: u32 = 1;

/// Longest snapshot id, bytes.
const MAX_ID_LEN: usize = 64;

/// Name of a snapshot within its group: when it was taken (Unix milliseconds, 14 digits), its revision, the member.
/// Only the beginning means something to this crate; the rest keeps ids apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotId(String);

/// The text is no snapshot id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no snapshot id; `holdfast snapshots list` shows them")]
pub struct InvalidSnapshotId {
    /// What was given.
    pub text: String,
}

impl SnapshotId {
    /// The id of a snapshot that is taken now.
    #[must_use]
    pub fn new(created_unix_ms: u64, revision: u64, member: MemberId) -> SnapshotId {
        SnapshotId(format!("{created_unix_ms:014}-{revision:016}-m{member}"))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the snapshot was begun, Unix milliseconds by its member's clock.
    #[must_use]
    pub fn created_unix_ms(&self) -> u64 {
        self.0.split('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

impl FromStr for SnapshotId {
    type Err = InvalidSnapshotId;

    fn from_str(text: &str) -> Result<SnapshotId, InvalidSnapshotId> {
        let (time, rest) = text.split_once('-').unwrap_or(("", ""));
        let well_formed = !time.is_empty()
            && time.bytes().all(|b| b.is_ascii_digit())
            && !rest.is_empty()
            && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if well_formed && text.len() <= MAX_ID_LEN {
            Ok(SnapshotId(text.to_owned()))
        } else {
            Err(InvalidSnapshotId { text: text.to_owned() })
        }
    }
}

impl TryFrom<String> for SnapshotId {
    type Error = InvalidSnapshotId;

    fn try_from(text: String) -> Result<SnapshotId, InvalidSnapshotId> {
        text.parse()
    }
}

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> String {
        id.0
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is known of one snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this description: [`MANIFEST_FORMAT`], or [`PLAIN_FORMAT`] for one that an older Holdfast wrote.
    pub format_version: u32,
    /// The cluster.
    pub cluster: ClusterId,
    /// The group.
    pub group: GroupNumber,
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// Index of the last entry in it.
    pub log_index: u64,
    /// Term of that entry.
    pub log_term: u64,
    /// The group's revision at that point.
    pub revision: u64,
    /// How many disaster restores the group's numbers had been through: the high bits of the revision.
    pub incarnation: u64,
    /// Epoch of the partition map that the group knew.
    pub map_epoch: u64,
    /// Length of the data, unpacked, bytes.
    pub size_bytes: u64,
    /// Length of the data as they stand in the store, bytes.
    pub stored_bytes: u64,
    /// SHA-256 of the data as they stand in the store, lower-case hex: what `sha256sum` says of the object.
    pub sha256: String,
    /// When it was taken, Unix milliseconds by its member's clock. For people; nothing is decided by it.
    pub created_unix_ms: u64,
    /// The member that took it.
    pub member: MemberId,
}

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// It is not the JSON of a manifest.
    #[error("it cannot be decoded: {reason}")]
    Content {
        /// What the decoder said.
        reason: String,
    },
    /// A newer version wrote it.
    #[error("it has format {found}, newer than the {MANIFEST_FORMAT} this version of Holdfast knows")]
    Format {
        /// Its version.
        found: u32,
    },
    /// Its version is not the one that was written.
    #[error("it is damaged: it says format {found}, and all else in it is of format {MANIFEST_FORMAT}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// It describes another snapshot than the one it stands beside.
    #[error("it describes {found}")]
    Misplaced {
        /// Where it belongs.
        found: String,
    },
}

impl ManifestFault {
    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            ManifestFault::Format { .. } => "run the newer version",
            ManifestFault::Content { .. }
            | ManifestFault::Version { .. }
            | ManifestFault::Misplaced { .. } => "take a new snapshot, and restore from another one",
        }
    }
}

impl Manifest {
    /// Describes a capture whose data are not stored yet; [`Manifest::stored`] says the rest.
    #[must_use]
    pub fn of(
        cluster: &ClusterId,
        group: GroupNumber,
        capture: &Capture,
        member: MemberId,
        now_unix_ms: u64,
    ) -> Manifest {
        Manifest {
            format_version: MANIFEST_FORMAT,
            cluster: cluster.clone(),
            group,
            snapshot: SnapshotId::new(now_unix_ms, capture.revision, member),
            incarnation: Revision(capture.revision).incarnation(),
            log_index: capture.last_log_id.index,
            log_term: capture.last_log_id.leader_id.term,
            revision: capture.revision,
            map_epoch: capture.map_epoch,
            size_bytes: capture.data.len() as u64,
            stored_bytes: 0,
            sha256: String::new(),
            created_unix_ms: now_unix_ms,
            member,
        }
    }

    /// The same with what was stored.
    #[must_use]
    pub fn stored(self, content: Content) -> Manifest {
        let Content { size_bytes, stored_bytes, sha256 } = content;
        Manifest { size_bytes, stored_bytes, sha256, ..self }
    }

    /// Where the manifest stands.
    ///
    /// # Errors
    /// Never for ids made here; the store's rule for names decides.
    pub fn manifest_object(&self) -> Result<ObjectName, StoreError> {
        format!("{}{}", self.folder(), MANIFEST_OBJECT).parse()
    }

    /// Where the data stand.
    ///
    /// # Errors
    /// Never for ids made here; the store's rule for names decides.
    pub fn data_object(&self) -> Result<ObjectName, StoreError> {
        format!("{}{}", self.folder(), DATA_OBJECT).parse()
    }

    fn folder(&self) -> String {
        format!("{}{}/", group_prefix(&self.cluster, self.group), self.snapshot)
    }

    /// Decodes the manifest that stands at `object`.
    ///
    /// # Errors
    /// Any [`ManifestFault`].
    pub fn decode(object: &ObjectName, json: &[u8]) -> Result<Manifest, ManifestFault> {
        #[derive(Deserialize)]
        struct Version {
            format_version: u32,
        }
        let content = |err: serde_json::Error| ManifestFault::Content { reason: err.to_string() };
        // The version first: what else a newer manifest holds is unknown.
        let Version { format_version } = serde_json::from_slice(json).map_err(content)?;
        let manifest: Manifest = match format_version {
            MANIFEST_FORMAT => serde_json::from_slice(json).map_err(content)?,
            found if is_of_this_format(object, json) => return Err(ManifestFault::Version { found }),
            PLAIN_FORMAT => v1::decode(json).map_err(content)?,
            found if found > MANIFEST_FORMAT => return Err(ManifestFault::Format { found }),
            found => return Err(ManifestFault::Version { found }),
        };
        if manifest.manifest_object().as_ref() != Ok(object) {
            return Err(ManifestFault::Misplaced { found: manifest.folder() });
        }
        Ok(manifest)
    }

    /// Order of snapshots of one group, oldest first. Revisions never go back, not even over a restore; clocks do.
    #[must_use]
    pub fn age_order(&self) -> (u64, u64, u64, &SnapshotId) {
        (self.revision, self.log_index, self.created_unix_ms, &self.snapshot)
    }
}

/// Whether a manifest has exactly the fields of this format and is in its place, whatever version it gives.
fn is_of_this_format(object: &ObjectName, json: &[u8]) -> bool {
    let read = || -> serde_json::Result<bool> {
        let manifest: Manifest = serde_json::from_slice(json)?;
        let same = serde_json::to_value(&manifest)? == serde_json::from_slice::<serde_json::Value>(json)?;
        Ok(same && manifest.manifest_object().as_ref() == Ok(object))
    };
    read().unwrap_or(false)
}

/// Last segment of a manifest's name.
pub(crate) const MANIFEST_OBJECT: &str = "manifest.json";
/// Last segment of the data's name.
pub(crate) const DATA_OBJECT: &str = "data";

/// What the names of all objects of a cluster begin with.
pub(crate) fn cluster_prefix(cluster: &ClusterId) -> String {
    format!("cluster/{cluster}/group/")
}

/// What the names of all objects of a group begin with.
pub(crate) fn group_prefix(cluster: &ClusterId, group: GroupNumber) -> String {
    format!("{}{group}/", cluster_prefix(cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_ids_are_checked() {
        let id = SnapshotId::new(1_700_000_000_123, 42, 3);
        assert_eq!(id.as_str(), "01700000000123-0000000000000042-m3");
        assert_eq!(id.created_unix_ms(), 1_700_000_000_123);
        assert_eq!(id.as_str().parse::<SnapshotId>().unwrap(), id);
        for bad in ["", "x", "1", "1-", "-a", "a-1", "1-A", "1-a/b", "1-.", &format!("1-{}", "x".repeat(64))]
        {
            assert!(bad.parse::<SnapshotId>().is_err(), "{bad}");
        }
    }
}
