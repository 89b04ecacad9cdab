//! openraft's own snapshots in the member's folder: durable before anybody relies on them (rule R21).
//!
//! A snapshot that is older than the one on disk is not written at all: openraft may still be building one while a newer
//! one from the leader is installed and the log before it purged. How files are written and found: `files`.

mod files;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;

use super::raft_snapshot::{self, SnapshotFault, SnapshotMeta};
use crate::{log::group_number::GroupNumber, raft::types::LogId};

/// Folder of all groups' snapshots within the member's folder.
pub(crate) const FOLDER: &str = "raft-snapshots";

/// Why a snapshot cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum RaftSnapshotError {
    /// The folder refused.
    #[error("cannot {act} the snapshot {path}: {source}; see that its disk is well and has space")]
    Io {
        /// What was tried.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There are snapshots, and none is whole.
    #[error(
        "the snapshot {path} cannot be used: {fault}; there is no older one, so remove this member from the cluster and add it again with an empty folder"
    )]
    NoneWhole {
        /// The newest of them.
        path: PathBuf,
        /// What is wrong with it.
        fault: SnapshotFault,
    },
    /// A newer Holdfast wrote it; nothing older is tried instead, and it is never deleted.
    #[error("the snapshot {path} cannot be used: {fault}; run the newer version")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Says which format it has.
        fault: SnapshotFault,
    },
    /// The entries before this one are gone from the log, and no snapshot holds them.
    #[error(
        "the log of group {group} begins after entry {purged}, and no snapshot in {path} reaches that far; put the newest one back, or remove this member from the cluster and add it again with an empty folder"
    )]
    NotCovered {
        /// The group.
        group: GroupNumber,
        /// Last entry that was purged.
        purged: u64,
        /// Folder of the group's snapshots.
        path: PathBuf,
    },
    /// The snapshot cannot be encoded.
    #[error("cannot encode a snapshot of group {group}: {fault}")]
    Encode {
        /// The group.
        group: GroupNumber,
        /// Why.
        fault: SnapshotFault,
    },
    /// The thread that writes it was lost.
    #[error("the runtime is shutting down")]
    ShuttingDown,
}

impl RaftSnapshotError {
    fn unusable(path: PathBuf, fault: SnapshotFault) -> RaftSnapshotError {
        match fault {
            SnapshotFault::Format { .. } => RaftSnapshotError::Newer { path, fault },
            fault => RaftSnapshotError::NoneWhole { path, fault },
        }
    }
}

impl From<RaftSnapshotError> for io::Error {
    fn from(err: RaftSnapshotError) -> io::Error {
        io::Error::other(err)
    }
}

/// The snapshots of one group on this member. Clones are the same.
#[derive(Clone, Debug)]
pub struct RaftSnapshots {
    group: GroupNumber,
    place: Place,
    /// The newest that is durable, once it is known. Held during every access, so that they follow one another.
    newest: Arc<Mutex<Newest>>,
}

#[derive(Debug, Default)]
struct Newest {
    looked: bool,
    last: Option<LogId>,
    /// What is on disk, from the check before the group starts until it has started: the start needs it several times.
    held: Option<Found>,
}

/// A snapshot that is whole, if there is any at all.
type Found = Option<(SnapshotMeta, Bytes)>;

#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    Memory(MemorySnapshots),
}

/// The simulated folder of one member, for all its groups; it outlives crashes. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct MemorySnapshots(Arc<SyncMutex<BTreeMap<GroupNumber, Bytes>>>);

impl RaftSnapshots {
    /// Snapshots in the member's folder. There must be one of these per group and folder; clone it.
    #[must_use]
    pub fn in_folder(member_folder: &Path, group: GroupNumber) -> RaftSnapshots {
        let folder = member_folder.join(FOLDER).join(group.to_string());
        RaftSnapshots { group, place: Place::Folder(folder), newest: Arc::default() }
    }

    /// Snapshots in a simulated folder.
    #[must_use]
    pub fn in_memory(snapshots: &MemorySnapshots, group: GroupNumber) -> RaftSnapshots {
        RaftSnapshots { group, place: Place::Memory(snapshots.clone()), newest: Arc::default() }
    }

