//! What is on disk when somebody is told so, and that groups share the fsync.

use std::sync::{Arc, Mutex};

use futures::future::join_all;
use holdfast_node::{
    log::actor::{Checkpoint, LogActor},
    raft::types::TypeConfig,
};
use openraft::storage::{RaftLogReader, RaftLogStorage};
use tokio_rusqlite::rusqlite::Connection;

use super::support::{append, append_start, entries, id, in_time, indexes, open, options, read, start, vote};

fn rows_on_disk(folder: &std::path::Path) -> i64 {
    let conn = Connection::open(folder.join("raft-log.sqlite")).unwrap();
    conn.query_row("SELECT count(*) FROM log", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_write_together_share_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&samples);
    let mut options = options(folder.path());
    options.on_commit = Some(Arc::new(move |sample| seen.lock().unwrap().push(*sample)));
    // The pump runs only once the actor does, so everything below is waiting when it begins.
    let actor = LogActor::open(options).unwrap();
    let opener = actor.opener();
    let mut flushed = Vec::new();
    for number in 0..8 {
        let mut log = opener.open_group(super::support::group(number)).await.unwrap();
        for index in 0..4 {
            flushed.push(append_start(&mut log, entries(1, index..index + 1)).await);
        }
        assert_eq!(indexes(&read(&mut log, 0..10).await), [0, 1, 2, 3], "readable before it is on disk");
    }
    let log = start(actor);
    for result in in_time(join_all(flushed)).await {
        result.unwrap().unwrap();
    }
    let stats = log.stats().await;
    assert_eq!((stats.commits, stats.ops, stats.appended_entries, stats.groups), (1, 32, 32, 8));
    let samples = samples.lock().unwrap().clone();
    assert_eq!(samples.len(), 1);
    assert_eq!((samples[0].ops, samples[0].entries), (32, 32));
    assert!(samples[0].fsync <= samples[0].transaction && samples[0].transaction <= samples[0].oldest_wait);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_told_finds_it_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    for round in 0..20 {
        append(&mut group, entries(1, round * 3..round * 3 + 3)).await;
        assert_eq!(rows_on_disk(folder.path()), i64::try_from(round * 3 + 3).unwrap());
    }
    group.truncate_after(Some(id(1, 9))).await.unwrap();
    assert_eq!(rows_on_disk(folder.path()), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callbacks_come_in_order_over_all_groups() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut groups = [log.group(3).await, log.group(4).await];
    for round in 0..20 {
        let mut flushed = Vec::new();
        for index in round * 10..(round + 1) * 10 {
            for group in &mut groups {
                flushed.push(append_start(group, entries(1, index..index + 1)).await);
            }
        }
        in_time(flushed.pop().unwrap()).await.unwrap().unwrap();
        for earlier in &mut flushed {
            earlier.try_recv().expect("told before its successor").unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_survives_a_clean_restart() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    append(&mut group, entries(1, 0..50)).await;
    group.save_vote(&vote(7)).await.unwrap();
    group.save_committed(Some(id(1, 30))).await.unwrap();
    group.purge(id(1, 9)).await.unwrap();
    group.truncate_after(Some(id(1, 39))).await.unwrap();
    append(&mut group, entries(2, 40..45)).await;
    group.save_committed(Some(id(2, 41))).await.unwrap();
    log.close().await;

    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    let state = group.get_log_state().await.unwrap();
    assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(id(1, 9)), Some(id(2, 44))));
    assert_eq!(group.read_vote().await.unwrap(), Some(vote(7)));
    assert_eq!(group.read_committed().await.unwrap(), Some(id(2, 41)));
    let mut expected = entries(1, 10..40);
    expected.extend(entries(2, 40..45));
    assert_eq!(read(&mut group, 0..1_000).await, expected);
    append(&mut group, entries(3, 45..46)).await;
    let mut other = log.group(4).await;
    assert_eq!(other.get_log_state().await.unwrap().last_log_id, None, "groups do not see each other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_entries_are_read_from_disk_within_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    // Twice what stays in memory.
    for start in (0..16_000).step_by(1_000) {
        append(&mut group, entries(1, start..start + 1_000)).await;
    }
    assert_eq!(read(&mut group, 0..16_000).await, entries(1, 0..16_000), "from disk and from memory");
    let limited = group.limited_get_log_entries(10, 16_000).await.unwrap();
    assert_eq!(limited[0], entries(1, 10..11)[0]);
    assert!((1_000..14_000).contains(&limited.len()), "{} entries are about a mebibyte", limited.len());
    assert_eq!(limited, entries(1, 10..10 + u64::try_from(limited.len()).unwrap()));
    let limited = group.limited_get_log_entries(15_990, 16_000).await.unwrap();
    assert_eq!(limited.len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_in_pieces_lets_appends_pass() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    for start in (0..40_000).step_by(4_000) {
        append(&mut group, entries(1, start..start + 4_000)).await;
    }
    log.close().await;

    let samples = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&samples);
    let mut options = options(folder.path());
    options.on_commit = Some(Arc::new(move |sample| seen.lock().unwrap().push(*sample)));
    let actor = LogActor::open(options).unwrap();
    let mut group = actor.opener().open_group(super::support::group(3)).await.unwrap();
    group.purge(id(1, 38_999)).await.unwrap();
    let flushed = append_start(&mut group, entries(1, 40_000..40_001)).await;
    assert_eq!(indexes(&read(&mut group, 0..39_002).await), [39_000, 39_001], "out of sight at once");

    let log = start(actor);
    in_time(flushed).await.unwrap().unwrap();
    log.wait_stats(|stats| stats.deleted_entries == 39_000).await;
    assert_eq!(rows_on_disk(folder.path()), 1_001);
    let samples = samples.lock().unwrap().clone();
    assert_eq!((samples[0].ops, samples[0].entries), (2, 1), "the append went with the first piece");
    assert!(samples.len() > 70, "and the other pieces came after it: {}", samples.len());

    log.addr.send(Checkpoint).await.unwrap().unwrap();
    assert_eq!(log.stats().await.wal_bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_purge_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    append(&mut group, entries(1, 0..5_000)).await;
    group.purge(id(1, 4_899)).await.unwrap();
    log.wait_stats(|stats| stats.deleted_entries == 4_900).await;
    log.close().await;
    // As if the process had ended before the last pieces were deleted.
    Connection::open(folder.path().join("raft-log.sqlite"))
        .unwrap()
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 3000 UNION ALL SELECT i + 1 FROM n WHERE i < 4899)
             INSERT INTO log(id, e) SELECT (3 << 44) | i, x'00' FROM n",
        )
        .unwrap();
    assert_eq!(rows_on_disk(folder.path()), 2_000);

    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    assert_eq!(indexes(&read(&mut group, 0..4_902).await), [4_900, 4_901]);
    log.wait_stats(|stats| stats.deleted_entries == 1_900).await;
    assert_eq!(rows_on_disk(folder.path()), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_log_writes_its_commit_marks() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    append(&mut group, entries(1, 0..5)).await;
    group.save_committed(Some(id(1, 4))).await.unwrap();
    log.wait_stats(|stats| stats.ops == 2).await;
}

/// The handle must be usable as openraft uses it.
fn _is_a_log_store(log: holdfast_node::log::handle::LogHandle) -> impl RaftLogStorage<TypeConfig> + Clone {
    log
}
