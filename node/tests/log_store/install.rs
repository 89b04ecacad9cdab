//! A lagging member gets a snapshot from the leader; wherever it is killed meanwhile, it starts again (rule R21).

use bytes::Bytes;
use holdfast_node::{
    log::memory::{FlushMode, MemoryLog},
    raft::types::{LogId, TypeConfig},
    snapshot::local::{MemorySnapshots, RaftSnapshots},
};
use openraft::{
    storage::{RaftLogStorage, RaftStateMachine, StorageHelper},
    type_config::alias::SnapshotMetaOf,
};

use super::{
    place::Place,
    support::{append_start, entries, group, id, vote},
};

/// What such a member does, in order; `steps` of it before it is killed.
async fn install(log: &MemoryLog, snapshots: &MemorySnapshots, steps: usize) {
    let mut handle = log.open_group(group(1)).unwrap();
    let mut place = Place::new(RaftSnapshots::in_memory(snapshots, group(1)));
    // It has 0 to 10 of term 1, and knows that 8 is committed.
    drop(append_start(&mut handle, entries(1, 0..11)).await);
    handle.save_committed(Some(id(1, 8))).await.unwrap();
    let voting = tokio::spawn({
        let mut handle = handle.clone();
        async move { handle.save_vote(&vote(2)).await }
    });
    while !voting.is_finished() {
        log.flush();
        tokio::task::yield_now().await;
    }
    for step in 0..steps {
        match step {
            0 => {
                let meta =
                    SnapshotMetaOf::<TypeConfig> { last_log_id: Some(id(2, 20)), ..Default::default() };
                place.install_snapshot(&meta, Bytes::from_static(b"state")).await.unwrap();
            }
            1 => handle.purge(id(2, 20)).await.unwrap(),
            2 => drop(append_start(&mut handle, entries(2, 21..25)).await),
            3 => assert_eq!(log.flush_some(1), 1),
            _ => assert_eq!(log.flush(), 1),
        }
    }
}

/// Where openraft finds the member after a restart: last applied and last entry.
async fn restart(log: &MemoryLog, snapshots: &MemorySnapshots) -> (Option<LogId>, Option<LogId>) {
    log.crash();
    let mut handle = log.open_group(group(1)).unwrap();
    let mut place = Place::new(RaftSnapshots::in_memory(snapshots, group(1)));
    let mut helper = StorageHelper::<TypeConfig, _, _>::new(&mut handle, &mut place).with_id(1);
    helper.get_initial_state().await.unwrap();
    let (applied, _membership) = place.applied_state().await.unwrap();
    (applied, handle.get_log_state().await.unwrap().last_log_id)
}

#[tokio::test]
async fn a_kill_at_any_point_leaves_a_member_that_starts() {
    let expected = [
        (Some(id(1, 8)), Some(id(1, 10))),
        (Some(id(2, 20)), Some(id(2, 20))),
        (Some(id(2, 20)), Some(id(2, 20))),
        (Some(id(2, 20)), Some(id(2, 20))),
        (Some(id(2, 20)), Some(id(2, 20))),
        (Some(id(2, 20)), Some(id(2, 24))),
    ];
    for (steps, expected) in expected.into_iter().enumerate() {
        let (log, snapshots) = (MemoryLog::new(FlushMode::Manual), MemorySnapshots::default());
        install(&log, &snapshots, steps).await;
        // Immediate flushes from here on: a restart writes, and waits for it.
        let flushing = tokio::spawn({
            let log = log.clone();
            async move {
                loop {
                    log.flush();
                    tokio::task::yield_now().await;
                }
            }
        });
        assert_eq!(restart(&log, &snapshots).await, expected, "killed after {steps} steps");
        flushing.abort();
    }
}