    /// Makes the snapshot durable and forgets older ones. Does nothing if a newer one is there.
    ///
    /// # Errors
    /// When it cannot be encoded or the folder refuses; what was there before is still there then.
    pub async fn save(&self, meta: &SnapshotMeta, data: &Bytes) -> Result<(), RaftSnapshotError> {
        let mut newest = self.newest.lock().await;
        if !newest.looked {
            newest.last = match self.read().await {
                Ok(found) => found.and_then(|(meta, _data)| meta.last_log_id),
                Err(err @ RaftSnapshotError::Newer { .. }) => return Err(err),
                // A damaged one must not keep a whole one from being written.
                Err(_) => None,
            };
            newest.looked = true;
        }
        if meta.last_log_id < newest.last {
            tracing::info!(group = %self.group, "kept the newer snapshot that is there");
            return Ok(());
        }
        let (head, digest) = raft_snapshot::frame(self.group, meta, data)
            .map_err(|fault| RaftSnapshotError::Encode { group: self.group, fault })?;
        match &self.place {
            Place::Folder(folder) => {
                let (folder, name, data) = (folder.clone(), files::name(meta), data.clone());
                blocking(move || files::write(&folder, &name, &[&head, &data, &digest])).await?;
            }
            Place::Memory(memory) => {
                let file: Bytes = [&head, data.as_ref(), &digest].concat().into();
                memory.0.lock().insert(self.group, file);
            }
        }
        newest.last = meta.last_log_id;
        if let Some(held) = &mut newest.held {
            *held = Some((meta.clone(), data.clone()));
        }
        Ok(())
    }

    /// The newest snapshot that is whole, if there is any at all. A damaged one is passed over with a warning.
    ///
    /// # Errors
    /// When the folder refuses, or there are snapshots and none is whole.
    pub async fn load(&self) -> Result<Option<(SnapshotMeta, Bytes)>, RaftSnapshotError> {
        let mut newest = self.newest.lock().await;
        match &newest.held {
            Some(found) => Ok(found.clone()),
            None => self.look(&mut newest).await,
        }
    }

    /// Checks, before the group starts, that the newest snapshot that is whole holds all that was purged from the log.
    /// What was read for it is kept for the loads of the start, until [`RaftSnapshots::started`].
    ///
    /// # Errors
    /// When it does not, or as [`RaftSnapshots::load`].
    pub async fn check_covers(&self, purged: Option<LogId>) -> Result<(), RaftSnapshotError> {
        let mut newest = self.newest.lock().await;
        let found = self.look(&mut newest).await?;
        let last = found.as_ref().and_then(|(meta, _data)| meta.last_log_id);
        newest.held = Some(found);
        let Some(purged) = purged.filter(|purged| last < Some(*purged)) else { return Ok(()) };
        let path = match &self.place {
            Place::Folder(folder) => folder.clone(),
            Place::Memory(_) => PathBuf::from("memory"),
        };
        Err(RaftSnapshotError::NotCovered { group: self.group, purged: purged.index, path })
    }

    /// Says that the group has started: from now on a load reads the disk, and no state stands in memory twice.
    pub async fn started(&self) {
        self.newest.lock().await.held = None;
    }

    async fn look(&self, newest: &mut Newest) -> Result<Found, RaftSnapshotError> {
        let found = self.read().await?;
        newest.looked = true;
        newest.last = found.as_ref().and_then(|(meta, _data)| meta.last_log_id);
        Ok(found)
    }

    async fn read(&self) -> Result<Found, RaftSnapshotError> {
        let group = self.group;
        match &self.place {
            Place::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || files::read_newest(&folder, group)).await
            }
            Place::Memory(memory) => {
                let file = memory.0.lock().get(&group).cloned();
                file.map(|file| raft_snapshot::parse(group, &file)).transpose().map_err(|fault| {
                    RaftSnapshotError::unusable(PathBuf::from(format!("memory/{group}")), fault)
                })
            }
        }
    }
}

async fn blocking<T, F>(act: F) -> Result<T, RaftSnapshotError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, RaftSnapshotError> + Send + 'static,
{
    tokio::task::spawn_blocking(act).await.unwrap_or(Err(RaftSnapshotError::ShuttingDown))
}

#[cfg(test)]
mod tests;
