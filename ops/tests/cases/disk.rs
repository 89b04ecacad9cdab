//! C15 (slow disk), C36: a leader whose disk is slow, fails, or is full.

use std::time::{Duration, Instant};

use holdfast_faults::FaultError;
use nix::errno::Errno;

use crate::support::{Wait, World, form, http::Session, s, wait::until};

/// C36: how soon the others serve.
const SERVED_WITHIN: Duration = s(30);

fn others(world: &World, but: u16) -> Vec<String> {
    world.numbers().filter(|member| *member != but).map(|member| world.http(member)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn c15_a_leader_with_a_slow_disk_ends_no_session() {
    let Some(world) = World::possible(World::plan().switches()) else { return };
    let ttl = s(4);
    let native = world.native();
    let mut held = Vec::new();
    for i in 0..form(10, 50) {
        let session = native.open(ttl).await;
        held.push((session.lock(&format!("c15/{i}")).await, session));
    }
    let leader = world.leader_of("c15/0");
    let disk = world.switch(leader).unwrap();
    assert!(disk.syncs().unwrap() > 0, "the shim is in the way");
    disk.delay_syncs(form(s(4), s(10))).unwrap();
    let began = Instant::now();
    // Something to sync, also with the slow leader.
    let others = others(&world, leader);
    let writer = world.client(1).open(s(120)).at(others[0].clone());
    let mut rounds = 0;
    while began.elapsed() < form(s(7), s(12)) {
        let token = writer.acquire_for_good("c15/writer", Wait::Unlimited, &others).token();
        writer.release_for_good("c15/writer", token, &others);
        rounds += 1;
    }
    println!("c15: {rounds} grants beside a leader whose syncs were slow, {} bitten", disk.bitten().unwrap());
    assert!(disk.bitten().unwrap() > 0);
    disk.heal().unwrap();
    world.wait_ready().unwrap();
    for (guard, _) in &held {
        assert!(!guard.state().ended(), "{} is {:?}", guard.name(), guard.state());
        assert_eq!(world.look(guard.name()).holder.unwrap().1, guard.number());
    }
    drop(held);
    world.judge_with_failovers(s(120));
}

/// The story of C36, whatever makes the leader's disk unusable.
fn a_leaders_disk_gives_out(
    world: &World,
    leader: u16,
    give_out: impl FnOnce() -> Result<(), FaultError>,
    heal: impl FnOnce() -> Result<(), FaultError>,
) {
    let ttl = s(6);
    let members = others(world, leader);
    let sessions: Vec<Session> =
        (0..form(6, 20)).map(|_| world.client(1).open(ttl).at(members[0].clone())).collect();
    let keepers: Vec<_> = sessions.iter().map(|session| session.keep(members.clone())).collect();
    let tokens: Vec<u64> = sessions
        .iter()
        .enumerate()
        .map(|(i, session)| session.try_lock(&format!("c36/{i}")).token())
        .collect();
    let dead = world.client(1).open(s(2)).at(members[0].clone());
    dead.try_lock("c36/dead").token();
    dead.falls_silent();
    give_out().unwrap();
    let began = Instant::now();
    let member = world.numbers().find(|member| *member != leader).unwrap();
    let session = world.client(member).open(s(120));
    let token = session.acquire_for_good("c36/other", Wait::Try, &members).token();
    println!("c36: granted elsewhere {:?} after the disk gave out", began.elapsed());
    assert!(began.elapsed() <= SERVED_WITHIN, "{:?}", began.elapsed());
    session.release_for_good("c36/other", token, &members);
    session.acquire_for_good("c36/dead", Wait::AtMost(30_000_000_000), &members).token();
    until(began + s(3));
    for (i, session) in sessions.iter().enumerate() {
        assert_eq!(world.look(&format!("c36/{i}")).holder, Some((session.id.clone(), tokens[i])));
    }
    println!(
        "c36: the member with the bad disk {}",
        if world.is_running(leader) { "runs" } else { "has ended" }
    );
    heal().unwrap();
    world.kill(leader).unwrap();
    world.start_member(leader).unwrap();
    world.wait_ready().unwrap();
    for (i, session) in sessions.iter().enumerate() {
        session.release_for_good(&format!("c36/{i}"), tokens[i], &[world.http(leader)]);
    }
    drop(keepers);
    world.judge_with_failovers(s(120));
}

#[test]
fn c36_a_leader_on_a_full_tmpfs_gives_way_and_comes_back() {
    let Some(world) = World::possible(World::plan().small_disks(32)) else { return };
    let leader = world.leader_of("c36");
    let disk = world.small_disk(leader).unwrap();
    a_leaders_disk_gives_out(&world, leader, || disk.fill(), || disk.free());
}

#[test]
fn c36_a_leader_that_cannot_write_gives_way_and_comes_back() {
    let Some(world) = World::possible(World::plan().switches()) else { return };
    let leader = world.leader_of("c36");
    let disk = world.switch(leader).unwrap();
    a_leaders_disk_gives_out(&world, leader, || disk.fail_writes(Errno::ENOSPC), || disk.heal());
    assert!(disk.bitten().unwrap() > 0, "no write found the disk full");
}

#[test]
fn c36_a_leader_that_cannot_sync_gives_way_and_comes_back() {
    let Some(world) = World::possible(World::plan().switches()) else { return };
    let leader = world.leader_of("c36");
    let disk = world.switch(leader).unwrap();
    a_leaders_disk_gives_out(&world, leader, || disk.fail_syncs(Errno::EIO), || disk.heal());
    assert!(disk.bitten().unwrap() > 0, "no sync failed");
}
