//! The command without a cluster: usage, exit codes, completions, configuration.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use std::{
    fs,
    net::TcpListener,
    time::{Duration, Instant},
};

use harness::{holdfast, parts};
use serde_json::Value;

fn run(arguments: &[&str]) -> (i32, String, String) {
    parts(&holdfast().args(arguments).output().unwrap())
}

#[test]
fn wrong_usage_exits_2_and_says_so_with_our_prefix() {
    for arguments in [
        &["lock"][..],
        &["lock", "x", "--wait", "soon", "--", "true"],
        &["lock", "x", "--wait", "1s", "--try", "--", "true"],
        &["lock", "x", "--ttl", "10ms", "--", "true"],
        &["lock", "", "--", "true"],
        &["lock", "a\nb", "--", "true"],
        &["frobnicate"],
        &["locks", "list", "--nope"],
        &["locks", "list", "--endpoints", "not a url"],
        &["locks", "release", "x", "--token", "1"],
        &["dev", "--members", "0"],
        &["dev", "--base-port", "65510"],
    ] {
        let (code, out, err) = run(arguments);
        assert_eq!(code, 2, "{arguments:?}: {err}");
        assert_eq!(out, "", "{arguments:?}");
        assert!(
            !err.is_empty() && err.lines().all(|line| line.starts_with("holdfast:")),
            "{arguments:?}: {err}"
        );
    }
}

#[test]
fn help_and_version_are_data() {
    let (code, out, _) = run(&["--version"]);
    assert_eq!((code, out.starts_with("holdfast 0.")), (0, true), "{out}");
    let (code, out, err) = run(&["lock", "--help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("HOLDFAST_TOKEN") && out.contains("holdfast lock"), "{out}");
    assert!(!run(&["--help"]).1.contains("internal"), "hidden verbs are hidden");
}

#[test]
fn without_any_member_every_verb_exits_69_within_its_timeout() {
    // A port that nobody listens on, and one that accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    for endpoint in ["http://127.0.0.1:9", &silent] {
        for arguments in [
            &["lock", "x", "--", "true"][..],
            &["lock", "x", "--wait", "1s", "--", "true"],
            &["elect", "x", "--", "true"],
            &["elect", "x", "--observe"],
            &["locks", "list"],
            &["locks", "watch"],
            &["sessions", "list"],
            &["members", "list"],
            &["groups", "list"],
            &["partitions", "show"],
            &["snapshots", "list"],
            &["snapshots", "sets"],
            &["snapshots", "take", "--set"],
        ] {
            let begun = Instant::now();
            let (code, out, err) = parts(
                &holdfast()
                    .args(["--endpoints", endpoint, "--timeout", "1s"])
                    .args(arguments)
                    .output()
                    .unwrap(),
            );
            assert_eq!((code, out.as_str()), (69, ""), "{arguments:?} at {endpoint}: {err}");
            assert!(begun.elapsed() < Duration::from_secs(4), "{arguments:?} took {:?}", begun.elapsed());
        }
    }
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(out.contains("holdfast") && out.contains("sessions"), "{shell}");
    }
}

#[test]
fn config_check_reports_all_faults_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("member.toml");
    fs::write(&path, "member = 1\nnonsense = 2\n[raft]\nelection_timeout_max = \"10ms\"\n").unwrap();
    let path = path.to_str().unwrap();
    let (code, out, err) = run(&["config", "check", "--config", path, "-o", "json"]);
    assert_eq!(code, 1, "{err}");
    let checked: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(checked["ok"], false);
    let keys: Vec<_> = checked["faults"].as_array().unwrap().iter().map(|fault| &fault["key"]).collect();
    assert_eq!(keys, ["nonsense", "data_dir", "members", "raft.election_timeout_max"]);
    let (code, _, err) = run(&["node", "--config", path]);
    assert_eq!(code, 1);
    assert!(err.contains("nonsense") && err.contains("data_dir"), "{err}");
}

#[test]
fn config_explain_names_the_source_of_each_value() {
    let mut command = holdfast();
    command
        .args(["config", "explain", "-o", "json", "--set", "member=4"])
        .env("HOLDFAST__LOG__LEVEL", "debug");
    let (code, out, _) = parts(&command.output().unwrap());
    assert_eq!(code, 1, "members are missing");
    let rows: Value = serde_json::from_str(&out).unwrap();
    let source =
        |key: &str| rows.as_array().unwrap().iter().find(|r| r["key"] == key).unwrap()["source"].clone();
    assert_eq!(source("member"), "flag --set");
    assert_eq!(source("log.level"), "environment HOLDFAST__LOG__LEVEL");
    assert_eq!(source("cluster"), "default");
}
