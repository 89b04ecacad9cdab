//! The data folders of a new cluster: for each member a log of its own that begins behind the groups' states, and these.
//!
//! Everything is written beside its place and renamed at the end: the folder is there whole, or not at all.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::Prepared;
use crate::{
    actors::{ActorHost, Role},
    log::{
        actor::{CloseLog, LogActor, LogOptions},
        durable_folder::sync_folder,
        error::{OpenGroupError, OpenLogError},
        group_number::{GroupNumber, GroupOutOfRange},
        identity::LogIdentity,
    },
    raft::{
        seed::{Seed, SeedError},
        types::MemberId,
    },
    snapshot::local::RaftSnapshots,
};

/// Why the folders were not written. Nothing of them is left, but what cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is something already.
    #[error("{} is there already and is not empty; give a new folder", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The disk refuses.
    #[error("cannot {act} {}: {source}; see that its disk is well and has space", path.display())]
    Io {
        /// What was tried.
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A log cannot be made.
    #[error(transparent)]
    Log(#[from] OpenLogError),
    /// A group's log cannot be made.
    #[error(transparent)]
    Group(#[from] OpenGroupError),
    /// A group cannot be given its state.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// A group's number is out of range.
    #[error(transparent)]
    Number(#[from] GroupOutOfRange),
    /// A log was not closed.
    #[error("the log of member {member} was not closed: {why}")]
    Close {
        /// The member.
        member: MemberId,
        /// Why.
        why: String,
    },
}

/// The folder of a member within that of the cluster.
#[must_use]
pub fn member_folder(to: &Path, member: MemberId) -> PathBuf {
    to.join(format!("member-{member}"))
}

/// The data folder of a member within that of the cluster.
#[must_use]
pub fn data_folder(to: &Path, member: MemberId) -> PathBuf {
    member_folder(to, member).join("data")
}

/// Whether folders can be written below `to`: it must be empty or not there, and nothing of an earlier try beside it.
///
/// # Errors
/// [`WriteError::NotEmpty`].
pub fn check_free(to: &Path) -> Result<(), WriteError> {
    if fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) || to.is_file() {
        return Err(WriteError::NotEmpty { path: to.to_owned() });
    }
    let unfinished = unfinished(to);
    if unfinished.exists() { Err(WriteError::NotEmpty { path: unfinished }) } else { Ok(()) }
}

/// Writes the data folders of all members below `to`, which must be empty or not there. `more` adds to the folder before it
/// gets its name; it is told where that is now.
///
/// # Errors
/// See [`WriteError`].
pub async fn write(
    prepared: &Prepared,
    to: &Path,
    more: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), WriteError> {
    let failed = |act, path: &Path| {
        let path = path.to_owned();
        move |source| WriteError::Io { act, path, source }
    };
    check_free(to)?;
    let unfinished = unfinished(to);
    let written = async {
        fs::create_dir_all(&unfinished).map_err(failed("make the folder", &unfinished))?;
        write_members(prepared, &unfinished).await?;
        more(&unfinished).map_err(failed("write into", &unfinished))?;
        sync_folder(&unfinished).map_err(failed("make durable", &unfinished))?;
        fs::rename(&unfinished, to).map_err(failed("rename the folder to", to))?;
        let parent = to.parent().unwrap_or(Path::new("."));
        sync_folder(parent).map_err(failed("make durable", parent))
    };
    let written = written.await;
    if written.is_err()
        && unfinished.exists()
        && let Err(error) = fs::remove_dir_all(&unfinished)
    {
        tracing::warn!(path = %unfinished.display(), %error, "what was written so far cannot be removed");
    }
    written
}

/// Beside the folder, on the same disk.
fn unfinished(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    to.with_file_name(name)
}

async fn write_members(prepared: &Prepared, below: &Path) -> Result<(), WriteError> {
    let host = ActorHost::threads().map_err(|source| WriteError::Io {
        act: "start threads for",
        path: below.to_owned(),
        source,
    })?;
    for member in &prepared.members {
        write_member(prepared, member.id, &data_folder(below, member.id), &host).await?;
    }
    if let ActorHost::Threads(arbiters) = host {
        // Nothing is left to do there; the threads end with a moment's wait.
        let stopped = tokio::task::spawn_blocking(move || arbiters.stop()).await;
        drop(stopped);
    }
    Ok(())
}

async fn write_member(
    prepared: &Prepared,
    member: MemberId,
    folder: &Path,
    host: &ActorHost,
) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError::Io {
        act: "make the folder",
        path: folder.to_owned(),
        source,
    })?;
    let identity = LogIdentity { cluster: prepared.cluster.clone(), member };
    let options = LogOptions { folder: folder.to_owned(), identity, size_limit_bytes: None, on_commit: None };
    let log = LogActor::open(options)?;
    let opener = log.opener();
    let log = host.spawn_actor(Role::Log, log);
    for (group, restored) in &prepared.rebuilt.groups {
        if !restored.members.contains(&member) {
            continue;
        }
        let number = GroupNumber::new(group.0)?;
        let of_group = prepared.members.iter().filter(|entry| restored.members.contains(&entry.id));
        let seed = Seed {
            index: restored.index,
            voters: restored.voters.clone(),
            addresses: of_group.map(|entry| (entry.id, entry.peer.clone())).collect(),
            state: restored.state.clone(),
        };
        let snapshots = RaftSnapshots::in_folder(folder, number);
        seed.plant(&snapshots, opener.open_group(number).await?).await?;
    }
    let close = |why: String| WriteError::Close { member, why };
    let closed = log.send(CloseLog).await.map_err(|error| close(error.to_string()))?;
    closed.map_err(|failure| close(failure.to_string()))
}

#[cfg(test)]
mod tests;
