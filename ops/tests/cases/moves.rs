//! Ranges that change groups under load: holders, queues, waiting calls, sessions and tokens go along.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use holdfast_client::{AcquireError, LockGuard};
use serde_json::{Value, json};

use crate::{
    harness,
    support::{
        S, SOON, Wait, World, form,
        http::Session as Http,
        ms,
        native::{Native, Session},
        s,
        wait::{eventually, let_pass, pause},
    },
};

/// Begins a change of the partition map, at any member that answers. Answers its number, and how many ranges move.
fn begin(world: &World, change: &Value) -> (u64, usize) {
    let body = json!({"change": change, "reason": "a test"});
    let mut members = world.numbers().collect::<Vec<_>>().into_iter().cycle();
    let begun = eventually("a change is begun", SOON, || {
        let member = members.next()?;
        let answer = harness::post(&format!("{}/v1/partitions/change", world.http(member)), &body);
        assert!(matches!(answer.status, 0 | 202 | 503), "{}", answer.body);
        (answer.status == 202).then_some(answer.body)
    });
    (begun["number"].as_u64().unwrap(), begun["steps"].as_array().unwrap().len())
}

/// Waits for the end of a change: how it ended.
fn end(world: &World, number: u64) -> String {
    let mut members = world.numbers().collect::<Vec<_>>().into_iter().cycle();
    let over = eventually("a change is over", 3 * SOON, || {
        let url = format!("{}/v1/partitions/changes", world.http(members.next()?));
        let changes = harness::get(&url).body;
        changes["past"].as_array()?.iter().find(|past| past["number"] == number).cloned()
    });
    over["end"]["how"].as_str().unwrap().to_owned()
}

/// Carries a change out to its end. Answers how many ranges moved.
fn change(world: &World, change: &Value) -> usize {
    let (number, moved) = begin(world, change);
    assert_eq!(end(world, number), "done");
    moved
}

/// Sees to it that a lock is in a group.
fn bring(world: &World, lock: &str, prefix: &str, to: u64) {
    if world.group_of(lock) != to {
        change(world, &json!({"action": "move", "prefix": prefix, "to": to}));
    }
}

/// Split over all groups, together again elsewhere, and so on, for so long. Answers how many ranges moved.
fn move_about(world: &World, prefix: &str, length: Duration) -> usize {
    let began = Instant::now();
    let mut moved = 0;
    while began.elapsed() < length {
        for wanted in [
            json!({"action": "split", "prefix": prefix, "into": [1, 2, 3, 4], "params": {"slots": "16"}}),
            json!({"action": "move", "prefix": prefix, "to": 3}),
            json!({"action": "split", "prefix": prefix, "into": [1, 4], "strategy": "rendezvous"}),
            json!({"action": "merge", "prefix": prefix, "to": 2}),
        ] {
            moved += change(world, &wanted);
        }
    }
    moved
}

/// Takes one lock of a few after the other; answers how long its releases took, which nothing but a move holds up.
async fn contend(
    session: Session,
    names: usize,
    prefix: &str,
    first: usize,
    over: &AtomicBool,
) -> Vec<Duration> {
    let mut took = Vec::new();
    for turn in first.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let held = session.acquire(&format!("{prefix}{}", turn % names), Wait::Unlimited).await;
        let held = held.unwrap_or_else(|error| panic!("an acquire ended with {error}"));
        pause(ms(2)).await;
        let began = Instant::now();
        let released = held.release().await;
        assert!(matches!(released, Ok(true)), "a release ended with {released:?}");
        took.push(began.elapsed());
    }
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_notices_that_a_prefix_moves_under_contention() {
    let Some(world) = World::possible(World::plan().groups(4)) else { return };
    let (clients, names, length) = form((40, 10, s(10)), (200, 50, s(60)));
    let prefix = "moving/";
    let natives: Vec<Native> = (0..4).map(|_| world.native()).collect();
    let over = Arc::new(AtomicBool::new(false));
    let mut contenders = Vec::new();
    for client in 0..clients {
        let session = natives[client % natives.len()].open(s(10)).await;
        let over = over.clone();
        contenders.push(tokio::spawn(async move { contend(session, names, prefix, client, &over).await }));
    }
    let moved = tokio::task::block_in_place(|| move_about(&world, prefix, length));
    over.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for contender in contenders {
        took.extend(contender.await.unwrap());
    }
    took.sort();
    let (p99, worst) = (took[took.len() * 99 / 100], took[took.len() - 1]);
    println!("moves: {moved} ranges moved under {} releases: p99 {p99:?}, worst {worst:?}", took.len());
    assert!(moved > 0 && !took.is_empty());
    world.judge();
}

