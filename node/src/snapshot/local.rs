//! openraft's own snapshots in the member's folder: durable before anybody relies on them (rule R21).
//!
//! A snapshot is written beside its place, fsynced, renamed, and the folder fsynced; only then are older ones deleted. A
//! snapshot that is older than the one on disk is not written at all: openraft may still be building one while a newer
//! one from the leader is installed and the log before it purged.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;

use super::raft_snapshot::{self, SnapshotFault, SnapshotMeta};
use crate::{
    log::{
        durable_folder::{make_folder, sync_folder},
        group_number::GroupNumber,
    },
    raft::types::LogId,
};

/// Folder of all groups' snapshots within the member's folder.
const FOLDER: &str = "raft-snapshots";
/// Where a snapshot is written before it is renamed. There is one writer per group.
const UNFINISHED: &str = "unfinished";
/// Ending of finished snapshots.
const EXTENSION: &str = "snapshot";

/// Why a snapshot cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum RaftSnapshotError {
    /// The folder refused.
    #[error("cannot {act} the snapshot {path}: {source}; check the disk of this member")]
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
}

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
            // A damaged one must not keep a whole one from being written.
            newest.last = self.read().await.ok().flatten().and_then(|(meta, _data)| meta.last_log_id);
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
                let (folder, name, data) = (folder.clone(), file_name(meta), data.clone());
                blocking(move || write_file(&folder, &name, &[&head, &data, &digest])).await?;
            }
            Place::Memory(memory) => {
                let file: Bytes = [&head, data.as_ref(), &digest].concat().into();
                memory.0.lock().insert(self.group, file);
            }
        }
        newest.last = meta.last_log_id;
        Ok(())
    }

    /// The newest snapshot that is whole, if there is any at all. A damaged one is passed over with a warning.
    ///
    /// # Errors
    /// When the folder refuses, or there are snapshots and none is whole.
    pub async fn load(&self) -> Result<Option<(SnapshotMeta, Bytes)>, RaftSnapshotError> {
        let mut newest = self.newest.lock().await;
        let found = self.read().await?;
        newest.looked = true;
        newest.last = found.as_ref().and_then(|(meta, _data)| meta.last_log_id);
        Ok(found)
    }

    async fn read(&self) -> Result<Option<(SnapshotMeta, Bytes)>, RaftSnapshotError> {
        let group = self.group;
        match &self.place {
            Place::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || read_newest(&folder, group)).await
            }
            Place::Memory(memory) => {
                let file = memory.0.lock().get(&group).cloned();
                file.map(|file| raft_snapshot::parse(group, &file)).transpose().map_err(|fault| {
                    RaftSnapshotError::NoneWhole { path: PathBuf::from(format!("memory/{group}")), fault }
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

/// Names sort as the snapshots do.
fn file_name(meta: &SnapshotMeta) -> String {
    let (index, term) = meta.last_log_id.map_or((0, 0), |id| (id.index, id.leader_id.term));
    format!("{index:020}-{term:020}.{EXTENSION}")
}

fn write_file(folder: &Path, name: &str, parts: &[&[u8]]) -> Result<(), RaftSnapshotError> {
    let target = folder.join(name);
    let failed = |act| {
        let path = target.clone();
        move |source| RaftSnapshotError::Io { act, path, source }
    };
    make_folder(folder).map_err(failed("make the folder of"))?;
    let unfinished = folder.join(UNFINISHED);
    let write = || -> io::Result<()> {
        let mut file = File::create(&unfinished)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.sync_all()
    };
    write().map_err(failed("write"))?;
    fs::rename(&unfinished, &target).map_err(failed("rename"))?;
    sync_folder(folder).map_err(failed("make durable"))?;
    delete_others(folder, &target);
    Ok(())
}

/// Deletes what is older than the snapshot just written. What cannot be deleted costs only space.
fn delete_others(folder: &Path, kept: &Path) {
    let paths = match list(folder) {
        Ok(paths) => paths,
        Err(err) => {
            tracing::warn!(folder = %folder.display(), error = %err, "cannot list old snapshots");
            return;
        }
    };
    for path in paths.into_iter().filter(|path| path != kept) {
        if let Err(err) = fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), error = %err, "cannot delete an old snapshot");
        }
    }
}

fn read_newest(
    folder: &Path,
    group: GroupNumber,
) -> Result<Option<(SnapshotMeta, Bytes)>, RaftSnapshotError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RaftSnapshotError::Io { act: "read", path, source }
    };
    let mut paths = list(folder).map_err(failed(folder))?;
    paths.sort_unstable_by(|left, right| right.cmp(left));
    let mut newest_damaged = None;
    for path in paths {
        let file = Bytes::from(fs::read(&path).map_err(failed(&path))?);
        match raft_snapshot::parse(group, &file) {
            Ok(found) => {
                if let Some((path, fault)) = newest_damaged {
                    let path: PathBuf = path;
                    tracing::warn!(path = %path.display(), %fault, "passed over a damaged snapshot, an older one is whole");
                }
                return Ok(Some(found));
            }
            Err(fault) => newest_damaged = newest_damaged.or(Some((path, fault))),
        }
    }
    match newest_damaged {
        Some((path, fault)) => Err(RaftSnapshotError::NoneWhole { path, fault }),
        None => Ok(None),
    }
}

/// The finished snapshots in `folder`, in no order; none where it does not exist.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(err),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(EXTENSION)) {
            paths.push(path);
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests;
