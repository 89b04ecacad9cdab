//! The snapshots of a cluster in a store: `cluster/<id>/group/<g>/<snapshot>/{data,manifest.json}`.
//!
//! The manifest is written last and only once, so what a listing shows is whole; and it is deleted first. Beside the
//! groups stand the snapshot sets ([`sets`]). [`locate`]: finding a snapshot by its id, and taking one away.

pub mod locate;
mod sets;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    compression::Keep,
    manifest::{
        DATA_OBJECT, MANIFEST_OBJECT, Manifest, ManifestFault, SnapshotId, cluster_prefix, group_prefix,
    },
    retention::{self, Retention},
    set::SetId,
    source::Capture,
    store::{ObjectName, PutMode, SnapshotStore, StoreCause, StoreError},
};
use crate::{
    log::{group_number::GroupNumber, identity::ClusterId},
    raft::types::MemberId,
};

mod transfer;

/// Why the catalog did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// The store did not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data are not what the manifest says.
    #[error(
        "the snapshot {snapshot} of group {group} is damaged: {fault}; take a new one, and restore from an older one"
    )]
    Damaged {
        /// The group.
        group: GroupNumber,
        /// The snapshot.
        snapshot: SnapshotId,
        /// What is wrong.
        fault: DataFault,
    },
    /// There is no such snapshot.
    #[error(
        "there is no usable snapshot {snapshot} of group {group}; `holdfast snapshots list` shows those there are"
    )]
    Unknown {
        /// The group.
        group: GroupNumber,
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// There is no such snapshot of any group.
    #[error("there is no snapshot {snapshot}; `holdfast snapshots list` shows those there are")]
    Nowhere {
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// There are several.
    #[error("the groups {groups} have a snapshot {snapshot} each; say with --group which is meant")]
    Ambiguous {
        /// The snapshot.
        snapshot: SnapshotId,
        /// Their groups.
        groups: String,
    },
    /// There is no such set.
    #[error("there is no usable snapshot set {set}; `holdfast snapshots sets` shows those there are")]
    UnknownSet {
        /// The set.
        set: SetId,
    },
    /// A snapshot of a set is gone, or another than the one the set was made of.
    #[error(
        "the snapshot {snapshot} of group {group} is gone, or is not the one that the set {set} was made of; take a new set, and restore from an older one"
    )]
    OtherSnapshot {
        /// The set.
        set: SetId,
        /// The group.
        group: GroupNumber,
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// The manifest cannot be used.
    #[error("the manifest {object} cannot be used: {fault}; {}", fault.advice())]
    Manifest {
        /// Where it stands.
        object: ObjectName,
        /// What is wrong.
        fault: ManifestFault,
    },
    /// The data cannot be packed.
    #[error("the data of {object} cannot be compressed: {reason}; see that this member has memory left")]
    Pack {
        /// Where they should stand.
        object: ObjectName,
        /// What the library said.
        reason: String,
    },
}

impl CatalogError {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            CatalogError::Store(err) => err.retryable(),
            CatalogError::Pack { .. } => true,
            CatalogError::Damaged { .. }
            | CatalogError::Unknown { .. }
            | CatalogError::Nowhere { .. }
            | CatalogError::Ambiguous { .. }
            | CatalogError::UnknownSet { .. }
            | CatalogError::OtherSnapshot { .. }
            | CatalogError::Manifest { .. } => false,
        }
    }

    /// What is behind it, for metrics.
    #[must_use]
    pub fn cause(&self) -> StoreCause {
        match self {
            CatalogError::Store(err) => err.cause(),
            CatalogError::Damaged { .. }
            | CatalogError::OtherSnapshot { .. }
            | CatalogError::Manifest { .. } => StoreCause::Damage,
            CatalogError::Unknown { .. }
            | CatalogError::Nowhere { .. }
            | CatalogError::Ambiguous { .. }
            | CatalogError::UnknownSet { .. }
            | CatalogError::Pack { .. } => StoreCause::Other,
        }
    }

    /// Whether what stands in the store is not what was written there.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            CatalogError::Damaged { .. }
            | CatalogError::Manifest { .. }
            | CatalogError::OtherSnapshot { .. } => true,
            CatalogError::Store(_)
            | CatalogError::Unknown { .. }
            | CatalogError::Nowhere { .. }
            | CatalogError::Ambiguous { .. }
            | CatalogError::UnknownSet { .. }
            | CatalogError::Pack { .. } => false,
        }
    }
}

