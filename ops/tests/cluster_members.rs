//! Members that come and go on a living cluster, by the commands of the runbooks, while clients contend for locks.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "placement/crowd.rs"]
mod crowd;
mod harness;
#[path = "members/runbook.rs"]
mod runbook;

use std::{collections::BTreeSet, fs, net::TcpListener, time::Duration};

use crowd::Crowd;
use harness::{Cluster, HOLDFAST, Options, eventually, get, holdfast, parts, post};
use runbook::{Newcomers, Runbook};
use serde_json::{Value, json};

const CHANGED_WITHIN: Duration = Duration::from_secs(60);

fn three() -> Cluster {
    Cluster::start_with(Options { members: 3, groups: 2, restart: false })
}

#[track_caller]
fn ask<const N: usize>(cluster: &Cluster, arguments: [&str; N]) -> Value {
    let (code, out, err) =
        parts(&cluster.holdfast(arguments).args(["-o", "json", "--timeout", "30s"]).output().unwrap());
    assert_eq!(code, 0, "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

#[track_caller]
fn refused<const N: usize>(cluster: &Cluster, arguments: [&str; N]) -> String {
    let (code, _, err) = parts(&cluster.holdfast(arguments).args(["--timeout", "30s"]).output().unwrap());
    assert_ne!(code, 0, "{arguments:?} is not refused: {err}");
    err
}

fn ids(list: &Value, key: &str) -> BTreeSet<u64> {
    list.as_array().unwrap().iter().filter_map(|line| line[key].as_u64()).collect()
}

fn members(cluster: &Cluster) -> BTreeSet<u64> {
    ids(&ask(cluster, ["members", "list"]), "id")
}

/// The voters of each group, the meta group first.
fn voters(cluster: &Cluster) -> Vec<BTreeSet<u64>> {
    let groups = ask(cluster, ["groups", "list"]);
    groups.as_array().unwrap().iter().map(|group| ids(&group["voters"], "member")).collect()
}

/// A lock that is held all the while, and the token with which.
fn held(cluster: &Cluster) -> Value {
    let session = cluster.session(1, 600_000);
    let body = json!({"name": "held", "session": session, "wait_ms": 0});
    post(&format!("{}/v1/locks/acquire", cluster.http(1)), &body).expect(200)["token"].clone()
}

#[test]
fn three_members_become_five_and_three_again_under_load() {
    let cluster = three();
    let token = held(&cluster);
    let crowd = Crowd::begin(&cluster, 3);
    crowd.goes_on();
    let few = refused(&cluster, ["members", "remove", "3", "--yes"]);
    assert!(few.contains("2 members would be left") && few.contains("members replace 3"), "{few}");
    let grow = Runbook::read("grow-shrink.md");
    let mut newcomers = Newcomers::default();
    for id in [4_u16, 5] {
        let env = newcomers.place(&cluster, id);
        grow.follow("Add a member", &cluster, &env, &mut newcomers);
        crowd.goes_on();
    }
    assert_eq!(members(&cluster), [1, 2, 3, 4, 5].into());
    eventually("all five vote in the meta group and carry something", CHANGED_WITHIN, || {
        let list = ask(&cluster, ["members", "list"]);
        let carries =
            |id: u64| list.as_array().unwrap().iter().any(|m| m["id"] == id && m["carries"] != json!([]));
        (voters(&cluster)[0].len() == 5 && carries(4) && carries(5)).then_some(())
    });
    crowd.goes_on();
    for id in ["5", "4"] {
        grow.follow("Remove a member", &cluster, &[("ID", id.to_owned())], &mut newcomers);
        newcomers.ends(id.parse().unwrap(), "taken off the roster");
        crowd.goes_on();
    }
    assert_eq!(members(&cluster), [1, 2, 3].into());
    assert!(voters(&cluster).iter().all(|voters| *voters == [1, 2, 3].into()), "{:?}", voters(&cluster));
    for at in 1..=3 {
        assert_eq!(cluster.lock(at, "held")["holder"]["token"], token, "as member {at} says");
    }
    crowd.end();
}

#[test]
fn a_dead_member_is_replaced_and_its_emptied_disk_is_refused() {
    let cluster = three();
    let token = held(&cluster);
    let data = cluster.scratch().join("cluster/member-3");
    eventually("the cluster knows the disk", CHANGED_WITHIN, || {
        let log = fs::read_to_string(data.join("log")).unwrap_or_default();
        log.contains("the cluster knows this member and its disk").then_some(())
    });
    cluster.kill(3);
    // A process that is being ended loses its command line before its listeners.
    eventually("member 3 and its listeners are gone", CHANGED_WITHIN, || {
        let free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        let gone = !cluster.member_pids().contains_key(&3);
        (gone && (0..3).all(|listener| free(cluster.base() + 30 + listener))).then_some(())
    });
    fs::remove_dir_all(data.join("data")).unwrap();
    let (code, _, err) =
        parts(&holdfast().args(["node", "--config"]).arg(data.join("config.toml")).output().unwrap());
    assert_ne!(code, 0);
    assert!(
        err.contains("not the one the cluster knows") && err.contains("holdfast members replace 3"),
        "{err}"
    );
    fs::remove_dir_all(data.join("data")).unwrap();
    let crowd = Crowd::begin(&cluster, 2);
    let mut newcomers = Newcomers::default();
    let mut env = newcomers.place(&cluster, 4);
    env.push(("OLD", "3".to_owned()));
    // Who asks meanwhile hears who is at it.
    let replace = Runbook::read("replace-member.md");
    replace.follow("Replace a dead member", &cluster, &env, &mut newcomers);
    crowd.goes_on();
    assert_eq!(members(&cluster), [1, 2, 4].into());
    assert!(voters(&cluster).iter().all(|voters| *voters == [1, 2, 4].into()), "{:?}", voters(&cluster));
    assert_eq!(cluster.lock(1, "held")["holder"]["token"], token);
    assert_eq!(
        get(&format!("{}/readyz", cluster.http(3))).status,
        200,
        "the new one is where the old one was"
    );
    let first = ask(
        &cluster,
        [
            "members",
            "add",
            "--peer",
            "127.0.0.1:9",
            "--http",
            "http://127.0.0.1:7",
            "--grpc",
            "http://127.0.0.1:8",
            "--no-wait",
            "--yes",
        ],
    );
    let second = refused(&cluster, ["members", "remove", "4", "--yes"]);
    assert!(second.contains("is under way: add member 5, asked for by"), "{second}");
    let number = first["number"].to_string();
    let (code, _, err) = parts(&cluster.holdfast(["members", "cancel", &number]).output().unwrap());
    assert_eq!(code, 0, "{err}");
    assert_eq!(members(&cluster), [1, 2, 4].into());
    crowd.end();
}
