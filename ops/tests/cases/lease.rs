//! C15, C16, C19, C39: leases over pauses, changes of leaders, and full stops.

use std::{thread, time::Instant};

use crate::{
    harness::get,
    support::{
        BUSY, F, Outcome, S, SOON, Wait, World, form, http, s,
        wait::{eventually, until},
    },
};

fn all(world: &World) -> Vec<String> {
    world.numbers().map(|member| world.http(member)).collect()
}

/// Status of a member's answer about one session, and the milliseconds it has left.
fn inspect(world: &World, member: u16, session: &str) -> (u16, Option<u64>) {
    let answer = get(&format!("{}/v1/sessions?session={session}", world.http(member)));
    (answer.status, answer.body["ttl_left_ms"].as_u64())
}

#[tokio::test(flavor = "multi_thread")]
async fn c15_paused_leader_wakes_up_and_ends_no_session() {
    let world = World::start();
    let ttl = s(4);
    let native = world.native();
    let mut held = Vec::new();
    for i in 0..form(16, 50) {
        let session = native.open(ttl).await;
        held.push((session.lock(&format!("c15/{i}")).await, session));
    }
    let leader = world.leader_of("c15/0");
    let dead = world.client(leader).open(s(1));
    dead.falls_silent();
    let others: Vec<u16> = world.numbers().filter(|member| *member != leader).collect();
    let paused = Instant::now();
    world.pause(leader).unwrap();
    thread::scope(|scope| {
        // Sent to the leader that is stuck: answered, if at all, when it wakes up.
        let late = scope.spawn(|| dead.keepalive());
        eventually("the majority has ended the dead session", SOON, || {
            (inspect(&world, others[0], &dead.id).0 == 404).then_some(())
        });
        until(paused + form(s(7), s(12)));
        world.resume(leader).unwrap();
        let late = late.join().unwrap();
        assert_ne!(late, 200, "the old leader acknowledged a keepalive of a session that is over");
    });
    world.wait_ready().unwrap();
    for (guard, session) in &held {
        assert!(!guard.state().ended(), "{} is {:?}", guard.name(), guard.state());
        let holder = world.look(guard.name()).holder;
        assert_eq!(holder, Some((session.id().to_string(), guard.number())));
    }
    for (guard, _) in &held {
        guard.release().await.unwrap();
    }
    world.judge_with_failovers(ttl);
}

#[test]
fn c16_a_leader_change_neither_shortens_nor_restarts_leases() {
    let world = World::start();
    let ttl = form(s(6), s(20));
    let leader = world.leader_of("c16");
    let others: Vec<String> =
        world.numbers().filter(|member| *member != leader).map(|member| world.http(member)).collect();
    let open = |ttl| world.client(1).open(ttl).at(others[0].clone());
    let (a, b, c) = (open(ttl), open(ttl), open(s(120)));
    let held = a.try_lock("c16").token();
    b.try_lock("c16/b").token();
    let _b_lives = b.keep(all(&world));
    let _c_lives = c.keep(others.clone());
    assert_eq!(a.keepalive(), 200);
    let last = Instant::now();
    a.falls_silent();
    thread::scope(|scope| {
        let told = scope.spawn(|| c.acquire_for_good("c16", Wait::Unlimited, &others));
        world.wait_for_waiters("c16", 1);
        until(last + ttl * 3 / 4);
        world.kill(leader).unwrap();
        let token = told.join().unwrap().token();
        let took = last.elapsed();
        println!("c16: granted {took:?} after the last keepalive, TTL {ttl:?}");
        assert!(took >= ttl, "A's lease was shortened: {took:?}");
        assert!(took <= ttl + S + ttl / 2 + F + BUSY, "A's lease was lengthened: {took:?}");
        assert!(token > held);
    });
    assert_eq!(b.at(others[1].clone()).keepalive(), 200, "B was lost");
    let member = world.numbers().find(|member| *member != leader).unwrap();
    let (status, left) = inspect(&world, member, &b.id);
    assert!(status == 200 && left.is_some_and(|left| left <= ttl.as_millis() as u64), "{status} {left:?}");
    world.judge_with_failovers(ttl);
}

#[test]
fn c19_ended_sessions_are_gone_at_every_member() {
    let world = World::start();
    let ttl = s(2);
    let mut sessions = Vec::new();
    for round in 0..form(1, 2) {
        let ended: Vec<http::Session> =
            (0..form(40, 250)).map(|i| world.client(i % 3 + 1).open(ttl)).collect();
        let leader = world.leader_of("c19");
        thread::scope(|scope| {
            scope.spawn(|| world.kill(leader).unwrap());
            for (i, session) in ended.iter().enumerate() {
                session.falls_silent();
                if i % 2 == 0 {
                    close_for_good(&world, session);
                }
            }
        });
        sessions.extend(ended);
        world.start_member(leader).unwrap();
        world.wait_ready().unwrap();
        println!("c19: round {round} over");
    }
    let listed = |member| -> Vec<String> {
        let answer = get(&format!("{}/v1/sessions", world.http(member))).expect(200);
        let sessions = answer["sessions"].as_array().unwrap().iter();
        sessions.map(|session| session["session"].as_str().unwrap().to_owned()).collect()
    };
    eventually("no member lists a session that is over", ttl + S + ttl / 2 + F + BUSY, || {
        world.numbers().all(|member| listed(member).is_empty()).then_some(())
    });
    for session in &sessions {
        for member in world.numbers() {
            assert_eq!(inspect(&world, member, &session.id).0, 404);
        }
        assert_eq!(session.at(world.http(1)).keepalive(), 410);
    }
    world.judge_with_failovers(ttl);
}

/// Closes at one member after the other until one has answered.
fn close_for_good(world: &World, session: &http::Session) {
    let mut members = all(world).into_iter().cycle();
    eventually("a close is answered", SOON, || {
        let url = format!("{}/v1/sessions?session={}", members.next()?, session.id);
        matches!(crate::harness::delete(&url).status, 204 | 410).then_some(())
    });
}

#[test]
fn c39_a_full_restart_gives_each_session_one_grace_and_no_more() {
    let world = World::start();
    let ttl = s(3);
    let sessions: Vec<_> = (0..form(8, 20)).map(|i| world.client(i % 3 + 1).open(ttl)).collect();
    let tokens: Vec<u64> = sessions
        .iter()
        .enumerate()
        .map(|(i, session)| session.try_lock(&format!("c39/{i}")).token())
        .collect();
    let (back, dead) = sessions.split_first().unwrap();
    dead.iter().for_each(http::Session::falls_silent);
    world.numbers().for_each(|member| world.kill(member).unwrap());
    let stopped = Instant::now();
    until(stopped + form(s(4), s(60)));
    world.numbers().for_each(|member| world.start_member(member).unwrap());
    // The one client that comes back does so as soon as it can.
    eventually("a session that comes back within the grace is kept", SOON, || {
        (back.keepalive() == 200).then_some(())
    });
    let _lives = back.keep(all(&world));
    let serving = Instant::now();
    for i in 1..sessions.len() {
        world.wait_free(&format!("c39/{i}"), ttl + S + ttl / 2 + F + BUSY);
    }
    println!("c39: all locks of the dead free {:?} after the restart", serving.elapsed());
    assert_eq!(world.look("c39/0").holder, Some((back.id.clone(), tokens[0])));
    let next = world.client(1).open(s(60)).try_lock("c39/1");
    assert!(matches!(next, Outcome::Granted(token) if token > tokens[1]), "{next:?}");
    // Not judged for I4 and I5: the service itself was gone for longer than a TTL.
}
