//! What ends a group for good, so that the process must start again from its log.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::{StreamExt, stream::FuturesUnordered};
use holdfast_node::raft::propose::ProposeError;

use super::support::{Cluster, Disk, META, PATIENCE, eventually, line};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dying_disk_is_fatal_and_the_others_go_on() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let mut fatal = leader.group(META).fatal();
    assert!(fatal.borrow().is_none());
    let Disk::Memory(disk) = &cluster.disks[&leader.id] else { unreachable!() };
    disk.break_disk("no space left");
    let unanswered = leader.group(META).propose(line(1)).await.unwrap_err();
    assert!(matches!(unanswered, ProposeError::Unknown | ProposeError::Stopped), "{unanswered}");
    let failed =
        tokio::time::timeout(PATIENCE, fatal.wait_for(Option::is_some)).await.unwrap().unwrap().clone();
    let text = failed.unwrap().to_string();
    assert!(text.contains("group 0") && text.contains("no space left"), "{text}");
    assert!(!leader.group(META).leadership().borrow().here);

    let next = cluster.leader_among(META, &cluster.others(leader.id)).await;
    assert_ne!(next, leader.id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_cannot_be_read_is_fatal_and_never_skipped() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    leader.group(META).propose(line(1)).await.unwrap();
    let mut fatal = leader.group(META).fatal();
    let proposed = leader.group(META).propose(Bytes::from_static(b"\x63nonsense")).await;
    assert_eq!(proposed, Err(ProposeError::Unknown));
    let failed =
        tokio::time::timeout(PATIENCE, fatal.wait_for(Option::is_some)).await.unwrap().unwrap().clone();
    assert!(failed.unwrap().to_string().contains("cannot read"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_stopped_on_purpose_is_not_fatal() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let group = leader.group(META);
    group.shutdown().await;
    let mut fatal = group.fatal();
    let ended = tokio::time::timeout(PATIENCE, fatal.wait_for(Option::is_some)).await.unwrap();
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(group.propose(line(1)).await, Err(ProposeError::Stopped));
    assert!(group.confirm_leadership().await.is_err());
    assert!(!group.leadership().borrow().here);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_stops_leaves_open_what_became_of_the_commands_on_their_way() {
    static PANICKED: AtomicBool = AtomicBool::new(false);
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::SeqCst);
        tell(panic);
    }));
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let (group, before) = (leader.group(META), leader.observer.batches.load(Ordering::SeqCst));
    cluster.isolate(leader.id, true);
    let mut waiting: FuturesUnordered<_> = (1..=20).map(|n| group.propose(line(n))).collect();
    assert!(futures::poll!(waiting.next()).is_pending());
    eventually("they are proposed", || leader.observer.batches.load(Ordering::SeqCst) > before).await;
    group.shutdown().await;
    while let Some(answer) = waiting.next().await {
        assert_eq!(answer, Err(ProposeError::Unknown));
    }
    assert!(!PANICKED.load(Ordering::SeqCst), "a task panicked");
}
