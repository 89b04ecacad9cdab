//! A cluster of real processes that is lost and restored from its snapshots: tokens go on above all that were handed out,
//! sessions have ended, nothing is granted too early, and a member of the lost cluster finds nobody that listens to it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use harness::{Answer, Cluster, Options, eventually, holdfast, parts, post};
use serde_json::{Value, json};
use tempfile::TempDir;

const SHAPE: Options = Options { members: 3, groups: 4, restart: false };
const NAMES: [&str; 6] = ["jobs/1", "jobs/2", "mail", "backup", "billing/run", "x"];
/// The longest TTL of any session in the lost cluster.
const LONGEST_TTL_MS: u64 = 10_000;
const GRANTED_WITHIN: Duration = Duration::from_secs(60);

/// Takes every lock for a new session; answers the session and the tokens.
fn hold_all(cluster: &Cluster, ttl_ms: u64) -> (String, BTreeMap<&'static str, u64>) {
    let session = cluster.session(1, ttl_ms);
    let token = |name| acquire(cluster, &session, name).expect(200)["token"].as_u64().unwrap();
    let tokens = NAMES.iter().map(|name| (*name, token(*name))).collect();
    (session, tokens)
}

fn acquire(cluster: &Cluster, session: &str, name: &str) -> Answer {
    let body = json!({ "name": name, "session": session, "wait_ms": 5_000 });
    post(&format!("{}/v1/locks/acquire", cluster.http(1)), &body)
}

fn close(cluster: &Cluster, session: &str) {
    harness::delete(&format!("{}/v1/sessions?session={session}", cluster.http(1))).expect(204);
}

/// Restores the newest snapshots of a cluster; answers the report.
#[track_caller]
fn restore(store: &Path, to: &Path, base: u16) -> Value {
    let mut command = holdfast();
    command.args(["snapshots", "restore", "newest", "--members", "3", "-o", "json"]);
    command.arg("--store").arg(store).arg("--to").arg(to).arg(format!("--base-port={base}"));
    let (code, out, err) = parts(&command.output().unwrap());
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_restored_cluster_goes_on_above_every_token() {
    let mut lost = Cluster::start_with(SHAPE);
    let (first, _) = hold_all(&lost, LONGEST_TTL_MS);
    let (code, out, err) = parts(&lost.holdfast(["snapshots", "take", "-o", "json"]).output().unwrap());
    assert_eq!(code, 0, "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap().as_array().unwrap().len(), 5, "{out}");
    // What the snapshots do not know of.
    close(&lost, &first);
    let (second, highest) = hold_all(&lost, 5_000);
    let base = lost.base();
    lost.lose();

    let folder = TempDir::with_prefix("holdfast-restored-").unwrap();
    let store = lost.members_folder().join("snapshots");
    let report = restore(&store, &folder.path().join("cluster"), base);
    assert_eq!((&report["from_cluster"], &report["cluster"]), (&json!("dev"), &json!("dev-r1")));
    assert_eq!((&report["incarnation"], &report["pause_ms"]), (&json!(1), &json!(LONGEST_TTL_MS)));
    let again = restore(&store, &folder.path().join("another"), base);
    assert_eq!(
        (&again["incarnation"], &again["cluster"]),
        (&json!(2), &json!("dev-r2")),
        "none is used twice"
    );

    let started = Instant::now();
    let restored = Cluster::start_in(SHAPE, base, folder);
    for session in [&first, &second] {
        let keepalive = json!({ "session": session });
        post(&format!("{}/v1/sessions/keepalive", restored.http(1)), &keepalive).expect(410);
    }
    tokens_go_on(&restored, &highest, started);
    a_survivor_is_not_heard(&lost, &restored);
}

/// Every lock is granted, not before the longest TTL has passed, and with a higher token.
fn tokens_go_on(restored: &Cluster, highest: &BTreeMap<&'static str, u64>, started: Instant) {
    let session = restored.session(1, 60_000);
    for name in NAMES {
        let token = eventually(&format!("{name} is granted"), GRANTED_WITHIN, || {
            let answer = acquire(restored, &session, name);
            if answer.status == 200 {
                return answer.body["token"].as_u64();
            }
            assert_eq!(answer.status, 503, "{}", answer.body);
            None
        });
        let waited = started.elapsed();
        assert!(waited >= Duration::from_millis(LONGEST_TTL_MS), "{name} was granted after {waited:?}");
        assert!(token > highest[name] && token >> 44 == 1, "{name}: token {token} after {}", highest[name]);
    }
}

/// A member of the lost cluster that comes back in the place of one of the new.
fn a_survivor_is_not_heard(lost: &Cluster, restored: &Cluster) {
    restored.kill(3);
    let config = lost.members_folder().join("member-3/config.toml");
    let said = restored.scratch().join("survivor.log");
    let survivor = holdfast()
        .arg("node")
        .arg("--config")
        .arg(config)
        .arg(format!("--parent-pid={}", std::process::id()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let _survivor = Killed(survivor);
    eventually("the survivor is refused", GRANTED_WITHIN, || {
        fs::read_to_string(&said).unwrap().contains("refused a message").then_some(())
    });
    assert!(!restored.is_ready(3), "it found a quorum");
    let session = restored.session(1, 10_000);
    let granted = acquire(restored, &session, "after the survivor").expect(200);
    assert_eq!(granted["token"].as_u64().unwrap() >> 44, 1);
}

/// A process that is ended with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
