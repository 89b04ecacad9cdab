//! The snapshotter on paused time: when it takes, answers and compacts.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use openraft::{RaftTypeConfig, vote::RaftLeaderId};
use parking_lot::Mutex;
use tokio::task::LocalSet;

use super::{
    super::{
        compaction::LogProgress, memory_store::MemoryStore, raft_target::TargetStopped, source::Capture,
    },
    *,
};
use crate::{
    actors::{ActorHost, Role},
    metrics::exporter::Metrics,
    raft::types::{LogId, TypeConfig},
};

/// Gives a state with the next revision, after a second; not while another member leads.
#[derive(Default)]
struct Source {
    revision: AtomicU64,
    other_leader: Mutex<Option<MemberId>>,
}

impl SnapshotSource for Source {
    fn capture(&self) -> BoxFuture<'_, Result<Capture, CaptureError>> {
        async move {
            let other = *self.other_leader.lock();
            if other.is_some() {
                return Err(CaptureError::NotLeader { leader: other });
            }
            let revision = self.revision.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::time::sleep(Duration::from_secs(1)).await;
            let leader = <TypeConfig as RaftTypeConfig>::LeaderId::new(1, 1).to_committed();
            let last_log_id = LogId::new(leader, revision);
            Ok(Capture { data: Bytes::from_static(b"state"), last_log_id, revision, map_epoch: 1 })
        }
        .boxed()
    }
}

#[derive(Default)]
struct Target {
    progress: Mutex<LogProgress>,
    built: AtomicU64,
    purged: Mutex<Vec<u64>>,
}

impl CompactionTarget for Target {
    fn progress(&self) -> LogProgress {
        *self.progress.lock()
    }

    fn build_snapshot(&self) -> BoxFuture<'_, Result<(), TargetStopped>> {
        self.built.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }.boxed()
    }

    fn purge(&self, upto: u64) -> BoxFuture<'_, Result<(), TargetStopped>> {
        self.purged.lock().push(upto);
        self.progress.lock().purged = Some(upto);
        async { Ok(()) }.boxed()
    }
}

struct Room {
    source: Arc<Source>,
    target: Arc<Target>,
    catalog: SnapshotCatalog,
    addr: actix::Addr<Snapshotter>,
    metrics: Metrics,
}

fn room(interval: Option<Duration>) -> Room {
    let source = Arc::new(Source::default());
    let target = Arc::new(Target::default());
    let metrics = crate::metrics::tests::metrics();
    let catalog = SnapshotCatalog::new(Arc::new(MemoryStore::default()), "c".parse().unwrap());
    let addr = ActorHost::Local.spawn_actor(
        Role::Snapshot,
        Snapshotter::new(SnapshotterOptions {
            group: GroupNumber::new(1).unwrap(),
            member: 1,
            source: source.clone(),
            catalog: catalog.clone(),
            target: target.clone(),
            limits: CompactionLimits::default(),
            interval,
            retention: Retention { keep: NonZeroUsize::new(2).unwrap(), max_age: None },
            clock: Arc::new(|| 1_000),
            metrics: metrics.instruments.snapshot.clone(),
        }),
    );
    Room { source, target, catalog, addr, metrics }
}

impl Room {
    async fn revisions(&self) -> Vec<u64> {
        let manifests = self.catalog.list(GroupNumber::new(1).unwrap()).await.unwrap();
        manifests.iter().map(|manifest| manifest.revision).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn periodic_snapshots_come_and_old_ones_go() {
    let steps = async {
        let room = room(Some(Duration::from_secs(60)));
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert!(room.revisions().await.is_empty());
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(room.revisions().await, [1]);
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(room.revisions().await, [3, 4]);
        *room.source.other_leader.lock() = Some(2);
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(room.revisions().await, [3, 4], "the leader takes them");
        let refused = room.addr.send(TakeSnapshot).await.unwrap().unwrap_err();
        assert_eq!(refused.to_string(), "this member does not lead the group; ask member 2");
    };
    LocalSet::new().run_until(steps).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_by_a_snapshot_begun_after_it() {
    let steps = async {
        let room = room(None);
        let first = room.addr.send(TakeSnapshot);
        let first = tokio::task::spawn_local(first);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let later = futures::future::join(room.addr.send(TakeSnapshot), room.addr.send(TakeSnapshot)).await;
        assert_eq!(first.await.unwrap().unwrap().unwrap().revision, 1);
        assert_eq!(later.0.unwrap().unwrap().revision, 2);
        assert_eq!(later.1.unwrap().unwrap().revision, 2, "one snapshot serves all who wait");
        assert_eq!(room.revisions().await, [1, 2]);
        *room.source.other_leader.lock() = Some(2);
        room.addr.send(TakeSnapshot).await.unwrap().unwrap_err();
        let text = room.metrics.render().unwrap();
        for line in [
            r#"holdfast_snapshot_duration_seconds_count{kind="build",outcome="ok"} 2"#,
            r#"holdfast_snapshot_duration_seconds_count{kind="upload",outcome="ok"} 2"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        assert!(!text.contains(r#"outcome="error""#), "asked in vain is not failed:\n{text}");
    };
    LocalSet::new().run_until(steps).await;
}

#[tokio::test(start_paused = true)]
async fn the_log_is_compacted_by_rule() {
    let steps = async {
        let room = room(None);
        let seconds = |count| tokio::time::sleep(Duration::from_secs(count));
        *room.target.progress.lock() =
            LogProgress { applied: Some(50_000), durable_snapshot: None, purged: None };
        seconds(5).await;
        assert_eq!(room.target.built.load(Ordering::SeqCst), 1);
        assert!(room.target.purged.lock().is_empty(), "nothing is durable yet");
        *room.target.progress.lock() =
            LogProgress { applied: Some(70_000), durable_snapshot: Some(50_000), purged: None };
        seconds(5).await;
        assert_eq!(room.target.built.load(Ordering::SeqCst), 1);
        assert_eq!(*room.target.purged.lock(), [30_000]);
    };
    LocalSet::new().run_until(steps).await;
}
