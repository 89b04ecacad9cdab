//! The smallest state machine that satisfies openraft.

use std::io;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use holdfast_node::{
    raft::types::{LogId, Reply, TypeConfig},
    snapshot::local::RaftSnapshots,
};
use openraft::{
    OptionalSend,
    entry::{RaftEntry, RaftPayload},
    storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine},
    type_config::alias::{SnapshotMetaOf, SnapshotOf, StoredMembershipOf},
};

/// A snapshot as openraft passes it around here.
pub(crate) type Snapshot = SnapshotOf<TypeConfig, Bytes>;

/// Remembers only where it is; its snapshots are kept as a group's are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    applied: Option<LogId>,
    membership: StoredMembershipOf<TypeConfig>,
    snapshots: RaftSnapshots,
}

impl Place {
    pub(crate) fn new(snapshots: RaftSnapshots) -> Place {
        Place { applied: None, membership: StoredMembershipOf::<TypeConfig>::default(), snapshots }
    }
}

impl RaftSnapshotBuilder<TypeConfig> for Place {
    type SnapshotData = Bytes;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let meta = SnapshotMetaOf::<TypeConfig> {
            last_log_id: self.applied,
            last_membership: self.membership.clone(),
        };
        let snapshot = Snapshot { meta, snapshot: Bytes::from_static(b"state") };
        self.snapshots.save(&snapshot.meta, &snapshot.snapshot).await?;
        Ok(snapshot)
    }
}

impl RaftStateMachine<TypeConfig> for Place {
    type SnapshotData = Bytes;
    type SnapshotBuilder = Place;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembershipOf<TypeConfig>), io::Error> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(item) = entries.next().await {
            let (entry, responder) = item?;
            self.applied = Some(entry.log_id());
            if let Some(membership) = entry.payload.get_membership() {
                self.membership = StoredMembershipOf::<TypeConfig>::new(self.applied, membership);
            }
            if let Some(responder) = responder {
                responder.send(Reply::Nothing);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Place {
        self.clone()
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOf<TypeConfig>,
        data: Bytes,
    ) -> Result<(), io::Error> {
        self.snapshots.save(meta, &data).await?;
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        let found = self.snapshots.load().await?;
        Ok(found.map(|(meta, snapshot)| Snapshot { meta, snapshot }))
    }
}
