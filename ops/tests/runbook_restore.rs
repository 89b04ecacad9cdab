//! Every command of the runbooks about lost clusters, carried out against one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use harness::{Cluster, Options, parts, runbook};
use serde_json::json;
use tempfile::TempDir;

/// A cluster with a lock that is held, snapshots, and then more that they do not know of; lost.
fn lost() -> (Cluster, u64) {
    let mut cluster = Cluster::start_with(Options { members: 3, groups: 2, restart: false });
    let session = cluster.session(1, 3_000);
    let acquire = |name: &str| {
        let body = json!({ "name": name, "session": session });
        let granted = harness::post(&format!("{}/v1/locks/acquire", cluster.http(1)), &body).expect(200);
        granted["token"].as_u64().unwrap()
    };
    acquire("before");
    let (code, _, err) = parts(&cluster.holdfast(["snapshots", "take"]).output().unwrap());
    assert_eq!(code, 0, "{err}");
    let token = acquire("after");
    cluster.lose();
    (cluster, token)
}

/// Whether the command under the lock has run; that locks are granted later stands in the report as well.
fn is_granted(said: &str) -> bool {
    said.lines().any(|line| line == "granted")
}

#[test]
fn disaster_restore() {
    let (lost, _) = lost();
    let folder = TempDir::with_prefix("holdfast-runbook-").unwrap();
    let members = lost.members_folder();
    let said = runbook::run(
        "disaster-restore.md",
        &[
            ("STORE", members.join("snapshots").display().to_string()),
            ("CONFIG", members.join("member-1/config.toml").display().to_string()),
            ("NEW", folder.path().join("new").display().to_string()),
            ("HTTP", lost.http(1)),
            ("HOLDFAST_ENDPOINTS", lost.endpoints()),
        ],
    );
    assert!(is_granted(&said), "{said}");
    assert!(said.contains("\"ok\": true") || said.contains("\"ok\":true"), "{said}");
    assert!(said.contains("cluster dev-r1 from dev, incarnation 1"), "{said}");
}

#[test]
fn lost_majority() {
    let (lost, _) = lost();
    let folder = TempDir::with_prefix("holdfast-runbook-").unwrap();
    let config = lost.members_folder().join("member-2/config.toml");
    let said = runbook::run(
        "lost-majority.md",
        &[
            ("SURVIVOR", config.display().to_string()),
            ("NEW", folder.path().join("new").display().to_string()),
            ("BASE", lost.base().to_string()),
            ("HTTP", lost.http(1)),
            ("HOLDFAST_ENDPOINTS", lost.grpc(1)),
        ],
    );
    assert!(said.contains("cluster dev-r1 from dev, incarnation 1") && is_granted(&said), "{said}");
}

#[test]
fn without_force_and_without_an_incarnation_nothing_is_recovered() {
    let (lost, token) = lost();
    let folder = TempDir::with_prefix("holdfast-runbook-").unwrap();
    let config = lost.members_folder().join("member-1/config.toml").display().to_string();
    let recover = |arguments: &[&str], to: &str| {
        let mut command = harness::holdfast();
        command.args(["members", "recover", "--members", "1", "-o", "json", "--config", &config, "--to"]);
        parts(&command.arg(folder.path().join(to)).args(arguments).output().unwrap())
    };
    let (code, _, err) = recover(&[], "a");
    assert!(code == 2 && err.contains("--force"), "{code}: {err}");
    std::fs::rename(lost.members_folder().join("snapshots"), folder.path().join("away")).unwrap();
    let (code, _, err) = recover(&["--force"], "b");
    assert!(code == 1 && err.contains("none is guessed"), "{code}: {err}");
    assert!(!folder.path().join("a").exists() && !folder.path().join("b").exists());
    let (code, out, err) = recover(&["--force", "--incarnation", "7"], "c");
    assert_eq!(code, 0, "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(report["tokens_above"].as_u64().unwrap() > token && report["cluster"] == "dev-r7", "{report}");
    let (code, _, err) = recover(&["--force", "--incarnation", "8"], "c");
    assert!(code == 1 && err.contains("not empty"), "{code}: {err}");
}
