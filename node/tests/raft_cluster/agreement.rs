//! What is acknowledged was applied once, in one order, everywhere.

use std::{collections::BTreeSet, sync::atomic::Ordering};

use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use holdfast_node::raft::{
    group::RaftGroup,
    propose::{PENDING_UNITS, ProposeError},
};
use holdfast_partitioner::GroupId;

use super::support::{Cluster, LOCKS, META, line, lines, open_session};

const TASKS: u64 = 32;
const EACH: u64 = 20;

async fn propose_from_many_tasks(cluster: &Cluster, groups: &[GroupId]) {
    let tasks = groups.iter().flat_map(|group| (0..TASKS).map(move |task| (*group, task)));
    let running = tasks.map(|(group, task)| async move {
        for n in 0..EACH {
            let id = task * EACH + n + 1;
            let command = if group.is_meta() { line(id) } else { open_session(id) };
            cluster.write(group, command).await;
        }
    });
    join_all(running).await;
}

async fn every_command_is_applied_once_in_one_order(cluster: Cluster, groups: &[GroupId]) {
    propose_from_many_tasks(&cluster, groups).await;
    for group in groups {
        cluster.settle(*group).await;
    }
    let all: BTreeSet<u64> = (1..=TASKS * EACH).collect();
    let first = &cluster.members[&1];
    for member in cluster.members.values() {
        for group in groups {
            if group.is_meta() {
                let seen = lines(member.group(META));
                assert_eq!(seen.len(), all.len(), "no line twice");
                assert_eq!(seen.iter().copied().collect::<BTreeSet<_>>(), all);
                assert_eq!(member.meta.seen(), first.meta.seen());
            } else {
                assert_eq!(member.locks[group].seen(), first.locks[group].seen());
                let digest = |group: &RaftGroup| group.with_locks(|table, at| (table.digest(), at));
                assert_eq!(digest(member.group(*group)), digest(first.group(*group)));
            }
        }
    }
    let applied = first.meta.seen();
    assert!(applied.windows(2).all(|pair| pair[0].0.index < pair[1].0.index));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_is_applied_once_in_one_order_in_memory() {
    let groups = [META, LOCKS, GroupId(2)];
    every_command_is_applied_once_in_one_order(Cluster::in_memory(&groups).await, &groups).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_is_applied_once_in_one_order_over_sockets() {
    let groups = [META, LOCKS];
    every_command_is_applied_once_in_one_order(Cluster::on_sockets(&groups).await, &groups).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_refuses_and_names_the_leader() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await.id;
    let follower = &cluster.members[&cluster.others(leader)[0]];
    let mut leadership = follower.group(META).leadership();
    leadership.wait_for(|now| now.leader == Some(leader)).await.unwrap();
    let refused = follower.group(META).propose(line(1)).await.unwrap_err();
    assert_eq!(refused, ProposeError::NotLeader { leader: Some(leader) });
    assert!(refused.not_executed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_come_together_are_proposed_together() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let group = leader.group(META);
    let many = (1..=200).map(|n| group.propose(line(n)));
    for result in join_all(many).await {
        result.unwrap();
    }
    let batches = leader.observer.batches.load(Ordering::SeqCst);
    assert!(batches < 50, "200 commands went in {batches} batches");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_commands_are_refused_and_the_others_go_on() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let group = leader.group(META);
    // Nothing can be agreed on, so that commands pile up.
    cluster.isolate(leader.id, true);
    let mut waiting: FuturesUnordered<_> =
        (0..PENDING_UNITS as u64).map(|n| group.propose(line(n))).collect();
    assert!(futures::poll!(waiting.next()).is_pending());
    assert_eq!(group.propose(line(0)).await, Err(ProposeError::Overloaded));
    cluster.isolate(leader.id, false);
    waiting.collect::<Vec<_>>().await;
    cluster.write(META, line(0)).await;
}
