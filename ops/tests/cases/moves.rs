//! Ranges that change groups under load: holders, queues, waiting calls, sessions and tokens go along.

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
        wait::{eventually, pause},
    },
};

/// Begins a change of the partition map and waits for its end. Answers how many ranges moved.
fn change(world: &World, change: &Value) -> usize {
    let member = world.numbers().next().unwrap();
    let begun = eventually("a change is begun", SOON, || {
        let body = json!({"change": change, "reason": "a test"});
        let answer = harness::post(&format!("{}/v1/partitions/change", world.http(member)), &body);
        assert!(matches!(answer.status, 202 | 503), "{}", answer.body);
        (answer.status == 202).then_some(answer.body)
    });
    let number = begun["number"].as_u64().unwrap();
    let url = format!("{}/v1/partitions/changes", world.http(member));
    let over = eventually("a change is over", 3 * SOON, || {
        let changes = harness::get(&url).body;
        let past = changes["past"].as_array()?;
        past.iter().find(|past| past["number"] == number).cloned()
    });
    assert_eq!(over["end"]["how"], "done", "{over}");
    begun["steps"].as_array().unwrap().len()
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
