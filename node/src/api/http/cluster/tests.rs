//! The golden forms of what operators are answered.

use std::collections::BTreeMap;

use holdfast_locktable::ids::Revision;
use holdfast_partitioner::{GroupId, MapEpoch, MapParts, PartitionMap, Rule, StrategyRecord, Table};
use serde_json::{Value, json};

use super::{
    audit::AuditAnswer,
    partitions::PartitionsAnswer,
    snapshots::SnapshotsAnswer,
    status::{GroupsAnswer, MembersAnswer, StatusAnswer},
};
use crate::{
    api::http::tests::assert_answer,
    endpoint::types::{
        AuditEntry, SnapshotView,
        cluster::{GroupView, MemberView, StatusView, VoterView},
    },
};

fn group() -> GroupView {
    GroupView {
        group: GroupId(1),
        leader: Some(2),
        term: 3,
        last_log_index: 12,
        committed_index: 11,
        applied_index: 10,
        revision: Revision(9),
        replicas: vec![2, 1],
        voters: vec![
            VoterView { member: 1, matched_index: Some(12) },
            VoterView { member: 2, matched_index: None },
        ],
        learners: vec![VoterView { member: 3, matched_index: Some(4) }],
        joint: false,
        members_index: 2,
        held: 4,
        waiting: 5,
        sessions: 6,
    }
}

fn group_json() -> Value {
    json!({
        "group": 1, "leader": 2, "term": 3, "last_log_index": 12, "committed_index": 11, "applied_index": 10,
        "revision": 9, "held": 4, "waiting": 5, "sessions": 6,
        "replicas": [2, 1], "joint": false,
        "voters": [{ "member": 1, "matched_index": 12 }, { "member": 2, "matched_index": null }],
        "learners": [{ "member": 3, "matched_index": 4 }],
    })
}

#[test]
fn a_member_says_what_it_is() {
    let status = StatusView {
        cluster: "test".into(),
        member: 1,
        version: "0.1.0".into(),
        map_epoch: MapEpoch(7),
        groups: vec![group()],
    };
    let expected = json!({
        "cluster": "test", "member": 1, "version": "0.1.0", "map_epoch": 7, "groups": [group_json()],
    });
    assert_answer(("get", "/v1/status"), 200, StatusAnswer::from(status), &expected);
}

#[test]
fn groups_show_leader_and_indexes() {
    let mut leaderless = group();
    leaderless.leader = None;
    let mut shown = group_json();
    shown["leader"] = Value::Null;
    let answer = GroupsAnswer::from(vec![group(), leaderless]);
    assert_answer(("get", "/v1/groups"), 200, answer, &json!({ "groups": [group_json(), shown] }));
}

#[test]
fn members_show_their_listeners() {
    let member = MemberView {
        id: 1,
        http: "http://127.0.0.1:7610".into(),
        grpc: "http://127.0.0.1:7611".into(),
        peer: "127.0.0.1:7612".into(),
        this: true,
        reachable: true,
        leads: vec![GroupId(0), GroupId(2)],
        carries: vec![GroupId(2)],
        drained: false,
    };
    let expected = json!({ "members": [{
        "id": 1, "http": "http://127.0.0.1:7610", "grpc": "http://127.0.0.1:7611", "peer": "127.0.0.1:7612",
        "this": true, "reachable": true, "leads": [0, 2], "carries": [2], "drained": false,
    }] });
    assert_answer(("get", "/v1/members"), 200, MembersAnswer::from(vec![member]), &expected);
}

#[test]
fn the_partition_map_shows_slots_and_splits() {
    let hashed = Rule {
        depth: 1,
        strategy: StrategyRecord::hash(2),
        table: Table::Slots(vec![GroupId(1), GroupId(2)]),
    };
    let split = Rule {
        depth: 2,
        strategy: StrategyRecord::pinned(GroupId(2)),
        table: Table::Splits(BTreeMap::from([
            (String::new(), GroupId(1)),
            ("jobs/m".to_owned(), GroupId(2)),
        ])),
    };
    let parts = MapParts {
        epoch: MapEpoch(5),
        rules: BTreeMap::from([(String::new(), hashed), ("jobs/".to_owned(), split)]),
        home_slots: vec![GroupId(1); 64],
    };
    let expected = json!({
        "epoch": 5,
        "rules": [
            {
                "prefix": "", "depth": 1, "table": { "slots": [1, 2] },
                "strategy": { "name": "hash", "params": { "slots": "2" } },
            },
            {
                "prefix": "jobs/", "depth": 2,
                "strategy": { "name": "pinned", "params": { "group": "2" } },
                "table": { "splits": [{ "from": "", "group": 1 }, { "from": "jobs/m", "group": 2 }] },
            },
        ],
        "home_slots": vec![1; 64],
    });
    let map = PartitionMap::try_from(parts).unwrap();
    assert_answer(("get", "/v1/partitions"), 200, PartitionsAnswer::from(map), &expected);
}

#[test]
fn snapshots_show_what_is_inside() {
    let snapshot = SnapshotView {
        id: "g1-000012".into(),
        group: GroupId(1),
        log_index: 12,
        term: 3,
        revision: Revision(9),
        size_bytes: 4_096,
        sha256: "00ff".into(),
        created_at_ms: 1_700_000_000_000,
    };
    let expected = json!({ "snapshots": [{
        "id": "g1-000012", "group": 1, "log_index": 12, "term": 3, "revision": 9, "size_bytes": 4_096,
        "sha256": "00ff", "created_at_ms": 1_700_000_000_000_u64,
    }] });
    for (operation, status) in [(("get", "/v1/snapshots"), 200), (("post", "/v1/snapshots"), 202)] {
        assert_answer(operation, status, SnapshotsAnswer::from(vec![snapshot.clone()]), &expected);
    }
}

#[test]
fn the_audit_log_shows_who_did_what_to_whom_and_why() {
    let entry = AuditEntry {
        index: 3,
        at_ms: 1_700_000_000_000,
        actor: "http 127.0.0.1".into(),
        action: "force_release".into(),
        target: "jobs/x".into(),
        reason: "stuck".into(),
        outcome: "ok".into(),
    };
    let expected = json!({ "entries": [{
        "index": 3, "at_ms": 1_700_000_000_000_u64, "actor": "http 127.0.0.1", "action": "force_release",
        "target": "jobs/x", "reason": "stuck", "outcome": "ok",
    }] });
    assert_answer(("get", "/v1/audit"), 200, AuditAnswer::from(vec![entry]), &expected);
}
