//! C21: the wall clock steps, and nobody cares.

use std::{process::Stdio, time::Instant};

use holdfast_faults::Shim;

use crate::support::{
    BUSY, S, World, form, ms, s,
    wait::{eventually, let_pass},
};

const HOUR: i32 = 3_600;

#[test]
fn c21_steps_of_the_wall_clock_end_and_lengthen_nothing() {
    let Some(world) = World::possible(World::plan().switches()) else { return };
    let ttl = form(s(2), s(5));
    let all: Vec<String> = world.numbers().map(|member| world.http(member)).collect();
    let a = world.client(1).open(ttl);
    let held = a.try_lock("c21/a").token();
    let _a_lives = a.keep(all);
    let next = world.client(2).open(s(600));
    let leader = world.leader_of("c21/a");
    let follower = world.numbers().find(|member| *member != leader).unwrap();
    let short = vec![(leader, HOUR), (follower, -HOUR), (leader, 24 * HOUR)];
    let long: Vec<(u16, i32)> = [leader, follower]
        .into_iter()
        .flat_map(|member| [HOUR, -HOUR, 24 * HOUR].map(|by| (member, by)))
        .collect();
    let mut last = 0;
    for (member, offset) in form(short, long) {
        let b = world.client(3).open(ttl);
        let token = b.try_lock("c21/b").token();
        b.falls_silent();
        let died = Instant::now();
        world.switch(member).unwrap().step_clock(offset).unwrap();
        let granted = next.wait("c21/b", s(60)).token();
        assert!(died.elapsed() <= ttl + S + BUSY, "step {offset} of {member}: after {:?}", died.elapsed());
        assert!(died.elapsed() + ms(200) >= ttl, "step {offset} of {member}: after {:?}", died.elapsed());
        assert!(granted > token && token > last);
        last = granted;
        next.release("c21/b", granted).expect(200);
        assert_eq!(world.look("c21/a").holder, Some((a.id.clone(), held)), "A was lost");
    }
    assert!(world.numbers().all(|member| world.is_running(member)));
    world.judge();
}

#[test]
fn c21_steps_of_a_clients_clock_lose_no_lock() {
    let world = World::start();
    let marker = world.scratch().join("done");
    let mut command =
        world.holdfast(&["lock", "c21/client", "--ttl", "3s", "--", "sh", "-c", "sleep 5; touch $0"]);
    let shim = Shim::compile(world.scratch()).unwrap();
    let clock = shim.load(&mut command, &world.scratch().join("client.control")).unwrap();
    let mut child = command.arg(&marker).stdin(Stdio::null()).spawn().unwrap();
    eventually("the command holds the lock", s(20), || world.look("c21/client").holder);
    for offset in [HOUR, -HOUR, 24 * HOUR] {
        clock.step_clock(offset).unwrap();
        let_pass(s(1));
    }
    let status = eventually("the command ends", s(20), || child.try_wait().unwrap());
    assert!(status.success() && marker.exists(), "{status}");
}
