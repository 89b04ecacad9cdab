//! The snapshot sets of a cluster in a store: `cluster/<id>/set/<set>.json`, each naming snapshots that stand beside
//! it.

use super::{CatalogError, SnapshotCatalog};
use crate::{
    log::group_number::GroupNumber,
    snapshot::{
        manifest::{Manifest, ManifestFault, SnapshotId},
        set::{SetId, SetManifest, SetMember, set_object, set_prefix},
        store::{ObjectName, StoreError},
    },
};

impl SnapshotCatalog {
    /// Writes the description of a set whose snapshots are all there. It exists once this returns.
    ///
    /// # Errors
    /// As the store; [`StoreError::AlreadyExists`] when the same member made another at the same millisecond and map epoch.
    pub async fn write_set(&self, set: &SetManifest) -> Result<(), CatalogError> {
        let object = set.object()?;
        let json = serde_json::to_vec_pretty(set).map_err(|err| CatalogError::Manifest {
            object: object.clone(),
            fault: ManifestFault::Content { reason: err.to_string() },
        })?;
        Ok(self.put_manifest(&object, json.into()).await?)
    }

    /// The sets of the cluster, oldest first. Those whose description cannot be used are left out with a warning.
    ///
    /// # Errors
    /// As the store.
    pub async fn sets(&self) -> Result<Vec<SetManifest>, CatalogError> {
        let mut sets = Vec::new();
        for info in self.store.list(&set_prefix(&self.cluster)).await? {
            match self.read_set(&info.name).await {
                Ok(set) => sets.push(set),
                // Deleted since the listing.
                Err(CatalogError::Store(StoreError::NotFound { .. })) => {}
                Err(err @ CatalogError::Manifest { .. }) => {
                    tracing::warn!(object = %info.name, error = %err, "left out a snapshot set");
                }
                Err(err) => return Err(err),
            }
        }
        sets.sort_unstable_by(|left, right| left.age_order().cmp(&right.age_order()));
        Ok(sets)
    }

    /// One set's description.
    ///
    /// # Errors
    /// [`CatalogError::UnknownSet`], or as the store.
    pub async fn find_set(&self, set: &SetId) -> Result<SetManifest, CatalogError> {
        match self.read_set(&set_object(&self.cluster, set)?).await {
            Err(CatalogError::Store(StoreError::NotFound { .. })) => {
                Err(CatalogError::UnknownSet { set: set.clone() })
            }
            result => result,
        }
    }

    /// The manifest of one of a set's snapshots.
    ///
    /// # Errors
    /// [`CatalogError::OtherSnapshot`] where it is not there, or not the one that the set was made of; as
    /// [`SnapshotCatalog::find`].
    pub async fn manifest_in(&self, set: &SetManifest, member: &SetMember) -> Result<Manifest, CatalogError> {
        let other = || {
            let (set, group, snapshot) = (set.set.clone(), member.group, member.snapshot.clone());
            CatalogError::OtherSnapshot { set, group, snapshot }
        };
        match self.find(member.group, &member.snapshot).await {
            Ok(manifest) if manifest.sha256 == member.sha256 && manifest.log_index == member.log_index => {
                Ok(manifest)
            }
            Ok(_) | Err(CatalogError::Unknown { .. }) => Err(other()),
            Err(err) => Err(err),
        }
    }

    /// Deletes the description of a set; its snapshots stay.
    ///
    /// # Errors
    /// As the store.
    pub async fn delete_set(&self, set: &SetManifest) -> Result<(), CatalogError> {
        Ok(self.store.delete(&set.object()?).await?)
    }

    /// Deletes the sets that name a snapshot, before it goes itself: what a listing shows is whole.
    ///
    /// # Errors
    /// As the store.
    pub async fn delete_sets_with(
        &self,
        sets: &[SetManifest],
        group: GroupNumber,
        snapshot: &SnapshotId,
    ) -> Result<Vec<SetId>, CatalogError> {
        let mut deleted = Vec::new();
        for set in sets.iter().filter(|set| set.names(group, snapshot)) {
            self.delete_set(set).await?;
            deleted.push(set.set.clone());
        }
        Ok(deleted)
    }

    async fn read_set(&self, object: &ObjectName) -> Result<SetManifest, CatalogError> {
        let json = self.store.get(object).await?;
        SetManifest::decode(object, &json)
            .map_err(|fault| CatalogError::Manifest { object: object.clone(), fault })
    }
}
