//! What a member stands on: its clocks, its disk, its way to the others. The places where a simulation puts its own.
//!
//! Nothing above this module can tell which it stands on. It knows no group.

use std::{io, path::PathBuf, sync::Arc};

use holdfast_partitioner::Registry;
use tokio::sync::watch;

use super::{StartError, roster_file};
use crate::{
    actors::{ActorHost, Role},
    clock::Clock,
    config::{MemberConfig, MemberEntry, StorePlace},
    log::{
        actor::{LogActor, LogOptions},
        disk_id::DiskIdentity,
        error::LogFailure,
        group_number::GroupNumber,
        handle::LogHandle,
        identity::{ClusterId, LogIdentity},
        memory::MemoryLog,
        opener::LogOpener,
        stats::{CommitSample, LogSpace},
    },
    metrics::{
        Build,
        exporter::{Identity, Metrics},
    },
    peer::{GrpcTransport, Heard, Transport},
    snapshot::{
        folder_store::FolderStore,
        local::{MemorySnapshots, RaftSnapshots},
        s3_store::S3Store,
        store::SnapshotStore,
    },
};

/// What a member stands on.
#[derive(Debug)]
pub struct Ground {
    /// Its clocks.
    pub clock: Clock,
    /// Where its actors run.
    pub host: ActorHost,
    /// Its disk.
    pub disk: Disk,
    /// Turns to `Some` when the disk has failed.
    pub log_failures: watch::Receiver<Option<LogFailure>>,
    /// Its way to the other members.
    pub transport: Arc<dyn Transport>,
    /// Where snapshots for disaster recovery go.
    pub snapshots: Arc<dyn SnapshotStore>,
    /// What it measures with.
    pub metrics: Metrics,
    /// What it plans changes of the partition map with.
    pub strategies: Registry,
}

/// The disk of a member: its log and the snapshots that let the log be shortened.
#[derive(Clone, Debug)]
pub enum Disk {
    /// Files in the member's folder.
    Files {
        /// Opens the log's groups.
        log: LogOpener,
        /// The folder.
        folder: PathBuf,
        /// What it says of its disk.
        identity: DiskIdentity,
    },
    /// A simulated disk.
    Memory {
        /// The log.
        log: MemoryLog,
        /// The snapshots.
        snapshots: MemorySnapshots,
    },
}

impl Disk {
    /// The log of a group.
    pub(super) async fn open_group(&self, group: GroupNumber) -> Result<LogHandle, StartError> {
        match self {
            Self::Files { log, .. } => log.open_group(group).await,
            Self::Memory { log, .. } => log.open_group(group),
        }
        .map_err(StartError::of)
    }

    /// What the log takes on its disk, where it is one.
    pub(super) fn log_space(&self) -> Option<LogSpace> {
        match self {
            Self::Files { log, .. } => Some(log.space()),
            Self::Memory { .. } => None,
        }
    }

    /// The members as this one has last heard of them, where it has.
    pub(super) fn roster(&self) -> Option<Vec<MemberEntry>> {
        match self {
            Self::Files { folder, .. } => roster_file::read(folder),
            Self::Memory { .. } => None,
        }
    }

    /// openraft's own snapshots of a group.
    pub(super) fn raft_snapshots(&self, group: GroupNumber) -> RaftSnapshots {
        match self {
            Self::Files { folder, .. } => RaftSnapshots::in_folder(folder, group),
            Self::Memory { snapshots, .. } => RaftSnapshots::in_memory(snapshots, group),
        }
    }
}

impl Ground {
    /// What a member stands on in production: this machine.
    pub(super) fn of_this_machine(
        config: &MemberConfig,
        strategies: Registry,
    ) -> Result<(Self, actix::Addr<LogActor>), StartError> {
        let (member, cluster) = (config.member, config.cluster.parse::<ClusterId>().map_err(StartError::of)?);
        let metrics = measured(config)?;
        let host = ActorHost::threads().map_err(StartError::of)?;
        let instruments = metrics.instruments.clone();
        let on_commit = Arc::new(move |sample: &CommitSample| {
            instruments.raft.log_synced(sample.fsync);
            instruments.raft.log_appended(sample.oldest_wait);
        });
        let options = LogOptions {
            folder: config.data_dir.clone(),
            identity: LogIdentity { cluster: cluster.clone(), member },
            size_limit_bytes: None,
            on_commit: Some(on_commit),
        };
        let identity = DiskIdentity::open(&config.data_dir).map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::InvalidData => {
                    "bring that file back from a copy, or replace this member (`holdfast members replace`)"
                }
                _ => "check that it exists and that this user may write to it",
            };
            StartError(format!("cannot use the folder {}: {error}; {advice}", config.data_dir.display()))
        })?;
        let log = LogActor::open(options).map_err(StartError::of)?;
        let (log_failures, opener) = (log.failures(), log.opener());
        let log = host.spawn_actor(Role::Log, log);
        let snapshots = snapshot_store(config)?;
        let ground = Self {
            clock: Clock::system(),
            host,
            disk: Disk::Files { log: opener, folder: config.data_dir.clone(), identity },
            log_failures,
            transport: Arc::new(GrpcTransport::new(cluster, member, Heard::new())),
            snapshots,
            metrics,
            strategies,
        };
        Ok((ground, log))
    }
}

/// Where the member's snapshots go. A bucket is first asked when it is used: one that is away keeps no member down.
///
/// # Errors
/// Where the configuration names no store, or its folder cannot be made.
pub fn snapshot_store(config: &MemberConfig) -> Result<Arc<dyn SnapshotStore>, StartError> {
    match config.snapshot_place().map_err(StartError)? {
        StorePlace::Folder(folder) => Ok(Arc::new(FolderStore::open(&folder).map_err(StartError::of)?)),
        StorePlace::Bucket(options) => Ok(Arc::new(S3Store::new(options))),
    }
}

/// Starts the metrics of a member.
///
/// # Errors
/// When the exporter does not start.
pub fn measured(config: &MemberConfig) -> Result<Metrics, StartError> {
    let build = Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: env!("HOLDFAST_REVISION").to_owned(),
    };
    let identity = Identity { cluster: config.cluster.clone(), member: config.member, build };
    Metrics::start(&identity).map_err(StartError::of)
}
