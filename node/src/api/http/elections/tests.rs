//! The golden forms of what elections answer.

use bytes::Bytes;
use holdfast_locktable::{
    command::Wait,
    ids::{Revision, SessionId},
    metadata::Metadata,
    name::Name,
};
use holdfast_partitioner::{GroupId, MapEpoch};
use serde_json::json;

use super::{
    campaign::{CampaignBody, ProclaimAnswer},
    show::ElectionsOrLeader,
};
use crate::{
    api::http::{
        locks::{acquire::GrantAnswer, release::ReleaseAnswer},
        tests::assert_answer,
    },
    endpoint::types::{Granted, HolderView, LeaderView, LockPage, LockView},
};

const SHOW: (&str, &str) = ("get", "/v1/elections");

fn session() -> SessionId {
    SessionId::new(0x2f).unwrap()
}

#[test]
fn a_candidate_stands_in_the_election_and_not_in_the_lock_of_the_same_name() {
    let body = json!({ "name": "db", "session": "2f", "value": "10.0.0.1", "wait_ms": 0 });
    let request = serde_json::from_value::<CampaignBody>(body).unwrap().into_request();
    assert_eq!(request.name, Name::election("db").unwrap());
    assert_eq!((request.wait, request.value), (Wait::Try, Bytes::from_static(b"10.0.0.1")));
}

#[test]
fn campaigns_proclamations_and_resignations_are_answered() {
    let name = Name::election("db").unwrap();
    let grant = GrantAnswer::new(
        &name,
        session(),
        Granted { token: Revision(9), group: GroupId(1), epoch: MapEpoch::FIRST },
    );
    let expected = json!({ "name": "db", "token": 9, "session": "2f", "group": 1 });
    assert_answer(("post", "/v1/elections/campaign"), 200, grant, &expected);
    let proclaimed = ProclaimAnswer { proclaimed: true };
    assert_answer(("post", "/v1/elections/proclaim"), 200, proclaimed, &json!({ "proclaimed": true }));
    let released = ReleaseAnswer { released: true };
    assert_answer(("post", "/v1/elections/resign"), 200, released, &json!({ "released": true }));
}

#[test]
fn the_leader_of_one_election_shows_its_value() {
    let leader = LeaderView {
        name: "db".into(),
        session: session(),
        token: Revision(9),
        value: Bytes::from_static(b"\xff"),
        leading_ms: 5,
        candidates: 2,
    };
    let expected = json!({
        "name": "db", "session": "2f", "token": 9, "value_base64": "/w==", "leading_ms": 5, "candidates": 2,
    });
    assert_answer(SHOW, 200, ElectionsOrLeader::Leader(leader.into()), &expected);
}

#[test]
fn a_page_of_elections_shows_leaders_and_candidates() {
    let holder = HolderView {
        session: session(),
        token: Revision(9),
        held_ms: 5,
        ttl_left_ms: None,
        metadata: Metadata::default(),
        value: Bytes::from_static(b"10.0.0.1"),
    };
    let page = LockPage {
        locks: vec![
            LockView { name: "db".into(), group: GroupId(1), holder: Some(holder), waiters: 2 },
            LockView { name: "dc".into(), group: GroupId(2), holder: None, waiters: 0 },
        ],
        next_cursor: None,
        unavailable_groups: Vec::new(),
    };
    let expected = json!({
        "elections": [
            {
                "name": "db", "group": 1, "candidates": 2,
                "leader": {
                    "session": "2f", "token": 9, "leading_ms": 5, "ttl_left_ms": null, "metadata": {},
                    "value": "10.0.0.1",
                },
            },
            { "name": "dc", "group": 2, "leader": null, "candidates": 0 },
        ],
        "unavailable_groups": [],
    });
    assert_answer(SHOW, 200, ElectionsOrLeader::Page(page.into()), &expected);
}
