//! What one member must be told to start: its name, its disk, its sockets, its cluster and its timing.
//!
//! Knows the meaning and the bounds of every setting. Does not know where settings come from (files, environment,
//! flags): whoever loads them hands over a finished [`MemberConfig`].

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{raft::types::MemberId, snapshot::compaction::CompactionLimits};

pub use self::snapshots::{SnapshotsConfig, Sse, StorePlace};

mod snapshots;
mod validate;

/// Most lock groups that a cluster may be split into.
pub const MAX_LOCK_GROUPS: u16 = 32;
/// Replicas of each lock group where nothing else is said: one may fail.
pub const DEFAULT_REPLICAS: u16 = 3;

/// Most voters of the meta group where there are more members than replicas or the members have changed: more would make every
/// change of the map slower.
pub const META_VOTERS: usize = 5;

/// The whole configuration of one member.
///
/// Every field has a default, so that a file says only what differs; `member`, `data_dir` and `members` have none that
/// makes sense, and [`MemberConfig::validate`] reports them while they are unset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemberConfig {
    /// Name of the cluster; members of differently named clusters refuse each other. 1 to 64 of `a-z 0-9 - _ .`
    pub cluster: String,
    /// This member's id, one of `members`. Never reused for another disk; 0 means "not set".
    pub member: MemberId,
    /// Folder of the log and the state; created where it is missing. Empty means "not set".
    pub data_dir: PathBuf,
    /// Whether this member joins a living cluster, in which a place was made for it: then `members` needs this one and any
    /// living one, and the rest comes from the cluster.
    pub join: bool,
    /// Sockets this member listens on.
    pub listen: ListenConfig,
    /// All members of the cluster, this one included, as others reach them.
    pub members: Vec<MemberEntry>,
    /// How many groups there are.
    pub groups: GroupsConfig,
    /// Timing of elections.
    pub raft: RaftConfig,
    /// Snapshots for disaster recovery.
    pub snapshots: SnapshotsConfig,
    /// What the member says about itself while it runs.
    pub log: LogConfig,
}

/// Sockets a member listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenConfig {
    /// JSON API, console, metrics and health.
    pub http: SocketAddr,
    /// gRPC API and the etcd services.
    pub grpc: SocketAddr,
    /// Raft traffic of the other members.
    pub peer: SocketAddr,
    /// Accepts that whoever reaches these sockets may do anything: needed for every address but loopback.
    pub insecure: bool,
}

/// One member of the cluster as the others and the clients reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemberEntry {
    /// Its id, from 1.
    pub id: MemberId,
    /// Base URL of its HTTP listener, as `http://10.0.0.1:7610`.
    pub http: String,
    /// URL of its gRPC listener, as `http://10.0.0.1:7611`.
    pub grpc: String,
    /// Address of its peer listener, as `10.0.0.1:7612`.
    pub peer: String,
}

/// How many groups the cluster has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupsConfig {
    /// Lock groups beside the meta group, 1 to [`MAX_LOCK_GROUPS`]. Read when the cluster starts for the first time.
    pub lock_groups: u16,
    /// Members that carry each lock group, from 1. Read when the cluster starts for the first time; a cluster of fewer members
    /// has a replica on each.
    pub replicas: u16,
}

/// Timing of elections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RaftConfig {
    /// How often a leader shows itself.
    #[serde(with = "humantime_serde")]
    pub heartbeat_interval: Duration,
    /// Shortest silence after which a follower stands for election; at least three heartbeats.
    #[serde(with = "humantime_serde")]
    pub election_timeout_min: Duration,
    /// Longest such silence, and so the floor of a fail-over; above the shortest.
    #[serde(with = "humantime_serde")]
    pub election_timeout_max: Duration,
    /// Entries that a group applies until its state is written down on each member, so that the log before it can
    /// go; 1,000 to 10,000,000. More is less work and a longer log.
    pub snapshot_entries: u64,
    /// Entries that stay in the log all the same, so that a member that was away shortly needs no snapshot; 1,000 to
    /// 10,000,000.
    pub keep_entries: u64,
}

/// What a member says about itself while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// The least important lines that are written.
    pub level: LogLevel,
    /// How lines are written.
    pub format: LogFormat,
}

/// Importance of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Somebody must act now.
    Error,
    /// Somebody should look today.
    Warn,
    /// The state changed.
    Info,
    /// For finding defects.
    Debug,
    /// Everything.
    Trace,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// One thing that is wrong, or unwise, in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Whether the member refuses to start over it.
    pub severity: Severity,
    /// The setting, as `raft.election_timeout_min` or `members[1].peer`.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// Weight of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The member refuses to start.
    Error,
    /// The member starts; somebody should know.
    Warning,
}

impl Fault {
    /// A fault the member refuses to start over.
    pub fn error(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, key: key.into(), message: message.into() }
    }

    /// A fault the member starts with.
    pub fn warning(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, key: key.into(), message: message.into() }
    }

    /// Whether the member refuses to start over it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl MemberEntry {
    /// Whether its addresses have the form of addresses.
    ///
    /// # Errors
    /// Which has not, and what to do.
    pub fn check(&self) -> Result<(), String> {
        validate::check(self)
    }
}

impl MemberConfig {
    /// Members that carry each group of a fresh cluster.
    pub fn replicas(&self) -> u16 {
        self.groups.replicas.min(u16::try_from(self.members.len()).unwrap_or(u16::MAX))
    }

    /// Whether a fresh cluster has more members than replicas, so that each carries only some of the groups.
    pub fn spreads(&self) -> bool {
        usize::from(self.replicas()) < self.members.len()
    }

    /// This member's own line in `members`; `None` only in a configuration that does not validate.
    pub fn this_member(&self) -> Option<&MemberEntry> {
        self.members.iter().find(|entry| entry.id == self.member)
    }

    /// Everything that is wrong or unwise, all at once; the member starts only without errors.
    pub fn validate(&self) -> Vec<Fault> {
        validate::validate(self)
    }
}

impl Default for MemberConfig {
    fn default() -> Self {
        Self {
            cluster: "holdfast".into(),
            member: 0,
            data_dir: PathBuf::new(),
            join: false,
            listen: ListenConfig::default(),
            members: Vec::new(),
            groups: GroupsConfig::default(),
            raft: RaftConfig::default(),
            snapshots: SnapshotsConfig::default(),
            log: LogConfig::default(),
        }
    }
}

impl Default for ListenConfig {
    fn default() -> Self {
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self { http: loopback(7610), grpc: loopback(7611), peer: loopback(7612), insecure: false }
    }
}

impl Default for GroupsConfig {
    fn default() -> Self {
        Self { lock_groups: 4, replicas: DEFAULT_REPLICAS }
    }
}

impl Default for RaftConfig {
    fn default() -> Self {
        let limits = CompactionLimits::default();
        Self {
            heartbeat_interval: Duration::from_millis(100),
            election_timeout_min: Duration::from_millis(500),
            election_timeout_max: Duration::from_secs(1),
            snapshot_entries: limits.snapshot_entries,
            keep_entries: limits.keep_entries,
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text }
    }
}

#[cfg(test)]
mod tests;
