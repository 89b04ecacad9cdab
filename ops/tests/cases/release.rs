//! C12–C14: releases that come late, twice, or to somebody who is gone.

use std::{thread, time::Instant};

use holdfast_faults::Way;

use crate::support::{BUSY, Puppet, S, SOON, World, form, ms, s, wait::let_pass};

#[test]
fn c12_a_late_release_hits_nobody() {
    let world = World::start();
    let mut a = Puppet::start(&world, s(2), "http://127.0.0.1:1");
    let (b, c) = (world.client(2).open(s(60)), world.client(3).open(s(60)));
    let held = a.acquire("c12");
    a.pause();
    thread::scope(|scope| {
        let b_told = scope.spawn(|| b.wait_on("c12"));
        world.wait_for_waiters("c12", 1);
        let c_told = scope.spawn(|| c.wait_on("c12"));
        let next = b_told.join().unwrap().token();
        world.wait_for_waiters("c12", 1);
        a.resume();
        let said = a.release();
        assert_eq!(said["event"], "error", "{said}");
        // Past the client, which knows already: the same release at each member.
        for member in 1..=3 {
            let body = serde_json::json!({"name": "c12", "session": a.session, "token": held});
            let late = crate::harness::post(&format!("{}/v1/locks/release", world.http(member)), &body);
            assert!(matches!(late.status, 409 | 410), "{}: {}", late.status, late.body);
        }
        assert_eq!(world.look("c12").holder, Some((b.id.clone(), next)));
        let other = b.try_lock("c12/other").token();
        b.release("c12/other", other).expect(200);
        b.release("c12", next).expect(200);
        assert!(c_told.join().unwrap().token() > next);
    });
    world.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn c13_a_release_on_a_broken_connection_can_be_repeated() {
    let world = World::start();
    let side = world.side().unwrap();
    let native = world.native_at(&side);
    let session = native.open(s(20)).await;

    // The request arrives, its answer does not.
    let held = session.lock("c13").await;
    side.hold_way(Way::Back);
    let error = held.release().await.unwrap_err();
    assert!(error.retryable(), "{error}");
    world.wait_free("c13", SOON);
    side.heal().unwrap();
    held.release().await.unwrap();
    drop(held);

    // The request never leaves.
    let held = session.lock("c13").await;
    side.hold_way(Way::There);
    let error = held.release().await.unwrap_err();
    assert!(error.retryable(), "{error}");
    assert_eq!(world.look("c13").holder, Some((session.id().to_string(), held.number())));
    assert!(!held.state().ended(), "the client forgot what the server remembers: {:?}", held.state());
    side.reset();
    side.heal().unwrap();
    held.release().await.unwrap();
    assert!(world.look("c13").is_free());
    assert!(world.client(1).open(s(60)).try_lock("c13").token() > held.number());
    world.judge();
}

#[test]
fn c14_a_promoted_waiter_that_died_blocks_nobody_for_longer_than_its_lease() {
    let world = World::start();
    let ttl = s(2);
    let mut last = 0;
    for round in 0..form(2, 100) {
        let (a, c) = (world.client(1).open(s(120)), world.client(3).open(s(120)));
        let mut b = Puppet::start(&world, ttl, "http://127.0.0.1:1");
        let held = a.try_lock("c14").token();
        b.ask("c14");
        world.wait_for_waiters("c14", 1);
        thread::scope(|scope| {
            let told = scope.spawn(|| c.wait_on("c14"));
            world.wait_for_waiters("c14", 2);
            b.pause();
            let paused = Instant::now();
            a.release("c14", held).expect(200);
            let_pass(ms(round * 37 % 101));
            b.kill();
            let token = told.join().unwrap().token();
            assert!(paused.elapsed() <= ttl + S + BUSY, "round {round}: after {:?}", paused.elapsed());
            assert!(token > held && held > last, "{last}, {held}, {token}");
            last = token;
            c.release("c14", token).expect(200);
        });
    }
    world.judge();
}
