//! Snapshots of a real cluster: what is in them, what is wrong with a damaged one, which of them stay, and sets of all
//! groups that are taken while ranges move.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use harness::{Cluster, eventually, holdfast, parts, post};
use serde_json::{Value, json};

/// How many sets are taken while ranges move, at least, and under how many maps.
const SETS: usize = 6;
const EPOCHS: usize = 3;
const MOVED_WITHIN: Duration = Duration::from_secs(60);

/// Whoever moves ranges stops when this goes, also where the test has failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[track_caller]
fn ask<const N: usize>(cluster: &Cluster, arguments: [&str; N]) -> Value {
    let (code, out, err) = parts(&cluster.holdfast(arguments).args(["-o", "json"]).output().unwrap());
    assert_eq!(code, 0, "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

/// The verb on the store itself, with no cluster in reach. Answers its exit code, answer and words.
fn offline(store: &Path, arguments: &[&str]) -> (i32, Value, String) {
    let mut command = holdfast();
    command.args(["--endpoints", "http://127.0.0.1:9", "-o", "json", "snapshots"]);
    command.args(arguments).arg("--store").arg(store);
    let (code, out, err) = parts(&command.output().unwrap());
    (code, serde_json::from_str(&out).unwrap_or(Value::Null), err)
}

fn store(cluster: &Cluster) -> PathBuf {
    cluster.scratch().join("cluster/snapshots")
}

/// Where a snapshot's data stand.
fn data_of(cluster: &Cluster, group: &Value, id: &str) -> PathBuf {
    let clusters: Vec<PathBuf> =
        fs::read_dir(store(cluster).join("cluster")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(clusters.len(), 1);
    clusters[0].join(format!("group/{group}/{id}/data"))
}

fn hold(cluster: &Cluster, session: &str, name: &str) {
    let body = json!({ "name": name, "session": session, "wait_ms": 0 });
    post(&format!("{}/v1/locks/acquire", cluster.http(1)), &body).expect(200);
}

/// How many locks the snapshots of a verified set hold together.
fn held(verified: &Value) -> u64 {
    let snapshots = verified["snapshots"].as_array().unwrap();
    snapshots.iter().filter_map(|one| one["content"]["locks"]["held"].as_u64()).sum()
}

#[test]
fn a_snapshot_is_looked_into_with_and_without_its_cluster() {
    let cluster = Cluster::start();
    let session = cluster.session(1, 60_000);
    ["jobs/1", "mail", "backup", "x"].iter().for_each(|name| hold(&cluster, &session, name));
    let set = ask(&cluster, ["snapshots", "take", "--set"]);
    let id = set["id"].as_str().unwrap();
    assert_eq!(ask(&cluster, ["snapshots", "sets"]), json!([set]));
    let verified = ask(&cluster, ["snapshots", "verify", id]);
    assert_eq!((held(&verified), &verified["fault"]), (4, &Value::Null), "{verified}");

    let store = store(&cluster);
    assert_eq!(offline(&store, &["verify", id]), (0, verified, String::new()));
    assert_eq!(offline(&store, &["sets"]).1, json!([set]));
    assert_eq!(offline(&store, &["list"]).1, ask(&cluster, ["snapshots", "list"]));
    let first = set["snapshots"][1]["id"].as_str().unwrap();
    let shown = ask(&cluster, ["snapshots", "show", first, "--group", "1"]);
    assert_eq!((&shown["whole"], &shown["incarnation"]), (&Value::Null, &json!(0)));
    assert_eq!(offline(&store, &["show", first, "--group", "1"]).1, shown);
    let (code, out, _) =
        parts(&cluster.holdfast(["snapshots", "verify", first, "--group", "1"]).output().unwrap());
    assert!(code == 0 && out.contains("locks held") && out.contains("sha-256"), "{out}");

    let nowhere = offline(&store.join("nowhere"), &["list"]);
    assert!(nowhere.0 == 1 && nowhere.2.contains("there is no snapshot store"), "{}", nowhere.2);
    assert!(!store.join("nowhere").exists());
    let (code, _, err) = offline(&store, &["list", "--from-cluster", "other"]);
    assert!(code == 1 && err.contains("has no snapshots of the cluster other"), "{err}");
    for bad in ["x", "set-", "../1-a"] {
        assert_eq!(offline(&store, &["verify", bad]).0, 2, "{bad}");
    }
}

#[test]
fn a_damaged_snapshot_is_found_and_the_last_good_one_stays() {
    let cluster = Cluster::start();
    let delete = |id: &str, group: &str| {
        let arguments = ["snapshots", "delete", id, "--group", group, "--yes"];
        parts(&cluster.holdfast(arguments).output().unwrap())
    };
    let old = ask(&cluster, ["snapshots", "take", "--group", "1"])[0]["id"].as_str().unwrap().to_owned();
    let (code, _, err) = delete(&old, "1");
    assert!(code == 1 && err.contains("is the last good one of group 1"), "{code} {err}");
    let set = ask(&cluster, ["snapshots", "take", "--set"]);
    let (id, member) = (set["id"].as_str().unwrap(), &set["snapshots"][1]);
    let damaged = member["id"].as_str().unwrap();
    let (code, _, err) = delete(damaged, "1");
    assert!(code == 1 && err.contains("the newest snapshot set"), "{code} {err}");

    let data = data_of(&cluster, &member["group"], damaged);
    let mut bytes = fs::read(&data).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&data, bytes).unwrap();
    for arguments in
        [["snapshots", "verify", damaged, "--group", "1"].as_slice(), &["snapshots", "verify", id]]
    {
        let mut command = cluster.holdfast(["-o", "json"]);
        let (code, out, err) = parts(&command.args(arguments).output().unwrap());
        assert!(code == 1 && err.contains("is damaged") && err.contains("take a new one"), "{code} {err}");
        assert!(out.contains("\"fault\""), "{out}");
    }
    assert_eq!(offline(&store(&cluster), &["verify", id]).0, 1);
    // The older one is the last good one again.
    let (code, _, err) = delete(&old, "1");
    assert!(code == 1 && err.contains("is the last good one of group 1"), "{code} {err}");

    ask(&cluster, ["snapshots", "take", "--set"]);
    let unsure = ["snapshots", "delete", &old, "--group", "1"];
    let (code, _, err) = parts(&cluster.holdfast(unsure).output().unwrap());
    assert!(code == 2 && err.contains("--yes"), "{code} {err}");
    let (code, _, err) = delete(&old, "1");
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = delete(damaged, "1");
    assert!(code == 0 && err.contains(id), "{code} {err}");
    assert_eq!(ask(&cluster, ["snapshots", "sets"]).as_array().unwrap().len(), 1);
}

#[test]
fn sets_that_are_taken_while_ranges_move_have_every_lock_once() {
    let cluster = Cluster::start();
    let session = cluster.session(1, 600_000);
    let names: Vec<String> = (0..40).map(|lock| format!("p{}/{lock}", lock % 4)).collect();
    names.iter().for_each(|name| hold(&cluster, &session, name));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0_usize;
            while !done.load(Ordering::Relaxed) {
                let (prefix, to) = (format!("p{}/", turn % 4), ["1", "2"][turn / 4 % 2]);
                // Refused where the prefix is there already, or another move is under way; its turn comes again.
                cluster.holdfast(["partitions", "move", &prefix, "--to", to, "--yes"]).output().unwrap();
                turn += 1;
            }
        });
        let over = Over(&done);
        let mut taken: Vec<Value> = Vec::new();
        eventually("sets are taken before and after moves", MOVED_WITHIN, || {
            taken.push(ask(&cluster, ["snapshots", "take", "--set"]));
            let epochs: BTreeSet<_> = taken.iter().map(|set| set["map_epoch"].as_u64()).collect();
            (taken.len() >= SETS && epochs.len() >= EPOCHS).then_some(())
        });
        drop(over);
        for set in &taken {
            let verified = ask(&cluster, ["snapshots", "verify", set["id"].as_str().unwrap()]);
            assert_eq!((held(&verified), &verified["fault"]), (40, &Value::Null), "{verified}");
        }
    });
}
