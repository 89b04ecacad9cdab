//! The simulated disk: what is durable when, and what a crash leaves.

use holdfast_node::log::memory::{FlushMode, MemoryLog};
use openraft::storage::{RaftLogReader, RaftLogStorage};

use super::support::{append_start, entries, group, id, indexes, read, vote};

#[tokio::test]
async fn nothing_is_confirmed_before_the_flush() {
    let log = MemoryLog::new(FlushMode::Manual);
    let mut group = log.open_group(group(1)).unwrap();
    let mut flushed = append_start(&mut group, entries(1, 0..3)).await;
    assert_eq!(indexes(&read(&mut group, 0..9).await), [0, 1, 2]);
    assert!(flushed.try_recv().is_err());
    assert_eq!((log.waiting(), log.flush()), (1, 1));
    flushed.await.unwrap().unwrap();

    let saving = tokio::spawn({
        let mut group = group.clone();
        async move { group.save_vote(&vote(2)).await }
    });
    while log.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!saving.is_finished());
    log.flush();
    saving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_crash_keeps_a_prefix_and_cuts_off_old_handles() {
    let log = MemoryLog::new(FlushMode::Manual);
    let mut old = log.open_group(group(1)).unwrap();
    let first = append_start(&mut old, entries(1, 0..3)).await;
    let second = append_start(&mut old, entries(1, 3..5)).await;
    old.save_committed(Some(id(1, 4))).await.unwrap();
    let third = append_start(&mut old, entries(1, 5..6)).await;
    assert_eq!(log.flush_some(2), 2);
    log.crash();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert!(third.await.is_err(), "nobody answers after a crash");
    assert!(old.save_vote(&vote(2)).await.is_err());

    let mut group = log.open_group(group(1)).unwrap();
    assert_eq!(indexes(&read(&mut group, 0..9).await), [0, 1, 2, 3, 4]);
    assert_eq!(group.read_committed().await.unwrap(), None, "the mark was with the lost write");
    assert_eq!(group.get_log_state().await.unwrap().last_log_id, Some(id(1, 4)));
}

#[tokio::test]
async fn purged_entries_stay_purged_over_a_crash() {
    let log = MemoryLog::new(FlushMode::Immediate);
    let mut old = log.open_group(group(1)).unwrap();
    drop(append_start(&mut old, entries(1, 0..5_000)).await);
    old.purge(id(1, 3_999)).await.unwrap();
    log.crash();
    let mut group = log.open_group(group(1)).unwrap();
    assert_eq!(indexes(&read(&mut group, 0..4_002).await), [4_000, 4_001]);
}

#[tokio::test]
async fn damage_is_found() {
    let log = MemoryLog::new(FlushMode::Immediate);
    let mut old = log.open_group(group(1)).unwrap();
    drop(append_start(&mut old, entries(1, 0..5)).await);
    log.crash();
    assert!(log.damage(group(1), 2));
    let mut group = log.open_group(group(1)).unwrap();
    let err = group.try_get_log_entries(0..5).await.unwrap_err().to_string();
    assert!(err.starts_with("entry 2 of group 1 in the log is damaged"), "{err}");
}
