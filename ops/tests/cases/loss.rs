//! C24, C45: a holder is told that its lock is gone, before anybody else gets it.

use std::{
    fs,
    process::{Child, Stdio},
    time::Instant,
};

use crate::support::{BUSY, S, SOON, Wait, World, form, s, wait::eventually};

#[tokio::test(flavor = "multi_thread")]
async fn c24_a_revoked_holder_is_told_at_once() {
    let world = World::start();
    let session = world.native().open(s(5)).await;
    let held = session.lock("c24/sdk").await;
    world.end_session(&session.id().to_string());
    let revoked = Instant::now();
    let reason = held.lost().await;
    println!("c24: told {:?} after the revoke: {reason}", revoked.elapsed());
    assert!(revoked.elapsed() <= s(1) + BUSY, "{:?}", revoked.elapsed());
    let error = held.release().await.unwrap_err();
    assert!(!error.retryable() && error.to_string().contains("not held any more"), "{error}");
    let error = session.acquire("c24/sdk", Wait::Try).await.unwrap_err();
    assert_eq!(crate::support::native::outcome(&error), crate::support::Outcome::SessionLost);

    let mut command = world.holdfast(&["lock", "c24/cli", "--", "sleep", "60"]);
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let (holder, _) = eventually("the command holds the lock", SOON, || world.look("c24/cli").holder);
    let answer = crate::harness::post(
        &format!("{}/v1/sessions/end", world.http(2)),
        &serde_json::json!({"session": holder, "reason": "a test"}),
    );
    assert_eq!(answer.status, 204, "{}", answer.body);
    let status = eventually("the command ends", s(5), || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(70));
    world.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn c24_a_partitioned_holder_knows_before_anybody_else_is_granted() {
    let world = World::start();
    let side = world.side().unwrap();
    let ttl = form(s(3), s(5));
    let session = world.native_at(&side).open(ttl).await;
    let held = session.lock("c24").await;
    let other = world.client(2).open(s(60));
    let waiting = std::thread::spawn(move || (other.wait_on("c24"), Instant::now()));
    world.wait_for_waiters("c24", 1);
    side.hold();
    let cut = Instant::now();
    session.falls_silent();
    held.lost().await;
    let told = Instant::now();
    assert!(told - cut <= ttl, "told {:?} after the cut", told - cut);
    let (token, granted) = waiting.join().unwrap();
    assert!(token.token() > held.number());
    assert!(told <= granted, "granted {:?} before the holder knew", told - granted);
    assert!(granted - cut <= ttl + S + BUSY, "{:?}", granted - cut);
    world.judge();
}

#[test]
fn c45_the_child_of_a_partitioned_wrapper_is_gone_before_the_next_begins() {
    let world = World::start();
    let side = world.side().unwrap();
    let (ttl, ttl_text) = form((s(3), "3s"), (s(10), "10s"));
    let file = world.scratch().join("who");
    // Deaf to TERM: it must be killed in time.
    let script = |who: &str| format!("trap '' TERM; while :; do echo {who} >>$0; sleep 0.1; done");
    let run = |who: &str, endpoints: Vec<String>| -> Child {
        let mut command = world.holdfast(&["lock", "c45", "--ttl", ttl_text, "--", "sh", "-c", &script(who)]);
        command.env("HOLDFAST_ENDPOINTS", endpoints.join(",")).arg(&file).stdin(Stdio::null());
        command.spawn().unwrap()
    };
    let written = |who: &str| fs::read_to_string(&file).unwrap_or_default().lines().any(|line| line == who);
    let mut a = run("A", side.endpoints());
    eventually("A's child runs", SOON, || written("A").then_some(()));
    let mut b = run("B", world.endpoints());
    world.wait_for_waiters("c45", 1);
    side.hold();
    let cut = Instant::now();
    let status = eventually("A's wrapper ends", ttl + BUSY, || a.try_wait().unwrap());
    assert_eq!(status.code(), Some(70));
    eventually("B's child runs", ttl + S + BUSY, || written("B").then_some(()));
    println!("c45: B's child began {:?} after the cut", cut.elapsed());
    eventually("B has written a while", SOON, || {
        let text = fs::read_to_string(&file).unwrap();
        (text.lines().filter(|line| *line == "B").count() > 5).then_some(())
    });
    let text = fs::read_to_string(&file).unwrap();
    let turns = text.lines().collect::<Vec<_>>().windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(turns, 1, "A and B ran beside each other:\n{text}");
    // Its child goes with it.
    b.kill().unwrap();
    b.wait().unwrap();
}
