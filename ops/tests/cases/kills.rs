//! Killed members under load: no acknowledged grant is lost, and grants go on.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::support::{
    BUSY, F, Outcome, SOON, Wait, World, form,
    http::Session,
    ms, s,
    wait::{eventually, let_pass},
};

/// Writers of each run.
const WRITERS: u16 = 4;

fn all(world: &World) -> Vec<String> {
    world.numbers().map(|member| world.http(member)).collect()
}

#[test]
fn kills_in_the_middle_of_writes_lose_no_acknowledged_grant() {
    let world = World::start();
    let members = all(&world);
    let kills = form(3, 50);
    let (stop, granted) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let sessions: Vec<Session> = (0..WRITERS).map(|i| world.client(i % 3 + 1).open(s(120))).collect();
    let _live: Vec<_> = sessions.iter().map(|session| session.keep(members.clone())).collect();
    thread::scope(|scope| {
        for (i, session) in sessions.iter().enumerate() {
            let (stop, granted, members) = (&stop, &granted, &members);
            scope.spawn(move || {
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    // Names of many first segments: all groups write.
                    let name = format!("w{i}x{n}/kept");
                    let token = session.acquire_for_good(&name, Wait::Try, members).token();
                    granted.lock().unwrap().push((name, session.id.clone(), token));
                }
            });
        }
        let count = || granted.lock().unwrap().len();
        for kill in 0..kills {
            let member = (kill * 2 % 3 + 1) as u16;
            let before = count();
            eventually("grants are acknowledged", SOON, || (count() >= before + 20).then_some(()));
            // Somewhere in the middle of a write.
            let_pass(ms(kill * 13 % 50));
            world.kill(member).unwrap();
            let before = count();
            eventually("grants go on with two members", SOON, || (count() >= before + 5).then_some(()));
            world.start_member(member).unwrap();
            world.wait_ready().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let granted = granted.into_inner().unwrap();
    println!("kills: {kills} kills, {} acknowledged grants", granted.len());
    for (name, session, token) in granted {
        assert_eq!(world.look(&name).holder, Some((session, token)), "{name} was lost");
    }
    world.judge_with_failovers(s(120));
}

#[test]
fn grants_resume_soon_after_a_leader_is_killed_under_load() {
    let world = World::start();
    let members = all(&world);
    let kept: Vec<Session> = (0..10).map(|i| world.client(i % 3 + 1).open(s(6))).collect();
    let keepers: Vec<_> = kept.iter().map(|session| session.keep(members.clone())).collect();
    let tokens: Vec<u64> =
        kept.iter().enumerate().map(|(i, session)| session.try_lock(&format!("load/{i}")).token()).collect();
    let (stop, last) = (AtomicBool::new(false), Mutex::new(Instant::now()));
    let mut took = Vec::new();
    thread::scope(|scope| {
        for i in 0..WRITERS {
            let session = world.client(i % 3 + 1).open(s(600));
            let (stop, last, members) = (&stop, &last, &members);
            scope.spawn(move || {
                let name = format!("load/writer{i}");
                while !stop.load(Ordering::Relaxed) {
                    let told = session.acquire_for_good(&name, Wait::Try, members);
                    *last.lock().unwrap() = Instant::now();
                    if let Outcome::Granted(token) = told {
                        session.release_for_good(&name, token, members);
                    }
                }
            });
        }
        for _ in 0..form(2, 10) {
            let leader = world.leader_of("load/0");
            world.kill(leader).unwrap();
            let killed = Instant::now();
            // What was on its way when the leader died is not counted as resumed.
            let resumed = eventually("grants resume", SOON, || {
                let last = *last.lock().unwrap();
                (last > killed + ms(100)).then_some(last)
            });
            took.push(resumed - killed);
            world.start_member(leader).unwrap();
            world.wait_ready().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    took.sort();
    let median: Duration = took[took.len() / 2];
    println!("failover: grants resumed after {took:?}, median {median:?}");
    assert!(took.iter().all(|took| *took <= F + BUSY), "{took:?}");
    for (i, session) in kept.iter().enumerate() {
        assert_eq!(world.look(&format!("load/{i}")).holder, Some((session.id.clone(), tokens[i])));
    }
    drop(keepers);
    world.judge_with_failovers(s(600));
}
