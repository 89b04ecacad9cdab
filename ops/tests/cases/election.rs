//! C29–C31: one leader, told in order.

use std::{
    thread,
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use holdfast_client::{LeaderView, Observe};
use tokio::time::timeout;

use crate::support::{
    BUSY, F, Outcome, S, SOON, Wait, World, form, http, ms, s,
    wait::{let_pass, pause},
};
use holdfast_faults::Way;

/// The next thing an observer says.
async fn next(observe: &mut Observe) -> Option<LeaderView> {
    timeout(SOON, observe.next()).await.expect("the observer says something").unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn c29_a_resign_that_failed_leaves_the_leader_responsible() {
    let world = World::start();
    let side = world.side().unwrap();
    let session = world.native_at(&side).open(s(20)).await;
    let office = session.election("c29").campaign("A").await.unwrap();
    let mut observe = world.native().client.observe("c29");
    assert_eq!(next(&mut observe).await.unwrap().value, "A");

    side.hold_way(Way::There);
    assert!(timeout(Duration::ZERO, office.resign()).await.is_err(), "its deadline was over");
    assert!(!office.state().ended(), "{:?}", office.state());
    let error = office.resign().await.unwrap_err();
    assert!(error.retryable() && !office.state().ended(), "{error} {:?}", office.state());
    side.reset();
    side.heal().unwrap();
    office.resign().await.unwrap();
    assert!(next(&mut observe).await.is_none(), "nobody leads");
    // Exactly one change: the next thing that is said is the next leader.
    let other = world.native().open(s(20)).await;
    let _office = other.election("c29").campaign("B").await.unwrap();
    assert_eq!(next(&mut observe).await.unwrap().value, "B");
}

#[tokio::test(flavor = "multi_thread")]
async fn c30_a_slow_observer_is_told_the_first_leader_first() {
    let world = World::start();
    let side = world.side().unwrap();
    side.hold();
    let mut observe = world.native_at(&side).client.observe("c30");
    let first = tokio::spawn(async move {
        let first = loop {
            // Before anybody leads it may say so.
            if let Some(leader) = next(&mut observe).await {
                break leader;
            }
        };
        (first, observe)
    });
    let native = world.native();
    let (x, y) = (native.open(s(30)).await, native.open(s(30)).await);
    let leads = x.election("c30").campaign("X").await.unwrap();
    let waits = tokio::spawn(async move { y.election("c30").campaign("Y").await.unwrap() });
    pause(form(s(2), s(5))).await;
    assert!(!waits.is_finished() && !first.is_finished());
    side.heal().unwrap();
    let (first, mut observe) = first.await.unwrap();
    assert_eq!(first.value, "X", "{first:?}");
    leads.resign().await.unwrap();
    let _office = waits.await.unwrap();
    let mut told = next(&mut observe).await;
    while told.as_ref().is_none_or(|leader| leader.value == "X") {
        told = next(&mut observe).await;
    }
    assert_eq!(told.unwrap().value, "Y");
}

fn exactly_one_success(world: &World, raft_leader_dies: bool) {
    let ttl = form(s(2), s(5));
    let killed = raft_leader_dies.then(|| world.leader_of("c31"));
    let members: Vec<String> =
        world.numbers().filter(|member| Some(*member) != killed).map(|member| world.http(member)).collect();
    let open = || world.client(1).open(ttl).at(members[0].clone());
    let leader = open();
    let leads = leader.keep(members.clone());
    leader.campaign("c31", Wait::Try, &members).token();
    let candidates: Vec<http::Session> = (0..5).map(|_| open()).collect();
    let mut lives: Vec<_> = candidates.iter().map(|candidate| candidate.keep(members.clone())).collect();
    thread::scope(|scope| {
        let mut asked = Vec::new();
        for (i, candidate) in candidates.iter().enumerate() {
            let members = &members;
            asked.push(scope.spawn(move || candidate.campaign("c31", Wait::Unlimited, members)));
            let url = format!("{}/v1/elections?name=c31", members[0]);
            crate::support::wait::eventually("the candidate waits", SOON, || {
                (crate::harness::get(&url).body["candidates"] == i + 1).then_some(())
            });
        }
        if let Some(member) = killed {
            world.kill(member).unwrap();
        }
        // Candidates 1, 3 and 4 (from 0) fall silent, and the leader does.
        let mut kept = Vec::new();
        for (i, keeper) in lives.drain(..).enumerate() {
            if matches!(i, 1 | 3 | 4) { keeper.die() } else { kept.push(keeper) }
        }
        leads.die();
        let began = Instant::now();
        let mut asked = asked.into_iter();
        let first = asked.next().unwrap().join().unwrap();
        assert!(matches!(first, Outcome::Granted(_)), "the earliest living candidate: {first:?}");
        assert!(began.elapsed() <= ttl + S + ttl / 2 + F + BUSY, "{:?}", began.elapsed());
        let rest: Vec<_> = asked.collect();
        for dead in [0, 2, 3] {
            crate::support::wait::eventually("a dead candidate is told", 2 * SOON, || {
                rest[dead].is_finished().then_some(())
            });
        }
        let_pass(ms(300));
        assert!(!rest[1].is_finished(), "the second living candidate still waits");
        candidates[2].at(members[0].clone()).close();
        for (i, told) in rest.into_iter().enumerate() {
            assert_eq!(told.join().unwrap(), Outcome::SessionLost, "candidate {}", i + 1);
        }
        drop(kept);
    });
    world.judge_with_failovers(ttl);
}

#[test]
fn c31_one_candidate_succeeds_when_the_leader_vanishes() {
    exactly_one_success(&World::start(), false);
}

#[test]
fn c31_one_candidate_succeeds_when_the_raft_leader_dies_too() {
    exactly_one_success(&World::start(), true);
}
