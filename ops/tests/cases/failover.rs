//! C34, C35: members die and restart; grants and holds do not.

use std::time::Instant;

use futures::future::join_all;

use crate::support::{BUSY, F, Outcome, World, form, ms, s, wait::pause};

#[test]
fn c34_a_grant_outlives_the_leader_that_gave_it() {
    let world = World::start();
    let mut last = 0;
    for round in 0..form(3, 300) {
        let leader = world.leader_of("c34");
        let others: Vec<String> =
            world.numbers().filter(|member| *member != leader).map(|member| world.http(member)).collect();
        let (a, b) = (world.client(leader).open(s(60)), world.client(1).open(s(60)));
        let (a, b) = (a.at(others[0].clone()), b.at(others[1].clone()));
        let token = a.try_lock("c34").token();
        world.kill(leader).unwrap();
        let killed = Instant::now();
        assert!(token > last, "round {round}");
        let told = b.acquire_for_good("c34", holdfast_history::Wait::Try, &others);
        assert_eq!(told, Outcome::Busy, "round {round}");
        assert!(killed.elapsed() <= F + BUSY, "round {round}: a new leader after {:?}", killed.elapsed());
        assert_eq!(world.look("c34").holder, Some((a.id.clone(), token)), "round {round}");
        a.release_for_good("c34", token, &others);
        last = token;
        world.start_member(leader).unwrap();
        world.wait_ready().unwrap();
    }
    world.judge_with_failovers(s(60));
}

#[tokio::test(flavor = "multi_thread")]
async fn c35_members_die_and_restart_and_no_holder_notices() {
    let world = World::start();
    let ttl = form(s(6), s(10));
    let native = world.native();
    let sessions = join_all((0..form(15, 100)).map(|_| native.open(ttl))).await;
    let names: Vec<String> = (0..sessions.len()).map(|i| format!("c35/{i}")).collect();
    let held = join_all(sessions.iter().zip(&names).map(|(session, name)| session.lock(name))).await;
    let leader = world.leader_of("c35/0");
    let follower = world.numbers().find(|member| *member != leader).unwrap();
    for member in [follower, leader] {
        world.kill(member).unwrap();
        pause(form(s(1), s(5))).await;
        world.start_member(member).unwrap();
        world.wait_ready().unwrap();
    }
    for member in world.numbers() {
        world.stop(member).unwrap();
        pause(form(ms(500), s(5))).await;
        world.start_member(member).unwrap();
        world.wait_ready().unwrap();
    }
    for guard in &held {
        assert!(!guard.state().ended(), "{} is {:?}", guard.name(), guard.state());
        assert_eq!(world.look(guard.name()).holder.unwrap().1, guard.number());
    }
    for guard in &held {
        assert!(guard.release().await.unwrap());
    }
    world.judge_with_failovers(ttl);
}
