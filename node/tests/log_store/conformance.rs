//! openraft's own suite over both stores, with the smallest state machine that satisfies it.

use std::io;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use holdfast_node::{
    log::{
        handle::LogHandle,
        memory::{FlushMode, MemoryLog},
    },
    raft::types::{LogId, Reply, TypeConfig},
};
use openraft::{
    OptionalSend, StorageError,
    entry::{RaftEntry, RaftPayload},
    storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine},
    testing::log::{StoreBuilder, Suite},
    type_config::alias::{SnapshotMetaOf, SnapshotOf, StoredMembershipOf},
};
use tempfile::TempDir;

use super::support::{OpenLog, open, options};

type Snapshot = SnapshotOf<TypeConfig, Bytes>;

/// Remembers only where it is.
#[derive(Clone, Debug, Default)]
struct Place {
    applied: Option<LogId>,
    membership: StoredMembershipOf<TypeConfig>,
    snapshot: Option<Snapshot>,
    built: std::sync::Arc<std::sync::Mutex<Option<Snapshot>>>,
}

impl RaftSnapshotBuilder<TypeConfig> for Place {
    type SnapshotData = Bytes;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let meta = SnapshotMetaOf::<TypeConfig> {
            last_log_id: self.applied,
            last_membership: self.membership.clone(),
        };
        let snapshot = Snapshot { meta, snapshot: Bytes::from_static(b"state") };
        *self.built.lock().unwrap() = Some(snapshot.clone());
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
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.snapshot = Some(Snapshot { meta: meta.clone(), snapshot: data });
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Ok(self.snapshot.clone().or_else(|| self.built.lock().unwrap().clone()))
    }
}

struct OnSqlite;

impl StoreBuilder<TypeConfig, LogHandle, Place, (OpenLog, TempDir)> for OnSqlite {
    async fn build(&self) -> Result<((OpenLog, TempDir), LogHandle, Place), StorageError<TypeConfig>> {
        let folder = tempfile::tempdir().unwrap();
        let log = open(options(folder.path())).unwrap();
        let handle = log.group(7).await;
        Ok(((log, folder), handle, Place::default()))
    }
}

struct InMemory;

impl StoreBuilder<TypeConfig, LogHandle, Place> for InMemory {
    async fn build(&self) -> Result<((), LogHandle, Place), StorageError<TypeConfig>> {
        let log = MemoryLog::new(FlushMode::Immediate);
        Ok(((), log.open_group(super::support::group(7)).unwrap(), Place::default()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_log_conforms() {
    Suite::test_all(OnSqlite).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_log_conforms() {
    Suite::test_all(InMemory).await.unwrap();
}
