//! The golden forms of what sessions answer.

use holdfast_locktable::{ids::Revision, metadata::Metadata};
use holdfast_partitioner::MapEpoch;
use serde_json::json;

use super::*;
use crate::api::http::tests::assert_answer;

fn session(id: u64) -> holdfast_locktable::ids::SessionId {
    holdfast_locktable::ids::SessionId::new(id).unwrap()
}

#[test]
fn an_opened_session_shows_its_id_in_hex() {
    let opened = SessionOpened { session: session(0x7fff_ffff_ffff_ff01), ttl_ms: 10_000 };
    let expected = json!({ "session": "7fffffffffffff01", "ttl_ms": 10_000 });
    assert_answer(("post", "/v1/sessions"), 201, SessionAnswer::from(opened), &expected);
}

#[test]
fn a_keepalive_lists_groups_one_by_one() {
    let states = [LeaseState::Renewed, LeaseState::Unknown, LeaseState::Lost, LeaseState::Unavailable];
    let groups = (1..)
        .zip(states)
        .map(|(n, state)| GroupLease { group: GroupId(n), state, epoch: MapEpoch::FIRST })
        .collect();
    let expected = json!({
        "ttl_ms": 10_000,
        "groups": [
            { "group": 1, "state": "renewed" },
            { "group": 2, "state": "unknown" },
            { "group": 3, "state": "lost" },
            { "group": 4, "state": "unavailable" },
        ],
    });
    let ack = KeepaliveAck { ttl_ms: 10_000, groups };
    assert_answer(("post", "/v1/sessions/keepalive"), 200, KeepaliveAnswer::from(ack), &expected);
}

fn info(ttl_left_ms: Option<u64>) -> SessionInfo {
    SessionInfo {
        session: session(0x2f),
        ttl_ms: 10_000,
        ttl_left_ms,
        home: GroupId(2),
        groups: vec![GroupId(1), GroupId(3)],
        open_ms: 1_234,
        metadata: Metadata::new([("host".to_owned(), "a1".to_owned())].into()).unwrap(),
        locks: vec![
            SessionLock { name: "jobs/x".into(), election: false, token: Revision(42), held: true },
            SessionLock { name: "db".into(), election: true, token: Revision(43), held: false },
        ],
    }
}

#[test]
fn one_session_shows_where_it_stands() {
    let expected = json!({
        "session": "2f",
        "ttl_ms": 10_000,
        "ttl_left_ms": 9_000,
        "home": 2,
        "groups": [1, 3],
        "open_ms": 1_234,
        "metadata": { "host": "a1" },
        "locks": [
            { "name": "jobs/x", "election": false, "token": 42, "held": true },
            { "name": "db", "election": true, "token": 43, "held": false },
        ],
    });
    let one = SessionsOrOne::One(info(Some(9_000)).into());
    assert_answer(("get", "/v1/sessions"), 200, one, &expected);
}

#[test]
fn a_list_of_sessions_names_the_groups_that_are_missing() {
    let page = SessionPage { sessions: vec![info(None)], unavailable_groups: vec![GroupId(4)] };
    let shown = serde_json::to_value(SessionsAnswer::from(page.clone())).unwrap();
    assert_eq!(shown["sessions"][0]["ttl_left_ms"], json!(null));
    assert_eq!(shown["unavailable_groups"], json!([4]));
    assert_answer(("get", "/v1/sessions"), 200, SessionsOrOne::All(page.into()), &shown);
    let none = json!({ "sessions": [], "unavailable_groups": [] });
    assert_answer(("get", "/v1/sessions"), 200, SessionsOrOne::All(SessionPage::default().into()), &none);
}