/// Who is hit while a range moves.
#[derive(Clone, Copy, Debug)]
enum Role {
    Source,
    Destination,
    /// The leader of the meta group, which drives the move.
    Driver,
    /// A member that leads none of them, if there is one.
    Bystander,
}

impl Role {
    fn member(self, world: &World, from: u64, to: u64) -> Option<u16> {
        let (source, destination, driver) = (world.leader(from)?, world.leader(to)?, world.leader(0)?);
        match self {
            Self::Source => Some(source),
            Self::Destination => Some(destination),
            Self::Driver => Some(driver),
            Self::Bystander => {
                let leads = [source, destination, driver];
                world.numbers().find(|member| !leads.contains(member)).or(Some(driver))
            }
        }
    }
}

/// Takes one lock of a few after the other at any member, however often it must be asked for.
fn insist(session: &Http, members: &[String], names: u64, first: u64, over: &AtomicBool) {
    for turn in first.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("hit/{}", turn % names);
        let token = session.acquire_for_good(&name, Wait::AtMost(60_000_000_000), members).token();
        session.release_for_good(&name, token, members);
    }
}

#[test]
fn whoever_takes_part_in_a_move_may_die_or_sleep() {
    let world = World::start();
    let members: Vec<String> = world.numbers().map(|member| world.http(member)).collect();
    bring(&world, "hit/0", "hit/", 1);
    let over = AtomicBool::new(false);
    let sessions: Vec<Http> = (0..6).map(|i| world.client(i % 3 + 1).open(s(60))).collect();
    let _live: Vec<_> = sessions.iter().map(|session| session.keep(members.clone())).collect();
    let pairs = [
        (Role::Source, true, 0),
        (Role::Destination, false, 15),
        (Role::Driver, true, 30),
        (Role::Source, false, 45),
        (Role::Destination, true, 5),
        (Role::Driver, false, 20),
        (Role::Bystander, true, 10),
        (Role::Source, true, 60),
    ];
    thread::scope(|scope| {
        for (i, session) in sessions.iter().enumerate() {
            let (members, over) = (&members, &over);
            scope.spawn(move || insist(session, members, 3, i as u64, over));
        }
        for (round, (role, dies, after_ms)) in
            (0..form(1, 10)).flat_map(|round| pairs.map(|pair| (round, pair)))
        {
            let (from, to) = (world.group_of("hit/0"), 3 - world.group_of("hit/0"));
            let hit = eventually("all groups have leaders", SOON, || role.member(&world, from, to));
            let (number, _) = begin(&world, &json!({"action": "move", "prefix": "hit/", "to": to}));
            let_pass(ms(after_ms + round * 7));
            if dies {
                world.kill(hit).unwrap()
            } else {
                world.pause(hit).unwrap()
            }
            let_pass(s(2));
            if dies {
                world.start_member(hit).unwrap()
            } else {
                world.resume(hit).unwrap()
            }
            let how = end(&world, number);
            world.wait_ready().unwrap();
            let now = world.group_of("hit/0");
            println!("{role:?} {} {after_ms} ms into a move: {how}", if dies { "killed" } else { "paused" });
            assert_eq!(now, if how == "done" { to } else { from }, "{how}");
        }
        over.store(true, Ordering::Relaxed);
    });
    world.judge_with_failovers(s(60));
}

#[test]
fn a_session_that_dies_while_its_range_moves_frees_its_lock_once_and_in_time() {
    let world = World::start();
    let ttl = s(3);
    bring(&world, "dying/a", "dying/", 1);
    let heir = world.client(1).open(s(60));
    let _live = heir.keep(vec![world.http(1)]);
    let mut last = 0;
    for round in 0..form(4, 40) {
        let dying = world.client(2).open(ttl);
        let token = dying.wait("dying/a", s(20)).token();
        assert!(token > last);
        let died = Instant::now();
        dying.falls_silent();
        // Some of them die in the middle of the moves that go on, some before.
        thread::scope(|scope| {
            let granted = scope.spawn(|| heir.wait("dying/a", s(30)).token());
            while died.elapsed() < ttl + S {
                let to = 3 - world.group_of("dying/a");
                change(&world, &json!({"action": "move", "prefix": "dying/", "to": to}));
                let_pass(ms(20 * (round % 4)));
            }
            last = granted.join().unwrap();
        });
        assert!(last > token);
        heir.release("dying/a", last).expect(200);
    }
    world.judge();
}

