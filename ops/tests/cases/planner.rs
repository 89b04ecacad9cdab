//! The planner in mode `auto`: hot prefixes are split, a single hot name is isolated, what is quiet is merged, and nothing goes
//! to and fro. With shortened times; the planner is the one that runs in production.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    harness,
    support::{
        SOON, Wait, World, form, ms,
        native::{Native, Session},
        s,
        wait::{eventually, let_pass, pause},
    },
};

/// Clients of one load. With one turn in [`TURN`] each they make some 160 entries a second.
const CLIENTS: usize = 16;
/// How often a client takes a lock.
const TURN: Duration = ms(200);
/// How long the planner may take: it looks four times while a prefix must be hot, over windows of 5 s.
const PLANNED: Duration = s(120);

/// Clients that take locks at a steady pace until told to stop. Which lock, the number of client and turn decides.
struct Load {
    over: Arc<AtomicBool>,
    clients: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    async fn begin(natives: &[Native], name: fn(client: usize, turn: usize) -> String) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let session = natives[client % natives.len()].open(s(10)).await;
            let over = over.clone();
            clients.push(tokio::spawn(async move { steadily(&session, client, name, &over).await }));
        }
        Self { over, clients }
    }

    async fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.unwrap();
        }
    }
}

async fn steadily(session: &Session, client: usize, name: fn(usize, usize) -> String, over: &AtomicBool) {
    for turn in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let began = Instant::now();
        let held = session.acquire(&name(client, turn), Wait::Unlimited).await;
        let released = held.unwrap_or_else(|error| panic!("an acquire ended with {error}")).release().await;
        assert!(matches!(released, Ok(true)), "a release ended with {released:?}");
        pause(TURN.saturating_sub(began.elapsed())).await;
    }
}

/// Numbers that look like chance and are the same in every run.
fn mixed(client: usize, turn: usize) -> usize {
    let number = (client * 7_919 + turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number >> 33
}

/// One of 50 names; the n-th is asked for about 1/n as often as the first.
fn zipf(client: usize, turn: usize) -> String {
    let mut left = (mixed(client, turn) % 1_000) as f64 / 1_000.0 * 4.5;
    let name = (1..50).find(|n| {
        left -= 1.0 / f64::from(*n);
        left <= 0.0
    });
    format!("zipf/{}", name.unwrap_or(50))
}

/// Seven times in ten the same name.
fn one_name(client: usize, turn: usize) -> String {
    let number = mixed(client, turn);
    if number % 10 < 7 { "one/hot".to_owned() } else { format!("one/{}", number % 97) }
}

fn policy(world: &World, policy: &Value) {
    let mut body = policy.clone();
    body["reason"] = "a test".into();
    let mut members = world.numbers().collect::<Vec<_>>().into_iter().cycle();
    eventually("the planner has its policy", SOON, || {
        let url = format!("{}/v1/partitions/policy", world.http(members.next()?));
        let answer = harness::post(&url, &body);
        assert!(matches!(answer.status, 0 | 200 | 503), "{}", answer.body);
        (answer.status == 200).then_some(())
    });
}

/// All changes that are over, oldest first.
fn changes(world: &World) -> Vec<Value> {
    let mut members = world.numbers().collect::<Vec<_>>().into_iter().cycle();
    eventually("changes are shown", SOON, || {
        let url = format!("{}/v1/partitions/changes", world.http(members.next()?));
        harness::get(&url).body["past"].as_array().cloned()
    })
}

/// Waits until the planner has done something of this kind below a prefix.
fn planned(world: &World, action: &str, prefix: &str) -> Value {
    let found = eventually(&format!("the planner does: {action} {prefix}"), PLANNED, || {
        let wanted = |change: &&Value| {
            let what = change["what"].as_str().unwrap_or_default();
            what.starts_with(action) && what.contains(prefix) && change["end"]["how"] == "done"
        };
        changes(world).iter().find(wanted).cloned()
    });
    assert_eq!(found["actor"], "planner");
    println!("planner: {}, because {}", found["what"], found["reason"]);
    found
}

/// Rules of the map beside the one of all names.
fn rules(world: &World) -> Vec<String> {
    let map = harness::get(&format!("{}/v1/partitions", world.http(1))).body;
    let prefixes = map["rules"].as_array().into_iter().flatten().filter_map(|rule| rule["prefix"].as_str());
    prefixes.filter(|prefix| !prefix.is_empty()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_planner_splits_isolates_and_merges_and_nothing_goes_to_and_fro() {
    let Some(world) = World::possible(World::plan().groups(4)) else { return };
    let natives: Vec<Native> = (0..4).map(|_| world.native()).collect();
    policy(
        &world,
        &json!({"mode": "auto", "hot_entries_per_s": 60, "group_entries_per_s": 10_000, "quiet_entries_per_s": 2,
            "hot_queue_ms": 60_000, "hold_ms": 2_000, "cool_down_ms": 2_000, "quiet_ms": 6_000, "moves_per_hour": 1_000}),
    );

    let load = Load::begin(&natives, zipf).await;
    tokio::task::block_in_place(|| {
        planned(&world, "split", "\"zipf/\"");
        steady(&world);
    });
    load.end().await;

    let load = Load::begin(&natives, one_name).await;
    tokio::task::block_in_place(|| planned(&world, "isolate", "\"one/hot\""));
    load.end().await;

    tokio::task::block_in_place(|| {
        eventually("all that is quiet is merged", PLANNED, || rules(&world).is_empty().then_some(()));
    });
    world.judge();
}

/// Under the same load all the time, changes come to an end: a while without one.
fn steady(world: &World) {
    let quiet = form(s(6), s(300));
    let (mut count, mut since) = (changes(world).len(), Instant::now());
    let deadline = Instant::now() + form(PLANNED, s(900));
    while since.elapsed() < quiet {
        assert!(Instant::now() < deadline, "it never comes to rest: {:#?}", changes(world));
        let_pass(ms(500));
        let now = changes(world).len();
        if now != count {
            (count, since) = (now, Instant::now());
        }
    }
    println!("planner: at rest for {quiet:?} after {count} changes");
}
