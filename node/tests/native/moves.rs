//! Locks that move to another group while they are held.

use std::time::Duration;

use holdfast_client::{HoldState, Kind, LockGuard, LossReason, PartitionRequest};

use crate::{
    cluster::Cluster,
    wait::{pass, until, within},
};

const TTL: Duration = Duration::from_secs(2);

/// Brings the lock to the other one of two groups, and waits until its holder knows.
async fn move_away(cluster: &Cluster, guard: &LockGuard) {
    let (from, admin) = (guard.group(), cluster.client().admin());
    let request = PartitionRequest::Move { prefix: "jobs/".into(), to: 3 - from };
    admin.change_partitions(request, "test", "eve").await.expect("a change");
    until("a move", || async { (guard.group() == 3 - from).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_lives_by_its_new_group_after_a_move() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    let session = client.session().ttl(TTL).open().await.expect("a session");
    let guard = session.lock("jobs/a").acquire().await.expect("a free lock");
    let token = guard.token();
    let other = cluster.session().await;
    let lock = other.lock("jobs/a");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    let admin = client.admin();
    until("a waiter", || async {
        let detail = admin.lock(Kind::Lock, "jobs/a").await.ok()?;
        (detail.lock.waiters == 1).then_some(())
    })
    .await;
    for _ in 0..2 {
        move_away(&cluster, &guard).await;
        pass(2 * TTL).await;
        assert_eq!((guard.state(), guard.token()), (HoldState::Safe, token));
        assert!(!waiting.is_finished());
    }
    assert_eq!(guard.release().await, Ok(true));
    let next = within("the next grant", waiting).await.expect("a task").expect("the lock");
    assert!(next.token() > token && next.is_safe());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_end_is_told_after_a_move_as_before_it() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let guard = session.lock("jobs/a").acquire().await.expect("a free lock");
    // Long enough for the hold to be followed where it stands now.
    pass(Duration::from_secs(1)).await;
    move_away(&cluster, &guard).await;
    let admin = cluster.client().admin();
    admin.force_release(Kind::Lock, "jobs/a", guard.token(), "test", "eve").await.expect("a hold");
    let reason = within("the news", guard.lost()).await;
    assert_eq!(reason, LossReason::Ended("force_released".into()));
}
