//! A member that does not carry a group any more forgets it, but for its vote.

use bytes::Bytes;
use holdfast_node::{
    log::{
        handle::LogHandle,
        memory::{FlushMode, MemoryLog},
    },
    raft::types::TypeConfig,
    snapshot::local::{MemorySnapshots, RaftSnapshots},
};
use openraft::{
    storage::{RaftLogReader, RaftLogStorage},
    type_config::alias::SnapshotMetaOf,
};

use super::support::{append, entries, group, id, indexes, open, options, read, vote};

/// A group with a vote, entries before and after a purge, and a commit mark that is still on its way.
async fn fill(log: &mut LogHandle) {
    log.save_vote(&vote(7)).await.unwrap();
    append(log, entries(7, 0..100)).await;
    log.purge(id(7, 40)).await.unwrap();
    log.save_committed(Some(id(7, 90))).await.unwrap();
}

async fn nothing_but_the_vote(log: &mut LogHandle) {
    assert!(log.is_empty());
    let state = log.get_log_state().await.unwrap();
    assert_eq!((state.last_purged_log_id, state.last_log_id), (None, None));
    assert_eq!(log.read_vote().await.unwrap(), Some(vote(7)));
    assert_eq!(log.read_committed().await.unwrap(), None);
    assert!(read(log, 0..200).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_group_begins_anew_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let (mut gone, mut stays) = (log.group(1).await, log.group(2).await);
    fill(&mut gone).await;
    fill(&mut stays).await;
    gone.forget().await.unwrap();
    nothing_but_the_vote(&mut gone).await;
    log.close().await;

    let log = open(options(folder.path())).unwrap();
    let (mut gone, mut stays) = (log.group(1).await, log.group(2).await);
    nothing_but_the_vote(&mut gone).await;
    assert_eq!(indexes(&read(&mut stays, 95..200).await), [95, 96, 97, 98, 99]);
    append(&mut gone, entries(8, 0..3)).await;
    assert_eq!(indexes(&read(&mut gone, 0..200).await), [0, 1, 2]);
    log.close().await;
}

#[tokio::test]
async fn a_simulated_disk_forgets_as_well() {
    let log = MemoryLog::new(FlushMode::Immediate);
    let mut gone = log.open_group(group(1)).unwrap();
    fill(&mut gone).await;
    gone.forget().await.unwrap();
    log.crash();
    nothing_but_the_vote(&mut log.open_group(group(1)).unwrap()).await;
}

#[tokio::test]
async fn snapshots_are_forgotten_from_disk_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemorySnapshots::default();
    let places =
        [RaftSnapshots::in_folder(folder.path(), group(1)), RaftSnapshots::in_memory(&memory, group(1))];
    for snapshots in places {
        assert!(!snapshots.exist().await.unwrap());
        let meta =
            |index| SnapshotMetaOf::<TypeConfig> { last_log_id: Some(id(7, index)), ..Default::default() };
        snapshots.save(&meta(40), &Bytes::from_static(b"state")).await.unwrap();
        assert!(snapshots.exist().await.unwrap());
        snapshots.forget().await.unwrap();
        assert!(!snapshots.exist().await.unwrap());
        assert_eq!(snapshots.load().await.unwrap(), None);
        // One that is older than what was forgotten is the newest again.
        snapshots.save(&meta(3), &Bytes::from_static(b"again")).await.unwrap();
        assert_eq!(snapshots.load().await.unwrap().map(|(_, data)| data), Some(Bytes::from_static(b"again")));
    }
}
