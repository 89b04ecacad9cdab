//! C25 (native half), C26, C27: changes are seen in time, or their absence is said.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use holdfast_client::{WatchError, WatchEvent, WatchOptions};
use tokio::time::timeout;

use crate::{
    harness::get,
    support::{BUSY, S, SOON, World, form, ms, native::Session, s},
};

/// Acquires and releases so many times; notes the longest time from a release to the next grant.
async fn hand_back_and_forth(
    session: Session,
    rounds: u32,
    released: Arc<Mutex<Option<Instant>>>,
) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..rounds {
        let held = session.lock("c25").await;
        if let Some(at) = released.lock().unwrap().take() {
            longest = longest.max(at.elapsed());
        }
        *released.lock().unwrap() = Some(Instant::now());
        held.release().await.unwrap();
    }
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn c25_no_hand_over_is_missed() {
    let world = World::start();
    let rounds = form(60, 5_000);
    let released = Arc::new(Mutex::new(None));
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let session = world.native().open(s(30)).await;
        tasks.push(tokio::spawn(hand_back_and_forth(session, rounds, released.clone())));
    }
    let mut longest = Duration::ZERO;
    for task in tasks {
        longest = longest.max(task.await.unwrap());
    }
    println!("c25: {} hand-overs, the longest took {longest:?}", 2 * rounds);
    assert!(longest <= s(1) + BUSY, "{longest:?}");
    world.judge();
}

type Events = std::pin::Pin<Box<dyn futures::Stream<Item = Result<WatchEvent, WatchError>> + Send>>;

/// The next `count` events of this kind.
async fn next(events: &mut Events, what: &str, count: usize) -> Vec<WatchEvent> {
    let mut found = Vec::new();
    while found.len() < count {
        let event = timeout(SOON, events.next()).await.expect("an event in time").unwrap().unwrap();
        if event.what == what {
            found.push(event);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn c26_the_end_of_a_session_is_one_change_of_all_its_locks() {
    let world = World::start();
    let mut events: Events = Box::pin(world.native().client.watch("/clusters/", None));
    // The watch begins at an unknown moment: go on changing until it has seen something.
    let other = world.client(1).open(s(60));
    let mut began = timeout(Duration::ZERO, events.next()).await;
    while began.is_err() {
        let token = other.try_lock("/clusters/probe").token();
        other.release("/clusters/probe", token).expect(200);
        began = timeout(ms(50), events.next()).await;
    }
    let names = ["/clusters/a", "/clusters/b", "/clusters/c"];
    for (how, what) in [("revoked", "session_forced"), ("expired", "session_expired")] {
        let a = world.client(2).open(form(s(2), s(5)));
        let tokens: Vec<u64> = names.iter().map(|name| a.try_lock(name).token()).collect();
        a.try_lock("/elsewhere/d").token();
        let ended = Instant::now();
        match how {
            "revoked" => world.end_session(&a.id),
            _ => a.falls_silent(),
        }
        let seen = next(&mut events, what, 3).await;
        println!("c26: {how}: seen after {:?}", ended.elapsed());
        if how == "revoked" {
            assert!(ended.elapsed() <= ms(100) + BUSY, "{:?}", ended.elapsed());
        } else {
            assert!(ended.elapsed() <= form(s(2), s(5)) + S + BUSY, "{:?}", ended.elapsed());
        }
        let mut told: Vec<(String, u64)> =
            seen.iter().map(|event| (event.name.clone(), event.token)).collect();
        told.sort();
        let expected: Vec<(String, u64)> = names.iter().map(|name| (*name).to_owned()).zip(tokens).collect();
        assert_eq!(told, expected);
        assert!(seen.iter().all(|event| event.revision == seen[0].revision), "{seen:?}");
        assert!(seen.iter().all(|event| event.session.is_some_and(|session| session.to_string() == a.id)));
        world.wait_free("/elsewhere/d", s(2) + S + BUSY);
    }
    // Nothing of the one outside, up to a change that certainly came later.
    let token = other.try_lock("/clusters/end").token();
    let last = next(&mut events, "granted", 1).await;
    assert_eq!((last[0].name.as_str(), last[0].token), ("/clusters/end", token));
    world.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn c27_a_position_that_is_gone_is_told_and_not_skipped() {
    let world = World::start();
    let native = world.native();
    // One name is one group's, so that a plain revision is a position.
    let elections = || WatchOptions { prefix: "c27".into(), elections: true, exact: true, from: None };
    let mut events: Events = Box::pin(native.client.watch_with(elections()));
    let session = native.open(s(60)).await;
    let office = session.election("c27").campaign("first").await.unwrap();
    let mut first = timeout(ms(50), events.next()).await;
    while first.is_err() {
        office.proclaim("probe").await.unwrap();
        first = timeout(ms(50), events.next()).await;
    }
    let position = first.unwrap().unwrap().unwrap();
    drop(events);
    // More than a group keeps of its history, 16 MiB, in the largest values there are.
    let large = vec![b'x'; 64 << 10];
    for _ in 0..300 {
        office.proclaim(large.clone()).await.unwrap();
    }
    let mut resumed: Events = Box::pin(
        native.client.watch_with(WatchOptions { from: Some(position.cursor.clone()), ..elections() }),
    );
    let told = timeout(SOON, resumed.next()).await.unwrap().unwrap();
    let Err(WatchError::Compacted { oldest: Some(oldest) }) = told else { panic!("{told:?}") };
    assert!(oldest > position.revision, "{oldest} and {}", position.revision);
    assert!(resumed.next().await.is_none(), "it ends after the error");
    // From the oldest position on, everything is there.
    let mut again: Events =
        Box::pin(native.client.watch_with(WatchOptions { from: Some(oldest.to_string()), ..elections() }));
    let told = timeout(SOON, again.next()).await.unwrap().unwrap();
    assert!(matches!(&told, Ok(_) | Err(WatchError::Compacted { .. })), "{told:?}");
    // The same over HTTP, where one group owns all that is watched.
    let old = get(&format!("{}/v1/locks/watch?name=c27&from_revision=1", world.http(1)));
    assert_eq!((old.status, &old.body["code"]), (410, &serde_json::json!("compacted")), "{}", old.body);
    assert!(old.body["oldest"].is_u64(), "{}", old.body);
}
