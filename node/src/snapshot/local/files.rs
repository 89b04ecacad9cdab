//! The files of one group's snapshots: written whole, found newest first.
//!
//! A snapshot is written beside its place, fsynced, renamed, and the folder fsynced; only then are older ones deleted.
//! This module remembers nothing and knows nothing of what is purged.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::{
    super::raft_snapshot::{self, SnapshotFault, SnapshotMeta},
    RaftSnapshotError,
};
use crate::log::{
    durable_folder::{make_folder, sync_folder},
    group_number::GroupNumber,
};

/// Where a snapshot is written before it is renamed. There is one writer per group.
const UNFINISHED: &str = "unfinished";
/// Ending of finished snapshots.
const EXTENSION: &str = "snapshot";

/// Names sort as the snapshots do.
pub(super) fn name(meta: &SnapshotMeta) -> String {
    let (index, term) = meta.last_log_id.map_or((0, 0), |id| (id.index, id.leader_id.term));
    format!("{index:020}-{term:020}.{EXTENSION}")
}

/// Makes a snapshot of these parts durable under its name, and deletes all others.
pub(super) fn write(folder: &Path, name: &str, parts: &[&[u8]]) -> Result<(), RaftSnapshotError> {
    let target = folder.join(name);
    let failed = |act| {
        let path = target.clone();
        move |source| RaftSnapshotError::Io { act, path, source }
    };
    make_folder(folder).map_err(failed("make the folder of"))?;
    let unfinished = folder.join(UNFINISHED);
    let fill = || -> io::Result<()> {
        let mut file = File::create(&unfinished)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.sync_all()
    };
    fill().map_err(failed("write"))?;
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

/// The newest snapshot that is whole.
pub(super) fn read_newest(
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
            Err(fault @ SnapshotFault::Format { .. }) => {
                return Err(RaftSnapshotError::unusable(path, fault));
            }
            Err(fault) => newest_damaged = newest_damaged.or(Some((path, fault))),
        }
    }
    match newest_damaged {
        Some((path, fault)) => Err(RaftSnapshotError::unusable(path, fault)),
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
