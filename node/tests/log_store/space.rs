//! What the log takes on its disk: bounded under steady load, given back after a burst, also where a reader was slow.

use std::path::Path;

use bytes::Bytes;
use holdfast_node::raft::types::{Entry, Payload};
use openraft::{EntryPayload, entry::RaftEntry, storage::RaftLogStorage};
use tokio_rusqlite::rusqlite::Connection;

use super::support::{OpenLog, append, entries, form, id, indexes, open, options, read};

const MIB: u64 = 1 << 20;
/// What a quiet log keeps free for the next entries.
const SPARE: u64 = 4 * MIB;
/// Size to which a write-ahead log is cut.
const WAL_KEPT: u64 = 16 * MIB;

fn connect(folder: &Path) -> Connection {
    Connection::open(folder.join("raft-log.sqlite")).unwrap()
}

/// An entry of 60 KiB.
fn big(index: u64) -> Entry {
    Entry::new(id(1, index), EntryPayload::Normal(Payload(Bytes::from(vec![7; 60 << 10]))))
}

async fn append_big(log: &OpenLog, range: std::ops::Range<u64>) {
    let mut group = log.group(3).await;
    for index in range {
        append(&mut group, vec![big(index)]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_given_back_once_it_is_quiet_and_what_is_left_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    for start in (0..60_000).step_by(4_000) {
        append(&mut group, entries(1, start..start + 4_000)).await;
    }
    group.purge(id(1, 59_899)).await.unwrap();
    let peak = log.wait_stats(|stats| stats.deleted_entries == 59_900).await;
    assert!(peak.file_bytes + peak.wal_bytes > 2 * SPARE, "{peak:?}");
    let quiet = log.wait_stats(|stats| stats.file_bytes < SPARE + MIB && stats.wal_bytes == 0).await;
    assert!(quiet.free_bytes <= SPARE, "{quiet:?}");
    assert_eq!(quiet.failure, None);
    log.close().await;

    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    assert_eq!(indexes(&read(&mut group, 0..200_000).await), (59_900..60_000).collect::<Vec<_>>());
    append(&mut group, entries(1, 60_000..60_010)).await;
    log.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_purged_as_it_is_written_stays_as_large_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let mut group = log.group(3).await;
    let rounds = form(30, 3_000);
    let mut sizes = Vec::new();
    for round in 0..rounds {
        append(&mut group, entries(1, round * 2_000..(round + 1) * 2_000)).await;
        if let Some(purged) = (round * 2_000).checked_sub(4_001) {
            group.purge(id(1, purged)).await.unwrap();
            log.wait_stats(|stats| stats.deleted_entries > purged).await;
        }
        sizes.push(log.stats().await);
    }
    let (middle, last) = (&sizes[sizes.len() / 2], &sizes[sizes.len() - 1]);
    assert!(last.file_bytes <= middle.file_bytes + middle.file_bytes / 4, "{middle:?} {last:?}");
    assert!(last.file_bytes < 10 * 2_000 * 200, "a few rounds of entries and no more: {last:?}");
    assert!(sizes.iter().all(|stats| stats.wal_bytes <= WAL_KEPT));
    log.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_ahead_log_that_a_slow_reader_let_grow_is_cut_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    append_big(&log, 0..1).await;
    let reader = connect(folder.path());
    reader.execute_batch("BEGIN").unwrap();
    let seen: i64 = reader.query_row("SELECT count(*) FROM log", [], |row| row.get(0)).unwrap();
    append_big(&log, 1..400).await;
    let grown = log.stats().await.wal_bytes;
    assert!(grown > WAL_KEPT + 4 * MIB, "{grown}: no checkpoint passes a reader");
    assert_eq!(seen, 1);
    reader.execute_batch("COMMIT").unwrap();
    // The first of these finishes the checkpoint, the second starts the log from its beginning.
    append_big(&log, 400..404).await;
    let cut = log.stats().await.wal_bytes;
    assert!(cut <= WAL_KEPT, "{cut} after {grown}");
    log.close().await;
}
