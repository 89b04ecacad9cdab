//! C22, C23, C46 (native half): what keeps a client's lock.

use std::time::Instant;

use holdfast_client::HoldState;

use crate::{
    harness::parts,
    support::{
        SOON, Wait, World, form, ms,
        native::Held,
        s,
        wait::{eventually, let_pass, pause},
    },
};

/// Waits until a guard is safe again.
#[track_caller]
fn recovered(held: &Held) {
    eventually("the lock is safe again", SOON, || held.is_safe().then_some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn c22_renewal_survives_short_breaks_and_works_after_a_long_one() {
    let world = World::start();
    let side = world.side().unwrap();
    let native = world.native_at(&side);
    let ttl = s(6);
    let session = native.open(ttl).await;
    let held = session.lock("c22").await;
    for round in 0..form(1, 10) {
        side.hold();
        let_pass(s(2));
        side.refuse().unwrap();
        let_pass(s(1));
        side.heal().unwrap();
        recovered(&held);
        assert!(!held.state().ended(), "lost in round {round}");
    }
    side.hold();
    let began = Instant::now();
    let reason = held.lost().await;
    assert!(began.elapsed() <= ttl, "told after {:?}: {reason}", began.elapsed());
    pause(form(s(7), s(10)).saturating_sub(began.elapsed())).await;
    side.heal().unwrap();
    let again = native.open(ttl).await;
    let held_again = again.acquire("c22", Wait::AtMost(20_000_000_000)).await.unwrap();
    let began = Instant::now();
    while began.elapsed() < form(s(4), s(60)) {
        assert_eq!(held_again.state(), HoldState::Safe, "after {:?}", began.elapsed());
        pause(ms(200)).await;
    }
    assert_eq!(world.look("c22").holder.unwrap().1, held_again.number());
    drop(held);
    world.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn c23_the_limit_of_an_acquire_does_not_end_its_hold() {
    let world = World::start();
    let (limit, ttl, hold) = form(("1s", "1s", 4), ("3s", "5s", 30));
    let script = format!("sleep {hold}");
    let mut command =
        world.holdfast(&["lock", "c23/cli", "--wait", limit, "--ttl", ttl, "--", "sh", "-c", &script]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let session = world.native().open(form(s(1), s(5))).await;
    let limit = form(1_000_000_000, 3_000_000_000);
    let held = session.acquire("c23/sdk", Wait::AtMost(limit)).await.unwrap();
    pause(s(hold)).await;
    assert!(held.is_safe());
    assert_eq!(world.look("c23/sdk").holder.unwrap().1, held.number());
    assert!(held.release().await.unwrap(), "this release ended the hold");
    let (code, _, err) = parts(&child.wait_with_output().unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    world.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn c46_an_idle_client_that_pings_keeps_its_connection_and_lock() {
    let world = World::start();
    let session = world.native().open(s(10)).await;
    let held = session.lock("c46").await;
    let mut states = held.states();
    let began = Instant::now();
    while began.elapsed() < form(s(5), s(600)) {
        pause(ms(250)).await;
        assert!(!states.has_changed().unwrap(), "not always safe: {:?}", *states.borrow_and_update());
    }
    assert!(held.release().await.unwrap());
    world.judge();
}
