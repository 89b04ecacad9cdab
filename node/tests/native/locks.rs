//! Holding, waiting, giving up.

use std::time::Duration;

use holdfast_client::{AcquireError, HoldState, Kind, LossReason};

use crate::{
    cluster::Cluster,
    wait::{pass, until, within},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_goes_from_hand_to_hand_with_growing_tokens() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.session().await, cluster.session().await);
    let first = one.lock("jobs/nightly").metadata("step", "1").acquire().await.expect("a free lock");
    let busy = two.lock("jobs/nightly").try_acquire().await.expect_err("held");
    assert!(
        matches!(&busy, AcquireError::Busy { holder: Some(holder), .. } if *holder == one.id()),
        "{busy:?}"
    );
    let lock = two.lock("jobs/nightly");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    let admin = cluster.client().admin();
    let detail = until("a waiter", || async {
        let detail = admin.lock(Kind::Lock, "jobs/nightly").await.ok()?;
        (detail.lock.waiters == 1).then_some(detail)
    })
    .await;
    let holder = detail.lock.holder.expect("a holder");
    assert_eq!(holder.metadata.get("step").map(String::as_str), Some("1"));
    assert_eq!(first.release().await, Ok(true));
    let second = waiting.await.expect("a task").expect("the lock");
    assert!(second.token() > first.token());
    assert_eq!(first.state(), HoldState::Released);
    // A late release of the first hold does not touch the second.
    assert_eq!(first.release().await, Ok(false));
    assert!(second.is_safe());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gives_up_leaves_the_queue() {
    let cluster = Cluster::start().await;
    let (holder, waiter) = (cluster.session().await, cluster.session().await);
    let guard = holder.lock("a").acquire().await.expect("a free lock");
    let timed_out = waiter.lock("a").acquire_timeout(Duration::from_millis(300)).await.expect_err("held");
    assert_eq!(timed_out, AcquireError::Timeout { name: "a".into() });
    let lock = waiter.lock("a");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    let admin = cluster.client().admin();
    let waiters = |wanted: u32| {
        let admin = admin.clone();
        async move {
            let detail = admin.lock(Kind::Lock, "a").await.ok()?;
            (detail.lock.waiters == wanted).then_some(())
        }
    };
    until("a waiter", || waiters(1)).await;
    waiting.abort();
    until("an empty queue", || waiters(0)).await;
    assert_eq!(guard.release().await, Ok(true));
    // And the same session may ask again at once.
    assert!(waiter.lock("a").try_acquire().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_holds_a_lock_at_most_once() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let guard = session.lock("a").acquire().await.expect("a free lock");
    let again = session.lock("a").acquire().await.expect_err("held by itself");
    assert_eq!(again, AcquireError::AlreadyHeld { name: "a".into(), token: Some(guard.token()) });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_guard_frees_the_lock_and_a_closed_session_all_of_them() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.session().await, cluster.session().await);
    drop(one.lock("a").acquire().await.expect("a free lock"));
    let mut taken = Vec::new();
    for name in ["a", "b/c", "d", "e/f/g"] {
        taken.push(within("the lock", two.lock(name).acquire()).await.expect("a grant"));
    }
    two.close().await.expect("closed");
    assert!(taken.iter().all(|guard| guard.state() == HoldState::Lost));
    for name in ["a", "b/c", "d", "e/f/g"] {
        assert!(one.lock(name).acquire().await.is_ok(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_limit_does_not_end_the_lock() {
    let cluster = Cluster::start().await;
    let session = cluster.client().session().ttl(Duration::from_secs(1)).open().await.expect("a session");
    let guard = session.lock("a").acquire_timeout(Duration::from_millis(200)).await.expect("a free lock");
    pass(Duration::from_secs(3)).await;
    assert!(guard.is_safe());
    assert_eq!(guard.release().await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_session_is_over_for_its_waits_too() {
    let cluster = Cluster::start().await;
    let (holder, waiter) = (cluster.session().await, cluster.session().await);
    let _guard = holder.lock("a").acquire().await.expect("a free lock");
    let lock = waiter.lock("a");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    let admin = cluster.client().admin();
    until("a waiter", || async {
        let detail = admin.lock(Kind::Lock, "a").await.ok()?;
        (detail.lock.waiters == 1).then_some(())
    })
    .await;
    admin.end_session(waiter.id(), "test", "eve").await.expect("ended");
    let error = within("the end of the wait", waiting).await.expect("a task").expect_err("lost");
    assert!(matches!(error, AcquireError::SessionLost { .. }), "{error:?}");
    assert!(matches!(within("the loss", waiter.lost()).await, LossReason::SessionEnded(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_wait_does_not_hold_up_the_other_locks_of_its_session() {
    let cluster = Cluster::start().await;
    let (holder, session) = (cluster.session().await, cluster.session().await);
    let held = holder.lock("jobs/held").acquire().await.expect("a free lock");
    let lock = session.lock("jobs/held");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    let admin = cluster.client().admin();
    until("a waiter", || async {
        let detail = admin.lock(Kind::Lock, "jobs/held").await.ok()?;
        (detail.lock.waiters == 1).then_some(())
    })
    .await;
    // Long enough to stand in line for certain.
    pass(Duration::from_secs(6)).await;
    // More than a group keeps results for; all stand together by their first segment.
    for number in 0..300 {
        let guard = session.lock(format!("jobs/{number}")).acquire().await.expect("a free lock");
        guard.release().await.expect("released");
    }
    held.release().await.expect("released");
    assert!(within("the grant", waiting).await.expect("a task").is_ok());
}
