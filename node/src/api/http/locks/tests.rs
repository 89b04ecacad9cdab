//! The golden forms of what locks answer.

use bytes::Bytes;
use holdfast_locktable::{
    command::{RequestId, Wait},
    ids::{Revision, SessionId},
    metadata::Metadata,
    name::Name,
    outcome::CancelOutcome,
};
use holdfast_partitioner::{GroupId, MapEpoch};
use serde_json::{Value, json};

use super::{
    acquire::{AcquireBody, CancelAnswer, GrantAnswer},
    release::{ForceReleaseAnswer, ReleaseAnswer},
    show::{LockDetailAnswer, LocksAnswer, LocksOrOne},
};
use crate::{
    api::http::tests::assert_answer,
    endpoint::types::{Granted, HistoryView, HolderView, LockDetail, LockPage, LockView, WaiterView},
};

const SHOW: (&str, &str) = ("get", "/v1/locks");

fn session(id: u64) -> SessionId {
    SessionId::new(id).unwrap()
}

fn metadata() -> Metadata {
    Metadata::new([("pid".to_owned(), "7".to_owned())].into()).unwrap()
}

fn held() -> LockView {
    let holder = HolderView {
        session: session(0x2f),
        token: Revision(42),
        held_ms: 1_500,
        ttl_left_ms: Some(8_500),
        metadata: metadata(),
        value: Bytes::new(),
    };
    LockView { name: "jobs/x".into(), group: GroupId(3), holder: Some(holder), waiters: 1 }
}

fn held_json() -> Value {
    json!({
        "name": "jobs/x",
        "group": 3,
        "holder": {
            "session": "2f", "token": 42, "held_ms": 1_500, "ttl_left_ms": 8_500, "metadata": { "pid": "7" },
        },
        "waiters": 1,
    })
}

#[test]
fn a_grant_shows_name_token_session_and_group() {
    let name = Name::lock("jobs/x").unwrap();
    let answer = GrantAnswer::new(
        &name,
        session(0x2f),
        Granted { token: Revision(42), group: GroupId(3), epoch: MapEpoch::FIRST },
    );
    let expected = json!({ "name": "jobs/x", "token": 42, "session": "2f", "group": 3 });
    assert_answer(("post", "/v1/locks/acquire"), 200, answer, &expected);
}

#[test]
fn an_acquire_says_everything_or_as_little_as_it_must() {
    let read = |body: Value| serde_json::from_value::<AcquireBody>(body).unwrap().into_request();
    let full = read(json!({
        "name": "jobs/x", "session": "2f", "wait_ms": 250, "request_id": "r1", "metadata": { "pid": "7" },
    }));
    assert_eq!((full.name, full.session), (Name::lock("jobs/x").unwrap(), session(0x2f)));
    assert_eq!((full.wait, full.request), (Wait::AtMost(250), RequestId::Text("r1".into())));
    assert_eq!((full.metadata, full.value), (metadata(), Bytes::new()));
    let least = read(json!({ "name": "jobs/x", "session": "2f" }));
    assert_eq!(least.wait, Wait::Unlimited);
    assert_eq!(least.metadata, Metadata::default());
}

#[test]
fn a_cancel_says_how_it_found_the_request() {
    let operation = ("post", "/v1/locks/cancel");
    let granted = CancelOutcome::Granted { token: Revision(42), released: false };
    for (outcome, expected) in [
        (CancelOutcome::Cancelled, json!({ "outcome": "cancelled" })),
        (granted, json!({ "outcome": "granted", "token": 42, "released": false })),
        (CancelOutcome::None, json!({ "outcome": "none" })),
    ] {
        assert_answer(operation, 200, CancelAnswer::from(outcome), &expected);
    }
}

#[test]
fn releases_say_whether_they_ended_the_hold() {
    for released in [true, false] {
        let expected = json!({ "released": released });
        assert_answer(("post", "/v1/locks/release"), 200, ReleaseAnswer { released }, &expected);
    }
    let expected = json!({
        "released": true,
        "session": "2f",
        "warning": "the process that held goes on until it notices; only fencing keeps its writes out",
    });
    let answer = ForceReleaseAnswer::new(session(0x2f));
    assert_answer(("post", "/v1/locks/force-release"), 200, answer, &expected);
}

#[test]
fn a_page_shows_holders_and_where_it_goes_on() {
    let free = LockView { name: "jobs/y".into(), group: GroupId(1), holder: None, waiters: 0 };
    let page = LockPage {
        locks: vec![held(), free],
        next_cursor: Some("c".into()),
        unavailable_groups: vec![GroupId(2)],
    };
    let expected = json!({
        "locks": [held_json(), { "name": "jobs/y", "group": 1, "holder": null, "waiters": 0 }],
        "next_cursor": "c",
        "unavailable_groups": [2],
    });
    assert_answer(SHOW, 200, LocksOrOne::Page(page.into()), &expected);
    let none = json!({ "locks": [], "unavailable_groups": [] });
    assert_answer(SHOW, 200, LocksOrOne::Page(LocksAnswer::from(LockPage::default())), &none);
}

#[test]
fn one_lock_shows_its_queue_and_its_history() {
    let line = |what: &str, session: Option<SessionId>| HistoryView {
        revision: Revision(42),
        at_ms: 1_700_000_000_000,
        what: what.into(),
        session,
        token: Revision(42),
    };
    let waiter = WaiterView {
        session: session(0x30),
        position: 2,
        revision: Revision(44),
        waiting_ms: 700,
        metadata: Metadata::default(),
    };
    let detail = LockDetail {
        lock: held(),
        queue: vec![waiter],
        history: vec![line("granted", Some(session(0x2f))), line("deleted", None)],
    };
    let mut expected = held_json();
    expected["queue"] =
        json!([{ "session": "30", "position": 2, "revision": 44, "waiting_ms": 700, "metadata": {} }]);
    expected["history"] = json!([
        { "revision": 42, "at_ms": 1_700_000_000_000_u64, "what": "granted", "session": "2f", "token": 42 },
        { "revision": 42, "at_ms": 1_700_000_000_000_u64, "what": "deleted", "token": 42 },
    ]);
    assert_answer(SHOW, 200, LocksOrOne::One(LockDetailAnswer::from(detail)), &expected);
}
