//! C08–C11: whose lock is whose.

use std::thread;

use holdfast_client::AcquireError;

use crate::{
    harness::post,
    support::{Outcome, World, s},
};
use serde_json::json;

#[test]
fn c08_a_lock_without_a_session_is_refused() {
    let world = World::alone();
    let url = format!("{}/v1/locks/acquire", world.http(1));
    for body in [
        json!({"name": "c08"}),
        json!({"name": "c08", "session": null}),
        json!({"name": "c08", "session": ""}),
    ] {
        let told = post(&url, &body);
        assert_eq!((told.status, &told.body["code"]), (400, &json!("invalid_argument")), "{body}");
    }
    let told = post(&url, &json!({"name": "c08", "session": "7f"}));
    assert_eq!((told.status, &told.body["code"]), (410, &json!("session_lost")), "{}", told.body);
    assert!(world.look("c08").is_free());
}

#[test]
fn c09_names_are_independent_at_any_nesting() {
    let world = World::alone();
    let session = || world.client(1).open(s(60));
    for (held, asked) in [("path/", "path"), ("a/b", "a"), ("a/b/", "a/b"), ("/", "//"), ("x/1f", "x")] {
        let (holder, other) = (session(), session());
        let token = holder.try_lock(held).token();
        let free = other.try_lock(asked).token();
        other.release(asked, free).expect(200);
        holder.release(held, token).expect(200);
    }
    world.judge();
}

#[test]
fn c10_names_that_begin_alike_are_six_locks() {
    let world = World::start();
    let names = ["job1", "job10", "job1/x", "job", "job1 ", "JOB1"];
    let sessions: Vec<_> = (0..6).map(|i| world.client(i % 3 + 1).open(s(60))).collect();
    let tokens: Vec<u64> = thread::scope(|scope| {
        let asked: Vec<_> = (sessions.iter().zip(names))
            .map(|(session, name)| scope.spawn(move || session.try_lock(name).token()))
            .collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    sessions[0].release(names[0], tokens[0]).expect(200);
    assert!(world.look("job1").is_free());
    for i in 1..6 {
        assert_eq!(world.look(names[i]).holder, Some((sessions[i].id.clone(), tokens[i])), "{:?}", names[i]);
    }
    let listed = crate::harness::get(&format!("{}/v1/locks?prefix=job1", world.http(2))).expect(200);
    let listed: Vec<&str> =
        listed["locks"].as_array().unwrap().iter().map(|lock| lock["name"].as_str().unwrap()).collect();
    assert_eq!(listed, ["job1 ", "job1/x", "job10"]);
    world.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn c11_one_session_never_holds_a_lock_twice() {
    let world = World::start();
    let session = world.native().open(s(60)).await;
    let acquire = || holdfast_client::Session::lock(&session, "c11");
    let (first, second) = (acquire(), acquire());
    let (first, second) = tokio::join!(first.acquire(), second.acquire());
    let refused = |told: &Result<_, AcquireError>| {
        matches!(told, Err(AcquireError::AlreadyHeld { .. } | AcquireError::AlreadyWaiting { .. }))
    };
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    assert!(refused(&first) || refused(&second), "{first:?} {second:?}");
    let guard = first.or(second).unwrap();
    let later = acquire().try_acquire().await.unwrap_err();
    assert!(
        matches!(&later, AcquireError::AlreadyHeld { token: Some(token), .. } if *token == guard.token()),
        "{later:?}"
    );
    // The refused ones end nothing when they are dropped.
    assert_eq!(world.look("c11").holder, Some((session.id().to_string(), guard.token().get())));
    assert_eq!(world.client(1).open(s(60)).try_lock("c11"), Outcome::Busy);
    assert!(guard.release().await.unwrap());
    assert!(world.look("c11").is_free());
}