/// How data differ from their manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataFault {
    /// Other length.
    #[error("{found} bytes instead of {expected}")]
    Size {
        /// Bytes found.
        found: u64,
        /// Bytes in the manifest.
        expected: u64,
    },
    /// Other content.
    #[error("its checksum is {found} instead of {expected}")]
    Checksum {
        /// Of the data.
        found: String,
        /// In the manifest.
        expected: String,
    },
    /// They cannot be unpacked.
    #[error("its data cannot be unpacked: {reason}")]
    Content {
        /// What the library said.
        reason: String,
    },
    /// No data at all.
    #[error("its data are missing")]
    Missing,
}

/// The snapshots of one cluster. Clones are the same.
#[derive(Clone, Debug)]
pub struct SnapshotCatalog {
    store: Arc<dyn SnapshotStore>,
    cluster: ClusterId,
}

impl SnapshotCatalog {
    /// The snapshots of `cluster` in `store`.
    #[must_use]
    pub fn new(store: Arc<dyn SnapshotStore>, cluster: ClusterId) -> SnapshotCatalog {
        SnapshotCatalog { store, cluster }
    }

    /// Writes a snapshot: the data, then the manifest. It exists once this returns.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when the same member took another one at the same millisecond and revision; else as the
    /// store.
    pub async fn write(
        &self,
        group: GroupNumber,
        capture: &Capture,
        member: MemberId,
        now_unix_ms: u64,
    ) -> Result<Manifest, CatalogError> {
        let manifest = Manifest::of(&self.cluster, group, capture, member, now_unix_ms);
        let (data, object) = (manifest.data_object()?, manifest.manifest_object()?);
        let content = transfer::upload(self.store.as_ref(), &data, &capture.data).await?;
        let manifest = manifest.stored(content);
        let json = serde_json::to_vec_pretty(&manifest).map_err(|err| CatalogError::Manifest {
            object: object.clone(),
            fault: ManifestFault::Content { reason: err.to_string() },
        })?;
        self.put_manifest(&object, json.into()).await?;
        Ok(manifest)
    }

    /// Writes a manifest, once. Where the store had taken it and its answer was lost, trying again finds it there.
    async fn put_manifest(&self, object: &ObjectName, json: Bytes) -> Result<(), StoreError> {
        match self.store.put(object, json.clone(), PutMode::CreateOnly).await {
            Err(StoreError::AlreadyExists { name }) => match self.store.get(object).await {
                Ok(found) if found == json => Ok(()),
                Ok(_) | Err(_) => Err(StoreError::AlreadyExists { name }),
            },
            result => result,
        }
    }

    /// The snapshots of `group`, oldest first. Those whose manifest cannot be used are left out with a warning.
    ///
    /// # Errors
    /// As the store.
    pub async fn list(&self, group: GroupNumber) -> Result<Vec<Manifest>, CatalogError> {
        self.list_under(&group_prefix(&self.cluster, group)).await
    }

    /// The snapshots of all groups, by group, oldest first.
    ///
    /// # Errors
    /// As the store.
    pub async fn list_all(&self) -> Result<BTreeMap<GroupNumber, Vec<Manifest>>, CatalogError> {
        let mut groups: BTreeMap<GroupNumber, Vec<Manifest>> = BTreeMap::new();
        for manifest in self.list_under(&cluster_prefix(&self.cluster)).await? {
            groups.entry(manifest.group).or_default().push(manifest);
        }
        Ok(groups)
    }

    async fn list_under(&self, prefix: &str) -> Result<Vec<Manifest>, CatalogError> {
        let mut manifests = Vec::new();
        for info in self.store.list(prefix).await? {
            if !info.name.as_str().ends_with(&format!("/{MANIFEST_OBJECT}")) {
                continue;
            }
            match self.read_manifest(&info.name).await {
                Ok(manifest) => manifests.push(manifest),
                // Deleted since the listing.
                Err(CatalogError::Store(StoreError::NotFound { .. })) => {}
                Err(err @ CatalogError::Manifest { .. }) => {
                    tracing::warn!(object = %info.name, error = %err, "left out a snapshot");
                }
                Err(err) => return Err(err),
            }
        }
        manifests.sort_unstable_by(|left, right| left.age_order().cmp(&right.age_order()));
        Ok(manifests)
    }

    /// One snapshot's manifest.
    ///
    /// # Errors
    /// [`CatalogError::Unknown`], or as the store.
    pub async fn find(&self, group: GroupNumber, snapshot: &SnapshotId) -> Result<Manifest, CatalogError> {
        let object = format!("{}{snapshot}/{MANIFEST_OBJECT}", group_prefix(&self.cluster, group)).parse()?;
        match self.read_manifest(&object).await {
            Err(CatalogError::Store(StoreError::NotFound { .. })) => {
                Err(CatalogError::Unknown { group, snapshot: snapshot.clone() })
            }
            result => result,
        }
    }

