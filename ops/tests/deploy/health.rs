//! `holdfast health`: its exit codes are what containers and scripts go by.

use std::{
    net::TcpListener,
    process::Command,
    time::{Duration, Instant},
};

use holdfast_faults::Plan;
use serde_json::Value;

use crate::harness::{HOLDFAST, holdfast, parts};

fn health(http: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command: Command = holdfast();
    command.args(["health", "--http", http]).args(arguments);
    parts(&command.output().unwrap())
}

#[test]
fn it_tells_serving_from_living_and_from_silence() {
    let cluster = Plan::new(HOLDFAST).start().unwrap();
    let first = cluster.http(1);
    let (code, out, err) = health(&first, &[]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("serves"), "{out}");
    cluster.kill(2).unwrap();
    cluster.kill(3).unwrap();
    cluster.wait_ended(2, Duration::from_secs(10)).unwrap();
    cluster.wait_ended(3, Duration::from_secs(10)).unwrap();
    let without_quorum = holdfast_faults::wait_for("it serves no more", Duration::from_secs(20), || {
        Some(health(&first, &["-o", "json"])).filter(|(code, _, _)| *code != 0)
    });
    let (code, out, err) = without_quorum.unwrap();
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["ok"]), (1, &Value::Bool(false)), "{err}");
    assert!(
        told["why"].as_str().unwrap().contains("has no leader") && err.contains("has no leader"),
        "{err}"
    );
    assert_eq!(health(&first, &["--live"]).0, 0, "it lives whatever the others do");
    assert_eq!(health(&cluster.http(2), &["--timeout", "1s"]).0, 69);
    cluster.start_member(2).unwrap();
    let (code, _, err) = health(&first, &["--wait", "30s"]);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn waiting_ends_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let begun = Instant::now();
    let (code, out, err) = health(&silent, &["--timeout", "300ms", "--wait", "1s"]);
    assert_eq!((code, out.as_str()), (69, ""), "{err}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(health("127.0.0.1:7610", &[]).0, 2, "a URL is wanted");
}
