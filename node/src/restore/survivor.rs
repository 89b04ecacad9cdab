//! What one member of a lost cluster has, read from its folder while it is down: the source of a forced recovery.
//!
//! It is less than what the cluster had acknowledged, by whatever this member lacked when it last ran. Only reads; the folder
//! stays as it is, but that an interrupted write of its log is completed as at any start.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use holdfast_locktable::table::LockTable;
use holdfast_partitioner::GroupId;

use super::rebuild::{At, Found};
use crate::{
    actors::{ActorHost, Role},
    log::{
        actor::{CloseLog, LogActor, LogOptions},
        error::{OpenGroupError, OpenLogError},
        group_number::{GroupNumber, GroupOutOfRange},
        identity::LogIdentity,
        opener::LogOpener,
    },
    meta::MetaTable,
    raft::{
        replay::{ReplayError, Replayed, replay},
        sink::NoSink,
        table::{Machine, Table},
    },
    snapshot::local::RaftSnapshots,
};

/// What a member has.
#[derive(Clone, Debug)]
pub struct Survivor {
    /// The states.
    pub found: Found,
    /// Entries, by group, of which the member does not know whether they were agreed on. They are in the states.
    pub undecided: BTreeMap<GroupId, u64>,
}

/// Why a member's folder is of no use.
#[derive(Debug, thiserror::Error)]
pub enum SurvivorError {
    /// The log cannot be opened: it is missing, damaged, in use, or another member's.
    #[error(transparent)]
    Log(#[from] OpenLogError),
    /// A group's part of the log is damaged.
    #[error(transparent)]
    Group(#[from] OpenGroupError),
    /// A group cannot be read.
    #[error("group {group} cannot be read: {source}")]
    Replay {
        /// The group.
        group: GroupId,
        /// Why.
        source: ReplayError,
    },
    /// A group's number is out of range.
    #[error(transparent)]
    Number(#[from] GroupOutOfRange),
    /// The folder or the system refuses.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The member does not carry all groups.
    #[error(
        "member {member} has nothing of group {group}: it carries only some of the groups, and the others are not in its folder; restore snapshots instead"
    )]
    NotCarried {
        /// The member.
        member: u64,
        /// The group.
        group: GroupId,
    },
    /// Group 0 has nothing.
    #[error("{} has no partition map: it is not the folder of a member that ran, or another one's; give the data folder of a survivor", path.display())]
    Fresh {
        /// The folder.
        path: PathBuf,
    },
}

/// Reads the folder of a member that is down.
///
/// # Errors
/// See [`SurvivorError`].
pub async fn read(folder: &Path, identity: LogIdentity) -> Result<Survivor, SurvivorError> {
    let failed = |source| SurvivorError::Io { path: folder.to_owned(), source };
    // Opening a log makes one where there is none.
    fs::read_dir(folder).map_err(failed)?;
    if fs::read_dir(folder).map_err(failed)?.next().is_none() {
        return Err(SurvivorError::Fresh { path: folder.to_owned() });
    }
    let host = ActorHost::threads().map_err(failed)?;
    let member = identity.member;
    let options = LogOptions { folder: folder.to_owned(), identity, size_limit_bytes: None, on_commit: None };
    let log = LogActor::open(options)?;
    let opener = log.opener();
    let log = host.spawn_actor(Role::Log, log);
    let read = read_groups(folder, member, &opener).await;
    // Nothing was written; what closing says does not matter.
    drop(log.send(CloseLog).await);
    if let ActorHost::Threads(arbiters) = host {
        drop(tokio::task::spawn_blocking(move || arbiters.stop()).await);
    }
    read
}

async fn read_groups(folder: &Path, member: u64, opener: &LogOpener) -> Result<Survivor, SurvivorError> {
    let mut undecided = BTreeMap::new();
    let (meta, unsure) = read_meta(folder, opener).await?;
    undecided.insert(GroupId::META, unsure);
    let fresh = || SurvivorError::Fresh { path: folder.to_owned() };
    let map = meta.state.map().ok_or_else(fresh)?;
    let placed = meta.state.placement().into_iter().flat_map(|placement| placement.groups.keys().copied());
    let mut groups = BTreeMap::new();
    for group in map.groups().into_iter().chain(placed) {
        if groups.contains_key(&group) {
            continue;
        }
        let machine = Machine::Locks { table: LockTable::new(group), sink: Arc::new(NoSink) };
        let replayed = read_group(folder, group, machine, opener).await?;
        let Some(last) = replayed.last else { return Err(SurvivorError::NotCarried { member, group }) };
        if let Table::Locks(state) = replayed.table {
            groups.insert(group, At { state, index: last.index });
        }
        undecided.insert(group, replayed.undecided);
    }
    Ok(Survivor { found: Found { meta, groups }, undecided })
}

async fn read_meta(folder: &Path, opener: &LogOpener) -> Result<(At<MetaTable>, u64), SurvivorError> {
    let machine = Machine::Meta { table: MetaTable::new(), sink: Arc::new(NoSink) };
    let replayed = read_group(folder, GroupId::META, machine, opener).await?;
    match (replayed.table, replayed.last) {
        (Table::Meta(state), Some(last)) => Ok((At { state, index: last.index }, replayed.undecided)),
        (Table::Meta(_) | Table::Locks(_), _) => Err(SurvivorError::Fresh { path: folder.to_owned() }),
    }
}

async fn read_group(
    folder: &Path,
    group: GroupId,
    machine: Machine,
    opener: &LogOpener,
) -> Result<Replayed, SurvivorError> {
    let number = GroupNumber::new(group.0)?;
    let (empty, sink) = machine.into_parts();
    let snapshots = RaftSnapshots::in_folder(folder, number);
    let log = opener.open_group(number).await?;
    replay(empty, &sink, &snapshots, log).await.map_err(|source| SurvivorError::Replay { group, source })
}
