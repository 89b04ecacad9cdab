//! Snapshots: for restarts, and for members that are too far behind the log.

use std::{sync::atomic::Ordering, time::Duration};

use futures::future::join_all;
use holdfast_node::raft::fault::SnapshotError;

use super::support::{Cluster, META, big_line, eventually, line, lines};

/// Makes a snapshot of more than one chunk: 300 lines of 2 KiB.
const LINES: u64 = 300;
const PADDING: usize = 2048;

async fn a_member_far_behind_gets_the_snapshot_and_goes_on(mut cluster: Cluster) {
    cluster.write(META, line(0)).await;
    let behind = cluster.others(cluster.leader(META).await.id)[0];
    cluster.settle(META).await;
    let known = cluster.members[&behind].group(META).status().last_log;
    cluster.kill(behind).await;

    let ids = cluster.others(behind);
    join_all((1..=LINES).map(|n| cluster.write(META, big_line(n, PADDING)))).await;
    cluster.settle(META).await;
    let group = cluster.members[&ids[0]].group(META);
    let covered = group.build_snapshot().await.unwrap();
    for id in &ids {
        let group = cluster.members[id].group(META);
        group.build_snapshot().await.unwrap();
        group.purge_upto(covered.index).await.unwrap();
    }
    eventually("the entries are purged", || group.status().purged == Some(covered.index)).await;
    cluster.write(META, line(LINES + 1)).await;

    cluster.start(behind).await;
    cluster.write(META, line(LINES + 2)).await;
    cluster.settle(META).await;
    let late = &cluster.members[&behind];
    let mut seen = lines(late.group(META));
    seen.sort_unstable();
    assert_eq!(seen, (0..=LINES + 2).collect::<Vec<_>>());
    assert!(late.meta.restored.load(Ordering::SeqCst) >= 1);
    let group = late.group(META);
    eventually("its snapshot is known", || group.status().snapshot >= Some(covered.index)).await;
    // What it had not seen before came in the snapshot, and only what came after that as entries.
    let in_snapshot = known + 1..=covered.index;
    assert!(late.meta.seen().iter().all(|(at, _)| !in_snapshot.contains(&at.index)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_far_behind_gets_the_snapshot_in_memory() {
    a_member_far_behind_gets_the_snapshot_and_goes_on(Cluster::in_memory(&[META]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_far_behind_gets_the_snapshot_over_sockets() {
    a_member_far_behind_gets_the_snapshot_and_goes_on(Cluster::on_sockets(&[META]).await).await;
}

async fn all_members_come_back_from_snapshot_and_log(mut cluster: Cluster) {
    for n in 1..=20 {
        cluster.write(META, line(n)).await;
    }
    cluster.settle(META).await;
    for member in cluster.members.values() {
        let covered = member.group(META).build_snapshot().await.unwrap();
        member.group(META).purge_upto(covered.index).await.unwrap();
    }
    for n in 21..=40 {
        cluster.write(META, line(n)).await;
    }
    let ids = cluster.ids.clone();
    for id in &ids {
        cluster.kill(*id).await;
    }
    for id in &ids {
        cluster.start(*id).await;
    }
    cluster.write(META, line(41)).await;
    cluster.settle(META).await;
    for member in cluster.members.values() {
        assert_eq!(lines(member.group(META)), (1..=41).collect::<Vec<_>>());
        assert!(member.group(META).caught_up(super::support::PATIENCE).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_members_come_back_from_snapshot_and_log_in_memory() {
    all_members_come_back_from_snapshot_and_log(Cluster::in_memory(&[META]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_members_come_back_from_snapshot_and_log_on_disk() {
    all_members_come_back_from_snapshot_and_log(Cluster::on_sockets(&[META]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_outside_a_snapshot_is_purged() {
    let cluster = Cluster::in_memory(&[META]).await;
    for n in 1..=10 {
        cluster.write(META, line(n)).await;
    }
    let group = cluster.leader(META).await.group(META);
    let covered = group.build_snapshot().await.unwrap();
    for n in 11..=20 {
        cluster.write(META, line(n)).await;
    }
    group.purge_upto(covered.index + 5).await.unwrap();
    eventually("the entries are purged", || group.status().purged.is_some()).await;
    assert_eq!(group.status().purged, Some(covered.index));
    // Once more, with nothing new: the same snapshot.
    let again = group.build_snapshot().await.unwrap();
    assert_eq!(again.index, group.status().applied);
    assert_eq!(group.build_snapshot().await.unwrap(), again);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_never_began_has_no_snapshot() {
    let cluster = Cluster::in_memory(&[]).await;
    let lonely = super::support::lonely_group(&cluster).await;
    assert_eq!(lonely.build_snapshot().await, Err(SnapshotError::Empty { group: META }));
    assert!(lonely.propose(line(1)).await.unwrap_err().not_executed());
    lonely.shutdown().await;
    assert!(lonely.propose(line(1)).await.unwrap_err().not_executed());
}

/// Rule R21: a member that dies while snapshots are taken, installed and relied on under load starts again and has everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_under_load_leave_members_that_start() {
    const ROUND: u64 = 200;
    let mut cluster = Cluster::in_memory(&[META]).await;
    let victim = cluster.others(cluster.leader(META).await.id)[0];
    let steady = cluster.others(victim);
    let mut written = 0;
    for round in 0..12_u64 {
        // What it misses meanwhile is in no other member's log: it can come in a snapshot only, whoever leads then.
        cluster.isolate(victim, true);
        join_all((0..ROUND).map(|n| cluster.write(META, big_line(written + n, 256)))).await;
        written += ROUND;
        for id in &steady {
            let group = cluster.members[id].group(META);
            let covered = group.build_snapshot().await.unwrap().index;
            group.purge_upto(covered).await.unwrap();
            eventually("the entries are purged", || group.status().purged >= Some(covered)).await;
        }

        let load = join_all((0..ROUND).map(|n| cluster.write(META, big_line(written + n, 256))));
        let compact = async {
            let group = cluster.members[&cluster.leader_among(META, &steady).await].group(META);
            for _ in 0..4 {
                let covered = group.build_snapshot().await.unwrap().index;
                group.purge_upto(covered.saturating_sub(10)).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let disturb = async {
            cluster.isolate(victim, false);
            // Later each time, so that its death hits another point of the installation.
            crate::wait::disturb_for(Duration::from_millis(round * 5)).await;
        };
        let (_written, (), ()) = futures::join!(load, compact, disturb);
        written += ROUND;
        assert!(cluster.members.values().all(|member| member.group(META).fatal().borrow().is_none()));
        cluster.kill(victim).await;
        cluster.start(victim).await;
    }
    cluster.settle(META).await;
    // It never takes one itself.
    let group = cluster.members[&victim].group(META);
    eventually("an installed snapshot is known", || group.status().snapshot.is_some()).await;
    for member in cluster.members.values() {
        let mut seen = lines(member.group(META));
        seen.sort_unstable();
        assert_eq!(seen, (0..written).collect::<Vec<_>>(), "member {}", member.id);
        assert!(member.group(META).fatal().borrow().is_none());
    }
}
