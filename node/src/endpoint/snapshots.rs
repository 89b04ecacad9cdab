//! The verbs about snapshots in the snapshot store: list, take, look into, delete; and about sets of them.
//!
//! Reading them asks no group: any member that reaches the store can do it.

use holdfast_partitioner::GroupId;

use super::{Answer, ApiError, Endpoint, ErrorCode, convert::About, types::SnapshotView};
use crate::{
    group::call::{GroupAnswer, GroupCall},
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
    /// Snapshots in the snapshot store, of all groups, oldest first.
    pub async fn snapshots(&self) -> Answer<Vec<SnapshotView>> {
        let listed = self.parts.snapshots.list_all().await?;
        let mut found: Vec<SnapshotView> = listed.into_values().flatten().map(SnapshotView::from).collect();
        found.sort_by(|a, b| (a.created_at_ms, a.group, &a.id).cmp(&(b.created_at_ms, b.group, &b.id)));
        Ok(found)
    }

    /// Takes snapshots of one lock group or of all, and answers their manifests once they are durable.
    pub async fn take_snapshot(&self, group: Option<GroupId>, actor: String) -> Answer<Vec<SnapshotView>> {
        let groups: Vec<GroupId> = match group {
            Some(group) if self.parts.router.all_groups().contains(&group) => vec![group],
            Some(group) => {
                return Err(ApiError::new(ErrorCode::NotFound, format!("there is no lock group {group}")));
            }
            None => self.parts.router.all_groups(),
        };
        let target = group.map_or_else(|| "all groups".to_owned(), |group| format!("group {group}"));
        let take = || async {
            let asked = groups.iter().map(|group| self.take_in(*group));
            futures::future::try_join_all(asked).await
        };
        self.audited("take_snapshot", &target, "", &actor, take).await
    }

    async fn take_in(&self, group: GroupId) -> Answer<SnapshotView> {
        let about = About { group, name: None, session: None };
        match self.parts.router.call(group, GroupCall::TakeSnapshot).await {
            Ok(GroupAnswer::Snapshot(taken)) => Ok(*taken),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }

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

    /// Deletes a snapshot, but not the last good one of its group, and none of the newest set. Older sets that name it go
    /// with it; answers which. Recorded in the audit log.
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

    /// Takes a set of snapshots of all groups that go together, and answers once it is durable and was read back. Recorded in
    /// the audit log.
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
