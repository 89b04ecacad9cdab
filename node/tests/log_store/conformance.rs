//! openraft's own suite over both stores, and over both kinds of snapshot folder.

use holdfast_node::{
    log::{
        handle::LogHandle,
        memory::{FlushMode, MemoryLog},
    },
    raft::types::TypeConfig,
    snapshot::local::{MemorySnapshots, RaftSnapshots},
};
use openraft::{
    StorageError,
    testing::log::{StoreBuilder, Suite},
};
use tempfile::TempDir;

use super::{
    place::Place,
    support::{OpenLog, group, open, options},
};

struct OnSqlite;

impl StoreBuilder<TypeConfig, LogHandle, Place, (OpenLog, TempDir)> for OnSqlite {
    async fn build(&self) -> Result<((OpenLog, TempDir), LogHandle, Place), StorageError<TypeConfig>> {
        let folder = tempfile::tempdir().unwrap();
        let log = open(options(folder.path())).unwrap();
        let handle = log.group(7).await;
        let place = Place::new(RaftSnapshots::in_folder(folder.path(), group(7)));
        Ok(((log, folder), handle, place))
    }
}

struct InMemory;

impl StoreBuilder<TypeConfig, LogHandle, Place> for InMemory {
    async fn build(&self) -> Result<((), LogHandle, Place), StorageError<TypeConfig>> {
        let log = MemoryLog::new(FlushMode::Immediate);
        let place = Place::new(RaftSnapshots::in_memory(&MemorySnapshots::default(), group(7)));
        Ok(((), log.open_group(group(7)).unwrap(), place))
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
