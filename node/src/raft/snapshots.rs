//! Where a group's own snapshot is kept for its restart and for members that are too far behind.

use std::{io, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;

use super::types::SnapshotMeta;

/// The newest snapshot of one group.
#[derive(Clone, Debug)]
pub enum SnapshotStore {
    /// In memory: for simulations and tests. Clones are the same store, so that it survives a restart in the same process.
    Memory(MemorySnapshots),
}

/// A snapshot store without a disk.
#[derive(Clone, Debug, Default)]
pub struct MemorySnapshots {
    newest: Arc<Mutex<Option<(SnapshotMeta, Bytes)>>>,
}

impl SnapshotStore {
    /// The newest snapshot.
    pub(crate) async fn current(&self) -> io::Result<Option<(SnapshotMeta, Bytes)>> {
        match self {
            SnapshotStore::Memory(store) => Ok(store.newest.lock().clone()),
        }
    }

    /// Keeps a snapshot, unless there is a newer one. It is on disk when this returns.
    pub(crate) async fn save(&self, meta: &SnapshotMeta, bytes: Bytes) -> io::Result<()> {
        match self {
            SnapshotStore::Memory(store) => {
                let mut newest = store.newest.lock();
                if newest.as_ref().is_none_or(|(old, _)| old.last_log_id < meta.last_log_id) {
                    *newest = Some((meta.clone(), bytes));
                }
                Ok(())
            }
        }
    }
}
