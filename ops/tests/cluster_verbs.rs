//! The verbs of operators and `holdfast elect`, against a real cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    time::Duration,
};

use harness::{Cluster, eventually, get_text, parts, post};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

#[track_caller]
fn ask<const N: usize>(cluster: &Cluster, arguments: [&str; N]) -> Value {
    let (code, out, err) = parts(&cluster.holdfast(arguments).args(["-o", "json"]).output().unwrap());
    assert_eq!(code, 0, "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn lists_of_an_empty_cluster_are_valid_and_friendly() {
    let cluster = Cluster::start();
    assert_eq!(ask(&cluster, ["locks", "list"])["locks"], json!([]));
    assert_eq!(ask(&cluster, ["sessions", "list"])["sessions"], json!([]));
    assert_eq!(ask(&cluster, ["snapshots", "list"]), json!([]));
    assert_eq!(ask(&cluster, ["members", "list"]).as_array().unwrap().len(), 3);
    assert_eq!(ask(&cluster, ["groups", "list"]).as_array().unwrap().len(), 3);
    assert_eq!(ask(&cluster, ["groups", "show", "0"])["group"], 0);
    assert!(ask(&cluster, ["partitions", "show"])["rules"].as_array().is_some_and(|rules| !rules.is_empty()));
    let (code, out, _) = parts(&cluster.holdfast(["locks", "list"]).output().unwrap());
    assert_eq!((code, out.as_str()), (0, "no locks\n"));
    let (code, out, _) = parts(&cluster.holdfast(["locks", "list", "-o", "yaml"]).output().unwrap());
    assert_eq!(code, 0);
    assert!(out.contains("locks: []"), "{out}");
}

#[test]
fn holders_waiters_and_history_are_shown_and_names_are_harmless() {
    let cluster = Cluster::start();
    let (a, b) = (cluster.session(1, 60_000), cluster.session(2, 60_000));
    let name = "jobs/\u{202e}evil";
    let acquire = format!("{}/v1/locks/acquire", cluster.http(1));
    let granted = post(&acquire, &json!({"name": name, "session": a, "wait_ms": 0})).expect(200);
    let waiting = std::thread::spawn({
        let body = json!({"name": name, "session": b, "wait_ms": 20_000});
        move || post(&acquire, &body)
    });
    cluster.wait_for_waiters(name, 1);
    let listed = ask(&cluster, ["locks", "list", "jobs/"]);
    assert_eq!(listed["locks"][0]["name"], name);
    assert_eq!(listed["locks"][0]["holder"]["session"], json!(a));
    let shown = ask(&cluster, ["locks", "show", name]);
    assert_eq!(shown["queue"][0]["session"], json!(b));
    assert_eq!(shown["queue"][0]["position"], 2);
    for format in ["table", "json", "yaml"] {
        let (_, out, _) = parts(&cluster.holdfast(["locks", "list", "-o", format]).output().unwrap());
        assert!(!out.contains('\u{202e}'), "{format}: {out:?}");
    }
    let session = ask(&cluster, ["sessions", "show", &a]);
    assert_eq!(session["locks"][0]["held"], true);
    // Ending the session hands the lock on.
    let (code, _, err) =
        parts(&cluster.holdfast(["sessions", "end", &a, "--reason", "a test"]).output().unwrap());
    assert_eq!(code, 0, "{err}");
    let handed = waiting.join().unwrap().expect(200);
    assert!(handed["token"].as_u64() > granted["token"].as_u64());
    let (code, _, err) = parts(&cluster.holdfast(["sessions", "show", &a]).output().unwrap());
    assert_eq!(code, 1, "{err}");
    // All that is in the members' metrics too: what leaders did, each once.
    ask(&cluster, ["snapshots", "take"]);
    let metrics: String =
        (1..=3).map(|member| get_text(&format!("{}/metrics", cluster.http(member)))).collect();
    for (figure, count) in [
        (r#"holdfast_lock_handoff_duration_seconds_count{"#, 1),
        (r#"holdfast_snapshot_duration_seconds_count{kind="upload",outcome="ok""#, 3),
    ] {
        let lines = metrics.lines().filter(|line| line.starts_with(figure));
        let total: u64 = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(total, count, "{figure} in\n{metrics}");
    }
    for figure in ["holdfast_raft_apply_duration_seconds_count{", "holdfast_snapshot_size_bytes{"] {
        assert!(metrics.contains(figure), "{figure} in\n{metrics}");
    }
}

#[test]
fn a_stale_forced_release_changes_nothing() {
    let cluster = Cluster::start();
    let session = cluster.session(1, 60_000);
    let acquire = format!("{}/v1/locks/acquire", cluster.http(1));
    let token = post(&acquire, &json!({"name": "x", "session": session, "wait_ms": 0})).expect(200)["token"]
        .to_string();
    let release = |token: &str| {
        let arguments = ["locks", "release", "x", "--token", token, "--reason", "a test"];
        parts(&cluster.holdfast(arguments).output().unwrap())
    };
    // Tokens of a fresh cluster are small: ten times one is another.
    let (code, _, err) = release(&format!("{token}0"));
    assert_eq!(code, 1, "{err}");
    assert_eq!(cluster.lock(2, "x")["holder"]["session"], json!(session));
    let (code, out, err) = release(&token);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(&session), "{out}");
    assert!(cluster.lock(2, "x")["holder"].is_null());
}

#[test]
fn a_watch_prints_one_json_object_per_change() {
    let cluster = Cluster::start();
    let mut watch =
        cluster.holdfast(["locks", "watch", "w/", "-o", "json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let first =
        std::thread::spawn(move || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap());
    // The watch begins at an unknown moment: go on changing until it has seen something.
    eventually("the watch sees a change", Duration::from_secs(20), || {
        let (code, _, err) = parts(&cluster.holdfast(["lock", "w/x", "--", "true"]).output().unwrap());
        assert_eq!(code, 0, "{err}");
        first.is_finished().then_some(())
    });
    let event = first.join().unwrap();
    assert_eq!(event["name"], "w/x");
    assert!(event["cursor"].is_string() && event["revision"].is_u64(), "{event}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn an_election_has_one_leader_and_observers_see_each_change() {
    let cluster = Cluster::start();
    let lead = |value: &str| {
        let mut command = cluster.holdfast(["elect", "boss", value, "-o", "json"]);
        command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap()
    };
    let mut first = lead("one");
    let mut said = BufReader::new(first.stdout.take().unwrap()).lines();
    let leading: Value = serde_json::from_str(&said.next().unwrap().unwrap()).unwrap();
    assert_eq!((&leading["election"], &leading["value"]), (&json!("boss"), &json!("one")));

    let mut observe = cluster
        .holdfast(["elect", "boss", "--observe", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(observe.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&seen.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["leader"]["value"], "one");

    let mut second = lead("two");
    eventually("the second candidate waits", Duration::from_secs(10), || {
        let shown = ask(&cluster, ["locks", "show", "boss", "--elections"]);
        (shown["waiters"] == 1).then_some(())
    });
    kill(Pid::from_raw(first.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0), "resigning on request is no failure");
    let mut change = next();
    while change["leader"]["value"] != "two" {
        assert!(change["leader"].is_null(), "{change}");
        change = next();
    }
    assert!(change["leader"]["token"].as_u64() > leading["token"].as_u64());
    for child in [&mut second, &mut observe] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
