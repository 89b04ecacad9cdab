//! C05–C07: contenders that try, and whose time counts.

use std::{thread, time::Instant};

use crate::support::{
    BUSY, Outcome, S, World, form, ms, s,
    wait::{let_pass, until},
};

#[test]
fn c05_failed_tries_leave_nothing_and_lengthen_nothing() {
    let world = World::start();
    let ttl = form(s(2), s(5));
    let a = world.client(1).open(ttl);
    let held = a.try_lock("c05").token();
    let died = Instant::now();
    a.falls_silent();
    let mut sessions = Vec::new();
    let token = loop {
        let session = world.client(sessions.len() as u16 % 3 + 1).open(s(60));
        let told = session.try_lock("c05");
        sessions.push(session);
        match told {
            Outcome::Granted(token) => break token,
            Outcome::Busy => assert!(died.elapsed() <= ttl + S + BUSY, "busy after {:?}", died.elapsed()),
            other => panic!("{other:?}"),
        }
        let queue = world.look("c05");
        assert!(queue.waiting.is_empty(), "a try left a waiter: {queue:?}");
        let_pass(ms(form(100, 200)));
    };
    println!("c05: {} tries, granted after {:?}", sessions.len(), died.elapsed());
    assert!(sessions.len() > 5 && token > held, "{} tries, {held} then {token}", sessions.len());
    assert!(died.elapsed() + ms(100) >= ttl, "granted before A's lease was over: {:?}", died.elapsed());
    world.judge();
}

#[test]
fn c06_a_single_try_succeeds_after_the_holders_lease() {
    let world = World::start();
    let ttl = form(s(2), s(3));
    let (a, b) = (world.client(1).open(ttl), world.client(2).open(s(60)));
    let held = a.try_lock("c06").token();
    let died = Instant::now();
    a.falls_silent();
    until(died + s(1));
    assert_eq!(b.try_lock("c06"), Outcome::Busy);
    until(died + ttl + S + ms(100));
    assert!(b.try_lock("c06").token() > held);
    world.judge();
}

#[test]
fn c07_a_contender_judges_the_holder_by_the_holders_ttl() {
    let world = World::start();
    let (ttl, contended) = form((s(4), s(5)), (s(30), s(60)));
    let (a, b) = (world.client(1).open(ttl), world.client(2).open(s(1)));
    let held = a.try_lock("c07").token();
    let all: Vec<String> = (1..=3).map(|member| world.http(member)).collect();
    let (a_lives, _b_lives) = (a.keep(all.clone()), b.keep(all));
    assert_eq!(b.wait("c07", contended), Outcome::TimedOut, "B was granted although A lives");
    thread::scope(|scope| {
        let told = scope.spawn(|| b.wait_on("c07"));
        world.wait_for_waiters("c07", 1);
        a_lives.die();
        let died = Instant::now();
        let token = told.join().unwrap().token();
        println!("c07: granted {:?} after A's death", died.elapsed());
        // A's last keepalive is at most a sixth of its TTL old.
        assert!(died.elapsed() >= ttl * 5 / 6 - ms(500), "after {:?}", died.elapsed());
        assert!(died.elapsed() <= ttl + S + BUSY, "after {:?}", died.elapsed());
        assert!(token > held);
    });
    world.judge();
}
