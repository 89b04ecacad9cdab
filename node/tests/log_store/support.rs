//! What all these tests use: an open log in a folder, entries, and waiting with a deadline.

use std::{ops::Range, path::Path, time::Duration};

use actix::Addr;
use bytes::Bytes;
use holdfast_node::{
    actors::{ActorHost, Role},
    log::{
        actor::{CloseLog, GetLogStats, LogActor, LogOptions},
        error::{LogFailure, OpenLogError},
        group_number::GroupNumber,
        handle::LogHandle,
        identity::LogIdentity,
        opener::LogOpener,
        stats::LogStats,
    },
    raft::types::{Entry, LogId, Payload, TypeConfig, Vote},
};
use openraft::{
    EntryPayload, RaftTypeConfig,
    entry::RaftEntry,
    storage::{IOFlushed, RaftLogReader, RaftLogStorage},
    type_config::{TypeConfigExt, alias::OneshotReceiverOf},
    vote::RaftLeaderId,
};
use tokio::sync::watch;

/// Longest that anything here may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Tells when an append is on disk.
pub(crate) type Flushed = OneshotReceiverOf<TypeConfig, Result<(), std::io::Error>>;

/// `short` by default, `long` in a soak.
pub(crate) fn form<T>(short: T, long: T) -> T {
    if std::env::var_os("HOLDFAST_SOAK").is_some_and(|value| value == "1") { long } else { short }
}

pub(crate) fn group(number: u32) -> GroupNumber {
    GroupNumber::new(number).unwrap()
}

pub(crate) fn id(term: u64, index: u64) -> LogId {
    LogId::new(<TypeConfig as RaftTypeConfig>::LeaderId::new(term, 1).to_committed(), index)
}

pub(crate) fn vote(term: u64) -> Vote {
    Vote::new(term, 1)
}

/// An entry whose payload names its place.
pub(crate) fn entry(term: u64, index: u64) -> Entry {
    let text = format!("entry {index} of term {term} {}", "x".repeat(100));
    Entry::new(id(term, index), EntryPayload::Normal(Payload(Bytes::from(text))))
}

pub(crate) fn entries(term: u64, range: Range<u64>) -> Vec<Entry> {
    range.map(|index| entry(term, index)).collect()
}

pub(crate) fn options(folder: &Path) -> LogOptions {
    LogOptions {
        folder: folder.to_owned(),
        identity: LogIdentity { cluster: "test".parse().unwrap(), member: 1 },
        size_limit_bytes: None,
        on_commit: None,
    }
}

/// An open log whose actor runs.
pub(crate) struct OpenLog {
    pub(crate) addr: Addr<LogActor>,
    pub(crate) opener: LogOpener,
    pub(crate) failures: watch::Receiver<Option<LogFailure>>,
    _host: ActorHost,
}

pub(crate) fn open(options: LogOptions) -> Result<OpenLog, OpenLogError> {
    Ok(start(LogActor::open(options)?))
}

pub(crate) fn start(actor: LogActor) -> OpenLog {
    let host = ActorHost::threads().unwrap();
    let (opener, failures) = (actor.opener(), actor.failures());
    OpenLog { addr: host.spawn_actor(Role::Log, actor), opener, failures, _host: host }
}

impl OpenLog {
    pub(crate) async fn group(&self, number: u32) -> LogHandle {
        self.opener.open_group(group(number)).await.unwrap()
    }

    pub(crate) async fn stats(&self) -> LogStats {
        self.addr.send(GetLogStats).await.unwrap()
    }

    pub(crate) async fn close(self) {
        self.addr.send(CloseLog).await.unwrap().unwrap();
    }

    /// Asks for the statistics until they satisfy `wanted`.
    pub(crate) async fn wait_stats(&self, wanted: impl Fn(&LogStats) -> bool) -> LogStats {
        in_time(async {
            loop {
                let stats = self.stats().await;
                if wanted(&stats) {
                    return stats;
                }
                crate::wait::look_again().await;
            }
        })
        .await
    }
}

pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("this takes too long")
}

/// Starts an append and gives back what tells when it is on disk.
pub(crate) async fn append_start(log: &mut LogHandle, entries: Vec<Entry>) -> Flushed {
    let (sender, receiver) = TypeConfig::oneshot();
    log.append(entries, IOFlushed::signal(sender)).await.unwrap();
    receiver
}

pub(crate) async fn append(log: &mut LogHandle, entries: Vec<Entry>) {
    let flushed = append_start(log, entries).await;
    in_time(flushed).await.unwrap().unwrap();
}

pub(crate) async fn read(log: &mut LogHandle, range: Range<u64>) -> Vec<Entry> {
    log.try_get_log_entries(range).await.unwrap()
}

pub(crate) fn indexes(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.log_id().index).collect()
}