/// How long taking and giving back a lock of a prefix that stays took, time after time, until it is told to stop.
async fn pace(session: Session, lock: &str, over: Arc<AtomicBool>) -> Vec<Duration> {
    let mut took = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        assert!(matches!(session.lock(lock).await.release().await, Ok(true)));
        took.push(began.elapsed());
        pause(ms(5)).await;
    }
    took.sort();
    took
}

/// Locks of one session, some at a time. Not recorded: they are judged by their guards.
async fn take_many(session: &Session, prefix: &str, count: usize) -> Vec<LockGuard> {
    let names = (0..count).map(|n| format!("{prefix}{}/{n}", session.id()));
    let taken = names.map(|name| async move {
        let lock = (**session).lock(name);
        eventually_taken(|| lock.acquire_timeout(SOON)).await
    });
    stream::iter(taken).buffer_unordered(32).collect().await
}

/// Asks again where a busy cluster did not answer in time.
async fn eventually_taken<F: Future<Output = Result<LockGuard, AcquireError>>>(
    ask: impl Fn() -> F,
) -> LockGuard {
    let began = Instant::now();
    loop {
        match ask().await {
            Ok(guard) => return guard,
            Err(error) => assert!(began.elapsed() < 3 * SOON, "a lock was not granted: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_full_of_held_locks_moves_and_no_client_notices() {
    let Some(world) = World::possible(World::plan().groups(4)) else { return };
    let (count, sessions) = form((3_000, 15), (100_000, 100));
    let prefix = "full/";
    let (natives, mut guards) = ((0..4).map(|_| world.native()).collect::<Vec<Native>>(), Vec::new());
    let mut opened = Vec::new();
    for n in 0..sessions {
        opened.push(natives[n % natives.len()].open(s(60)).await);
    }
    for session in &opened {
        guards.extend(take_many(session, prefix, count / sessions).await);
    }
    let from = tokio::task::block_in_place(|| world.group_of(&format!("{prefix}x")));
    let aside = (0..)
        .map(|n| format!("aside-{n}"))
        .find(|lock| tokio::task::block_in_place(|| world.group_of(lock)) != from);
    let (session, aside) = (natives[0].open(s(60)).await, aside.unwrap());
    let mut paces = Vec::new();
    let mut length = ms(0);
    for moves in [false, true] {
        let over = Arc::new(AtomicBool::new(false));
        let (clock, lock, told) = (session.clone(), aside.clone(), over.clone());
        let paced = tokio::spawn(async move { pace(clock, &lock, told).await });
        if moves {
            let began = Instant::now();
            let to = if from == 1 { 2 } else { 1 };
            let wanted = json!({"action": "move", "prefix": prefix, "to": to});
            assert_eq!(tokio::task::block_in_place(|| change(&world, &wanted)), 1);
            length = began.elapsed();
        } else {
            pause(s(3)).await;
        }
        over.store(true, Ordering::Relaxed);
        paces.push(paced.await.unwrap());
    }
    let p99 = |took: &Vec<Duration>| took.get(took.len() * 99 / 100).copied();
    println!(
        "moves: {} held locks of {sessions} sessions in {length:?}; p99 of another prefix {:?}, and {:?} meanwhile",
        guards.len(),
        p99(&paces[0]),
        p99(&paces[1])
    );
    assert_eq!(guards.len(), count);
    for guard in &guards {
        assert!(!guard.state().ended(), "a lock was lost: {:?}", guard.state());
    }
    // Each is where its range is now, and still its session's.
    let released = stream::iter(guards).map(|guard| async move { guard.release().await });
    let released: Vec<_> = released.buffer_unordered(32).collect().await;
    assert!(released.iter().all(|released| matches!(released, Ok(true))), "{released:?}");
    world.judge();
}
