//! A disk that refuses: everybody hears it, nothing is confirmed any more, and the process is told to stop.

use futures::future::join_all;
use holdfast_node::log::{
    actor::CloseLog,
    memory::{FlushMode, MemoryLog},
};
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::type_config::TypeConfigExt;

use super::support::{append, append_start, entries, group, id, in_time, open, options, vote};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_fails_every_waiter_and_all_who_come_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.size_limit_bytes = Some(256 * 1024);
    let mut log = open(options).unwrap();
    let (mut first, mut second) = (log.group(1).await, log.group(2).await);
    append(&mut first, entries(1, 0..10)).await;

    let mut flushed = Vec::new();
    for start in (0..4_000).step_by(100) {
        // The queue may close while we are still writing; then the call itself says so.
        let (sender, receiver) = holdfast_node::raft::types::TypeConfig::oneshot();
        drop(second.append(entries(1, start..start + 100), IOFlushed::signal(sender)).await);
        flushed.push(receiver);
    }
    let results: Vec<bool> =
        in_time(join_all(flushed)).await.into_iter().map(|result| result.unwrap().is_ok()).collect();
    let failed = results.iter().position(|ok| !ok).expect("the disk is full");
    assert!(results[failed..].iter().all(|ok| !ok), "no success after the first failure: {results:?}");

    let failure = in_time(log.failures.wait_for(Option::is_some)).await.unwrap().clone().unwrap();
    assert!(failure.to_string().contains("database or disk is full"), "{failure}");
    let err = first.save_vote(&vote(3)).await.unwrap_err().to_string();
    let path = folder.path().join("raft-log.sqlite");
    let said = format!("the log {} failed while writing entries: database or disk is full", path.display());
    assert!(err.contains(&said), "{err}");
    assert!(err.contains("see that its disk is well and has space, then start it again"), "{err}");
    assert!(first.truncate_after(Some(id(1, 3))).await.is_err());
    assert!(first.purge(id(1, 3)).await.is_err());
    assert_eq!(log.stats().await.failure, Some(failure.to_string()));
    assert_eq!(log.addr.send(CloseLog).await.unwrap(), Err(failure));

    let log = open(super::support::options(folder.path())).unwrap();
    let mut second = log.group(2).await;
    let kept = second.get_log_state().await.unwrap().last_log_id.map_or(0, |id| id.index + 1);
    assert_eq!(kept, u64::try_from(failed).unwrap() * 100, "exactly what was confirmed is there");
    assert_eq!(super::support::read(&mut second, 0..4_000).await, entries(1, 0..kept));
}

#[tokio::test]
async fn the_memory_twin_fails_in_the_same_way() {
    let log = MemoryLog::new(FlushMode::Manual);
    let mut failures = log.failures();
    let mut group = log.open_group(group(1)).unwrap();
    let good = append_start(&mut group, entries(1, 0..1)).await;
    log.flush();
    let bad = append_start(&mut group, entries(1, 1..2)).await;
    log.break_disk("gone");
    log.flush();
    good.await.unwrap().unwrap();
    let err = bad.await.unwrap().unwrap_err().to_string();
    assert!(err.contains("the log memory failed while committing to disk: gone"), "{err}");
    assert!(failures.wait_for(Option::is_some).await.is_ok());
    assert!(group.save_vote(&vote(3)).await.is_err());
}
