//! The verbs that look into snapshots and delete them, and those about sets of them.
//!
//! Reading them asks no group: any member that reaches the store can do it.

use holdfast_partitioner::GroupId;

use super::{Answer, ApiError, Endpoint, ErrorCode};
use crate::{
    log::group_number::GroupNumber,
    meta::group::{MetaAnswer, MetaCall},
    snapshot::{
        catalog::{CatalogError, locate::RemoveError},
        inspect::{self, Examined, ExaminedSet, InspectError},
        manifest::SnapshotId,
        set::{SetId, SetManifest},
    },
};

impl Endpoint {
    /// What is known of one snapshot without reading its data. The group is needed where several have one of that id.
    pub async fn show_snapshot(&self, group: Option<GroupId>, id: &SnapshotId) -> Answer<Examined> {
        let group = self.group_of_snapshot(group, id).await?;
        Ok(inspect::described(self.parts.snapshots.find(group, id).await?))
    }

    /// Reads a snapshot back, checks it all, and says what is in it or what is wrong with it.
    pub async fn verify_snapshot(&self, group: Option<GroupId>, id: &SnapshotId) -> Answer<Examined> {
        let group = self.group_of_snapshot(group, id).await?;
        let manifest = self.parts.snapshots.find(group, id).await?;
        Ok(inspect::examine(&self.parts.snapshots, manifest).await?)
    }

    /// Deletes a snapshot, but not the last good one of its group, and none of the newest set. Older sets that name it
    /// go with it; answers which. Recorded in the audit log.
    pub async fn delete_snapshot(
        &self,
        group: Option<GroupId>,
        id: &SnapshotId,
        actor: String,
    ) -> Answer<Vec<SetId>> {
        let group = self.group_of_snapshot(group, id).await?;
        let target = format!("snapshot {id} of group {group}");
        let delete = || async { Ok(self.parts.snapshots.remove(group, id).await?) };
        self.audited("delete_snapshot", &target, "", &actor, delete).await
    }

    /// The snapshot sets in the snapshot store, oldest first.
    pub async fn snapshot_sets(&self) -> Answer<Vec<SetManifest>> {
        Ok(self.parts.snapshots.sets().await?)
    }

    /// Reads all snapshots of a set back, checks them, and that they go together.
    pub async fn verify_snapshot_set(&self, id: &SetId) -> Answer<ExaminedSet> {
        let set = self.parts.snapshots.find_set(id).await?;
        Ok(inspect::examine_set(&self.parts.snapshots, set, |_| {}).await?)
    }

    /// Takes a set of snapshots of all groups that go together, and answers once it is durable and was read back.
    /// Recorded in the audit log.
    pub async fn take_snapshot_set(&self, actor: String) -> Answer<SetManifest> {
        let take = || async {
            match self.meta_call(MetaCall::TakeSnapshotSet).await? {
                MetaAnswer::SnapshotSet(set) => Ok(*set),
                _ => Err(ApiError::no_leader(GroupId::META)),
            }
        };
        self.audited("take_snapshot_set", "all groups", "", &actor, take).await
    }

    async fn group_of_snapshot(&self, group: Option<GroupId>, id: &SnapshotId) -> Answer<GroupNumber> {
        match group {
            Some(group) => GroupNumber::new(group.0).map_err(|error| ApiError::invalid(error.to_string())),
            None => Ok(self.parts.snapshots.group_of(id).await?),
        }
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        let code = match &error {
            CatalogError::Unknown { .. } | CatalogError::Nowhere { .. } | CatalogError::UnknownSet { .. } => {
                ErrorCode::NotFound
            }
            CatalogError::Ambiguous { .. } => ErrorCode::InvalidArgument,
            CatalogError::Store(_)
            | CatalogError::Damaged { .. }
            | CatalogError::OtherSnapshot { .. }
            | CatalogError::Pack { .. }
            | CatalogError::Manifest { .. } => ErrorCode::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl From<InspectError> for ApiError {
    fn from(error: InspectError) -> Self {
        match error {
            InspectError::Catalog(error) => error.into(),
            error @ (InspectError::Content { .. }
            | InspectError::Set { .. }
            | InspectError::SetEpoch { .. }
            | InspectError::NotChecked { .. }) => Self::new(ErrorCode::Internal, error.to_string()),
        }
    }
}

impl From<RemoveError> for ApiError {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Catalog(error) => error.into(),
            error @ (RemoveError::LastGood { .. } | RemoveError::InNewestSet { .. }) => {
                Self::new(ErrorCode::Changed, error.to_string())
            }
        }
    }
}
