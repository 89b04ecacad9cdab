//! C28, and what else a partition must not do: nothing hangs on a member that is cut off, and nobody is granted by it.

use std::{
    io::{BufRead as _, BufReader},
    thread,
    time::{Duration, Instant},
};

use crate::support::{
    BUSY, Outcome, SOON, Wait, World, form, s,
    wait::{eventually, pause},
};

/// Three election timeouts of at most a second each, counted from when the member misses the leader, which takes it up
/// to 2 s where connections stay half open.
const NO_LEADER_WITHIN: Duration = s(3 + 2);

/// What a watch over HTTP says last; the stream ends with it.
fn last_word(url: &str) -> String {
    let config = ureq::Agent::config_builder().timeout_global(Some(3 * SOON));
    let agent: ureq::Agent = config.build().into();
    let answer = agent.get(url).call().unwrap();
    let lines = BufReader::new(answer.into_body().into_reader()).lines();
    lines.map_while(Result::ok).filter(|line| line.starts_with("data:")).last().unwrap_or_default()
}

fn cut_off(world: &World, cut: u16, lock: &str) {
    let count = form(6, 20);
    let others: Vec<String> =
        world.numbers().filter(|member| *member != cut).map(|member| world.http(member)).collect();
    let open = || world.client(cut).open(s(120));
    let (holder, next) = (open().at(others[0].clone()), open().at(others[1].clone()));
    let _live = (holder.keep(others.clone()), next.keep(others.clone()));
    let held = holder.try_lock(lock).token();
    let at_cut: Vec<_> = (0..count).map(|_| open()).collect();
    let url = format!("{}/v1/locks/watch?prefix={lock}", world.http(cut));
    thread::scope(|scope| {
        let waits: Vec<_> = at_cut.iter().map(|session| scope.spawn(move || session.wait_on(lock))).collect();
        world.wait_for_waiters(lock, count);
        let watches: Vec<_> = (0..count).map(|_| scope.spawn(|| last_word(&url))).collect();
        let granted = scope.spawn(|| next.acquire_for_good(lock, Wait::Unlimited, &others));
        world.wait_for_waiters(lock, count + 1);
        world.isolate(cut);
        let began = Instant::now();
        for wait in waits {
            let told = wait.join().unwrap();
            // Retryable either way: a wait that stood in line may have been granted meanwhile, for all this member knows.
            let retryable = |why: &str| why.contains("503 no_leader") || why.contains("503 unknown_outcome");
            assert!(matches!(&told, Outcome::Unknown(why) if retryable(why)), "{told:?}");
        }
        println!("c28: waiters at the isolated member told after {:?}", began.elapsed());
        assert!(began.elapsed() <= NO_LEADER_WITHIN + 2 * BUSY, "{:?}", began.elapsed());
        for watch in watches {
            let said = watch.join().unwrap();
            assert!(said.contains("no_leader"), "{said:?}");
        }
        println!("c28: watchers at the isolated member told after {:?}", began.elapsed());
        assert!(began.elapsed() <= NO_LEADER_WITHIN + 3 * BUSY, "{:?}", began.elapsed());
        let refused = at_cut[0].try_lock("c28/new");
        assert!(matches!(refused, Outcome::Unknown(_)), "{refused:?}");
        holder.release_for_good(lock, held, &others);
        // Those who stood before it have nobody attached any more, and leave the queue.
        assert!(granted.join().unwrap().token() > held);
    });
    world.heal().unwrap();
    world.wait_ready().unwrap();
    world.judge_with_failovers(s(120));
}

#[test]
fn c28_nothing_hangs_on_a_follower_that_is_cut_off() {
    let world = World::start();
    let leader = world.leader_of("c28");
    cut_off(&world, world.numbers().find(|member| *member != leader).unwrap(), "c28");
}

#[test]
fn c28_nothing_hangs_on_a_leader_that_is_cut_off() {
    let world = World::start();
    cut_off(&world, world.leader_of("c28"), "c28");
}

#[test]
fn a_leader_that_hears_nobody_grants_nothing_and_the_others_go_on() {
    let world = World::start();
    let leader = world.leader_of("deaf");
    let others: Vec<u16> = world.numbers().filter(|member| *member != leader).collect();
    let session = world.client(leader).open(s(60));
    // Its words reach the others, theirs do not reach it.
    others.iter().for_each(|member| world.mute(*member, leader).unwrap());
    let deaf = thread::scope(|scope| {
        let deaf = scope.spawn(|| session.wait("deaf", s(20)));
        let other = world.client(others[0]).open(s(60));
        let members: Vec<String> = others.iter().map(|member| world.http(*member)).collect();
        let began = Instant::now();
        let token = other.acquire_for_good("deaf/other", Wait::AtMost(20_000_000_000), &members).token();
        println!("one-way partition: granted elsewhere after {:?}", began.elapsed());
        other.release_for_good("deaf/other", token, &members);
        deaf.join().unwrap()
    });
    assert!(!matches!(deaf, Outcome::Granted(_)), "granted by a leader that hears nobody: {deaf:?}");
    world.heal().unwrap();
    world.wait_ready().unwrap();
    eventually("the cut off client gets its lock after all", SOON, || {
        matches!(session.try_lock("deaf"), Outcome::Granted(_) | Outcome::Refused(_)).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn c28_waiters_of_the_client_move_off_a_member_that_is_cut_off() {
    let world = World::start();
    let leader = world.leader_of("c28");
    let cut = world.numbers().find(|member| *member != leader).unwrap();
    let side = world.side().unwrap();
    // All of them begin at the member that is cut off later.
    for member in world.numbers().filter(|member| *member != cut) {
        side.links(member).for_each(|link| link.refuse().unwrap());
    }
    let native = world.native_at(&side);
    let holder = world.native().open(s(30)).await;
    let held = holder.lock("c28").await;
    let mut waits = Vec::new();
    for _ in 0..form(4, 20) {
        let session = native.open(s(6)).await;
        waits.push(tokio::spawn(async move {
            let told = session.acquire("c28", Wait::Unlimited).await;
            if let Ok(held) = &told {
                while let Err(error) = held.release().await {
                    assert!(error.retryable(), "{error}");
                }
            }
            told.map(|held| held.number())
        }));
    }
    world.wait_for_waiters("c28", waits.len());
    side.heal().unwrap();
    world.isolate(cut);
    // Longer than their TTL: they live on only where they have moved.
    pause(s(7)).await;
    while let Err(error) = held.release().await {
        assert!(error.retryable(), "{error}");
    }
    for wait in waits {
        let told = wait.await.unwrap();
        assert!(told.as_ref().is_ok_and(|token| *token > held.number()), "{told:?}");
    }
    world.heal().unwrap();
    world.judge_with_failovers(s(30));
}