    async fn read_manifest(&self, object: &ObjectName) -> Result<Manifest, CatalogError> {
        let json = self.store.get(object).await?;
        Manifest::decode(object, &json)
            .map_err(|fault| CatalogError::Manifest { object: object.clone(), fault })
    }

    /// Reads a snapshot's data and checks them against the manifest.
    ///
    /// # Errors
    /// [`CatalogError::Damaged`], or as the store.
    pub async fn read(&self, manifest: &Manifest) -> Result<Bytes, CatalogError> {
        transfer::read(self.store.as_ref(), manifest, Keep::All).await
    }

    /// Checks that a snapshot's data are whole.
    ///
    /// # Errors
    /// As [`SnapshotCatalog::read`].
    pub async fn verify(&self, manifest: &Manifest) -> Result<(), CatalogError> {
        transfer::read(self.store.as_ref(), manifest, Keep::Nothing).await.map(|_nothing| ())
    }

    /// Deletes a snapshot: first the manifest, so that it does not exist any more, then the data.
    ///
    /// # Errors
    /// As the store; what is left over is deleted by a later [`SnapshotCatalog::prune`].
    pub async fn delete(&self, manifest: &Manifest) -> Result<(), CatalogError> {
        self.store.delete(&manifest.manifest_object()?).await?;
        self.store.delete(&manifest.data_object()?).await?;
        Ok(())
    }

    /// Deletes the snapshots of `group` that need not stay and that the newest set does not name, but only if the newest is
    /// whole: as long as it is not, an older one may be the last good one. `known_whole` was just taken and verified, and is not
    /// read again; where the store has a newer one all the same, that may be of another cluster with this name, and all stay.
    /// Sets that name one of them go before it, and what uploads that never ended left behind goes as well. Returns what was
    /// deleted.
    ///
    /// # Errors
    /// As [`SnapshotCatalog::read`] of the newest one.
    pub async fn prune(
        &self,
        group: GroupNumber,
        retention: Retention,
        now_unix_ms: u64,
        known_whole: Option<&SnapshotId>,
    ) -> Result<Vec<SnapshotId>, CatalogError> {
        let manifests = self.list(group).await?;
        let Some(newest) = manifests.last() else { return Ok(Vec::new()) };
        match known_whole {
            None => self.verify(newest).await?,
            Some(known) if *known == newest.snapshot => {}
            Some(known) => {
                tracing::warn!(
                    %group, %known, newest = %newest.snapshot,
                    "the store has a newer snapshot than the one just taken, so that none is deleted; a cluster that was made anew under its old name needs a prefix of its own (snapshots.store)"
                );
                self.delete_leftovers(group, now_unix_ms).await?;
                return Ok(Vec::new());
            }
        }
        let sets = self.sets().await?;
        let mut deleted = Vec::new();
        let expired = retention::expired(&manifests, retention, now_unix_ms);
        for manifest in retention::outside_newest_set(expired, sets.last()) {
            self.delete_sets_with(&sets, group, &manifest.snapshot).await?;
            self.delete(manifest).await?;
            deleted.push(manifest.snapshot.clone());
        }
        self.delete_leftovers(group, now_unix_ms).await?;
        Ok(deleted)
    }

    /// Deletes what uploads that never ended left behind: unfinished objects, and data without a manifest.
    ///
    /// # Errors
    /// As the store.
    pub async fn delete_leftovers(&self, group: GroupNumber, now_unix_ms: u64) -> Result<(), CatalogError> {
        let before = now_unix_ms.saturating_sub(retention::ORPHAN_AGE_MS);
        let swept = self.store.sweep(&group_prefix(&self.cluster, group), before).await?;
        if swept > 0 {
            tracing::info!(%group, count = swept, "deleted unfinished uploads");
        }
        self.delete_orphans(group, now_unix_ms).await
    }

    async fn delete_orphans(&self, group: GroupNumber, now_unix_ms: u64) -> Result<(), CatalogError> {
        let prefix = group_prefix(&self.cluster, group);
        let names: BTreeSet<ObjectName> =
            self.store.list(&prefix).await?.into_iter().map(|info| info.name).collect();
        for name in &names {
            let Some(folder) = name.as_str().strip_suffix(&format!("/{DATA_OBJECT}")) else { continue };
            let Ok(snapshot) = folder.trim_start_matches(&prefix).parse::<SnapshotId>() else { continue };
            let manifest: ObjectName = format!("{folder}/{MANIFEST_OBJECT}").parse()?;
            if !names.contains(&manifest) && retention::is_orphan(&snapshot, now_unix_ms) {
                tracing::info!(object = %name, "deleted data of a snapshot that was never finished");
                self.store.delete(name).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
