//! More members than replicas, against a real cluster: groups with their own members, added, drained and handed on while
//! clients hold and contend for locks; and its verbs over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "placement/crowd.rs"]
mod crowd;
mod harness;
#[path = "placement/over_http.rs"]
mod over_http;

use std::{collections::BTreeSet, time::Duration};

use crowd::Crowd;
use harness::{Cluster, Options, eventually, get, parts, post};
use serde_json::{Value, json};

/// How long a change of the placement may take here.
const CHANGED_WITHIN: Duration = Duration::from_secs(40);

fn six() -> Cluster {
    Cluster::start_with(Options { members: 6, groups: 1, restart: true })
}

#[track_caller]
fn ask<const N: usize>(cluster: &Cluster, arguments: [&str; N]) -> Value {
    let (code, out, err) =
        parts(&cluster.holdfast(arguments).args(["-o", "json", "--timeout", "30s"]).output().unwrap());
    assert_eq!(code, 0, "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

#[track_caller]
fn run<const N: usize>(cluster: &Cluster, arguments: [&str; N]) -> (i32, String) {
    let (code, _, err) = parts(&cluster.holdfast(arguments).args(["--timeout", "30s"]).output().unwrap());
    (code, err)
}

fn numbers(list: &Value) -> BTreeSet<u64> {
    list.as_array().unwrap().iter().filter_map(Value::as_u64).collect()
}

fn member(cluster: &Cluster, id: u64) -> Value {
    let members = ask(cluster, ["members", "list"]);
    members.as_array().unwrap().iter().find(|member| member["id"] == id).unwrap().clone()
}

/// Groups with their wanted replicas and present voters, as their leaders say.
fn places(cluster: &Cluster) -> Vec<(BTreeSet<u64>, BTreeSet<u64>)> {
    let groups = ask(cluster, ["groups", "list"]);
    let locks = groups.as_array().unwrap().iter().filter(|group| group["group"] != 0);
    let voters = |group: &Value| {
        group["voters"].as_array().unwrap().iter().filter_map(|voter| voter["member"].as_u64()).collect()
    };
    locks.map(|group| (numbers(&group["replicas"]), voters(group))).collect()
}

#[test]
fn groups_are_added_and_take_their_share_while_locks_are_held() {
    let cluster = six();
    assert_eq!(places(&cluster), [(BTreeSet::from([1, 2, 3]), BTreeSet::from([1, 2, 3]))]);
    assert_eq!(numbers(&member(&cluster, 6)["carries"]), BTreeSet::new());
    // Held through a member that carries nothing.
    let session = cluster.session(6, 20_000);
    let held = json!({"name": "held", "session": session, "wait_ms": 0});
    let token = post(&format!("{}/v1/locks/acquire", cluster.http(6)), &held).expect(200)["token"].clone();
    let crowd = Crowd::begin(&cluster, 6);
    crowd.goes_on();
    let added = ask(&cluster, ["groups", "add"]);
    assert_eq!(numbers(&added[0]["replicas"]), BTreeSet::from([4, 5, 6]));
    for (more, over) in [("1", "1,2"), ("2", "1,2,3,4")] {
        if more == "2" {
            ask(&cluster, ["groups", "add", "--count", more]);
        }
        let (code, err) = run(&cluster, ["partitions", "spread", "", "--over", over, "--yes"]);
        assert_eq!(code, 0, "{err}");
        crowd.goes_on();
        let renew = json!({"session": session});
        eventually("the session is renewed", Duration::from_secs(10), || {
            (post(&format!("{}/v1/sessions/keepalive", cluster.http(6)), &renew).status == 200).then_some(())
        });
    }
    assert_eq!(places(&cluster).len(), 4);
    assert!((1..=6).all(|id| numbers(&member(&cluster, id)["carries"]).len() == 2), "two groups each");
    for at in 1..=6 {
        assert_eq!(cluster.lock(at, "held")["holder"]["token"], token, "as member {at} says");
    }
    // One group's leader goes where it is told to, and nobody notices.
    let to =
        places(&cluster)[1].1.iter().copied().find(|id| numbers(&member(&cluster, *id)["leads"]).is_empty());
    if let Some(to) = to {
        let (code, err) = run(&cluster, ["groups", "transfer-leader", "2", "--to", &to.to_string()]);
        assert_eq!(code, 0, "{err}");
        eventually("everybody knows", CHANGED_WITHIN, || {
            numbers(&member(&cluster, to)["leads"]).contains(&2).then_some(())
        });
    }
    let (code, err) = run(&cluster, ["groups", "transfer-leader", "2", "--to", "1"]);
    assert!(code != 0 && err.contains("no vote in group 2"), "{err}");
    crowd.goes_on();
    crowd.end();
    over_http::placement(&cluster);
    over_http::planner(&cluster);
    let (code, err) = run(&cluster, ["partitions", "policy", "--gain", "0"]);
    assert!(code == 2 && err.contains("gain_percent must be from 1 to 50"), "{code}: {err}");
}

#[test]
fn a_drained_member_gives_everything_away_also_when_members_are_killed_meanwhile() {
    let cluster = six();
    ask(&cluster, ["groups", "add"]);
    let (code, err) = run(&cluster, ["partitions", "spread", "", "--over", "1,2", "--yes"]);
    assert_eq!(code, 0, "{err}");
    let crowd = Crowd::begin(&cluster, 6);
    crowd.goes_on();
    let (code, err) = run(&cluster, ["members", "drain", "2"]);
    assert_eq!(code, 0, "{err}");
    // Whoever leads the meta group drives the change; the next one goes on with it.
    let groups = ask(&cluster, ["groups", "list"]);
    let meta_leader = groups[0]["leader"].as_u64().unwrap();
    if meta_leader != 2 {
        cluster.kill(meta_leader as u16);
    }
    eventually("member 2 carries nothing", CHANGED_WITHIN, || {
        let drained = member(&cluster, 2);
        let empty = numbers(&drained["carries"]).is_empty()
            && numbers(&drained["leads"]).is_subset(&BTreeSet::from([0]));
        (drained["drained"] == true && empty).then_some(())
    });
    cluster.wait_ready();
    eventually("the groups are where they are to be", CHANGED_WITHIN, || {
        places(&cluster).iter().all(|(wanted, voters)| wanted == voters && !voters.contains(&2)).then_some(())
    });
    let status = get(&format!("{}/v1/status", cluster.http(2))).expect(200);
    assert_eq!(status["groups"].as_array().unwrap().len(), 1, "only the meta group is left on it: {status}");
    crowd.goes_on();
    for id in ["3", "4"] {
        let (code, err) = run(&cluster, ["members", "drain", id]);
        assert_eq!(code, 0, "{err}");
    }
    let (code, err) = run(&cluster, ["members", "drain", "5"]);
    assert!(code != 0 && err.contains("2 members would be left"), "{err}");
    for id in ["3", "4", "2"] {
        let (code, err) = run(&cluster, ["members", "undrain", id]);
        assert_eq!(code, 0, "{err}");
    }
    eventually("it carries something again", CHANGED_WITHIN, || {
        let even = (1..=6).all(|id| numbers(&member(&cluster, id)["carries"]).len() == 1);
        (even && places(&cluster).iter().all(|(wanted, voters)| wanted == voters)).then_some(())
    });
    crowd.goes_on();
    crowd.end();
}
