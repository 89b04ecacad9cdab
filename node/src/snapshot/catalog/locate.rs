//! Finding snapshots by what people give: an id, perhaps a group; and taking one away for good.

use std::collections::BTreeSet;

use super::{CatalogError, SnapshotCatalog};
use crate::{
    log::{group_number::GroupNumber, identity::ClusterId},
    snapshot::{
        manifest::{DATA_OBJECT, MANIFEST_OBJECT, Manifest, SnapshotId, cluster_prefix, group_prefix},
        set::{SetId, SetManifest},
        store::{SnapshotStore, StoreError},
    },
};

/// Why a snapshot stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// The catalog cannot do it.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Without it nothing of its group could be restored.
    #[error("the snapshot {snapshot} is the last good one of group {group} and stays; take a new one first")]
    LastGood {
        /// The group.
        group: GroupNumber,
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// Without it the newest set could not be restored.
    #[error(
        "the snapshot {snapshot} of group {group} is part of {set}, the newest snapshot set, and stays; take a new set first"
    )]
    InNewestSet {
        /// The group.
        group: GroupNumber,
        /// The snapshot.
        snapshot: SnapshotId,
        /// The set.
        set: SetId,
    },
}

/// The clusters that a store has snapshots of, by name. Other objects of a cluster do not count: of a restored one it is
/// noted where it comes from before it takes any.
///
/// # Errors
/// As the store.
pub async fn clusters(store: &dyn SnapshotStore) -> Result<BTreeSet<ClusterId>, StoreError> {
    let objects = store.list("cluster/").await?;
    let with_snapshots = objects.iter().filter_map(|info| {
        let mut segments = info.name.as_str().split('/').skip(1);
        let (name, kind) = (segments.next()?, segments.next()?);
        if kind == "group" { name.parse().ok() } else { None }
    });
    Ok(with_snapshots.collect())
}

impl SnapshotCatalog {
    /// Which group a snapshot is of. Ids are unique within a group, and hardly ever not in the cluster.
    ///
    /// # Errors
    /// [`CatalogError::Nowhere`], [`CatalogError::Ambiguous`], or as the store.
    pub async fn group_of(&self, snapshot: &SnapshotId) -> Result<GroupNumber, CatalogError> {
        let prefix = cluster_prefix(&self.cluster);
        let mut groups = Vec::new();
        for info in self.store.list(&prefix).await? {
            let Some((group, rest)) = info.name.as_str().trim_start_matches(&prefix).split_once('/') else {
                continue;
            };
            let number = group.parse().ok().and_then(|number| GroupNumber::new(number).ok());
            if let Some(number) = number
                && rest == format!("{snapshot}/{MANIFEST_OBJECT}")
            {
                groups.push(number);
            }
        }
        match groups.as_slice() {
            [] => Err(CatalogError::Nowhere { snapshot: snapshot.clone() }),
            [group] => Ok(*group),
            _ => {
                let groups = groups.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                Err(CatalogError::Ambiguous { snapshot: snapshot.clone(), groups })
            }
        }
    }

    /// Deletes a snapshot, but not the last good one of its group, and none that the newest set names. Older sets that
    /// name it go before it. Answers which sets those were.
    ///
    /// # Errors
    /// Any [`RemoveError`]; nothing is deleted then, but for older sets where the store failed in the middle.
    pub async fn remove(&self, group: GroupNumber, snapshot: &SnapshotId) -> Result<Vec<SetId>, RemoveError> {
        let found = match self.find(group, snapshot).await {
            Ok(manifest) => Some(manifest),
            // A manifest that cannot be used is no good snapshot, and may go.
            Err(CatalogError::Manifest { .. }) => None,
            Err(err) => return Err(err.into()),
        };
        let sets = self.sets().await?;
        if let Some(newest) = sets.last().filter(|set| set.names(group, snapshot)) {
            let (snapshot, set) = (snapshot.clone(), newest.set.clone());
            return Err(RemoveError::InNewestSet { group, snapshot, set });
        }
        if let Some(manifest) = found
            && self.is_last_good(&manifest).await?
        {
            return Err(RemoveError::LastGood { group, snapshot: snapshot.clone() });
        }
        Ok(self.remove_with_sets(&sets, group, snapshot).await?)
    }

    async fn remove_with_sets(
        &self,
        sets: &[SetManifest],
        group: GroupNumber,
        snapshot: &SnapshotId,
    ) -> Result<Vec<SetId>, CatalogError> {
        let deleted = self.delete_sets_with(sets, group, snapshot).await?;
        let folder = format!("{}{snapshot}/", group_prefix(&self.cluster, group));
        self.store.delete(&format!("{folder}{MANIFEST_OBJECT}").parse()?).await?;
        self.store.delete(&format!("{folder}{DATA_OBJECT}").parse()?).await?;
        Ok(deleted)
    }

    /// Whether a snapshot is whole and no other one of its group is.
    async fn is_last_good(&self, manifest: &Manifest) -> Result<bool, CatalogError> {
        let others = self.list(manifest.group).await?;
        for other in others.iter().rev().filter(|other| other.snapshot != manifest.snapshot) {
            match self.verify(other).await {
                Ok(()) => return Ok(false),
                Err(err) if err.is_damage() => {}
                Err(err) => return Err(err),
            }
        }
        match self.verify(manifest).await {
            Ok(()) => Ok(true),
            Err(err) if err.is_damage() => Ok(false),
            Err(err) => Err(err),
        }
    }
}
