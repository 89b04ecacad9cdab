//! Short runs against a real member: what is told, that nothing is violated, and how they end.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::{cluster::Cluster, loadtest, told, wait::eventually};

#[track_caller]
fn json(cluster: &Cluster, arguments: &[&str]) -> Value {
    let mut command = loadtest();
    command.args(arguments).args(["--endpoints", &cluster.endpoint(), "-o", "json"]);
    let (code, out, err) = told(&command.output().unwrap());
    assert_eq!(code, Some(0), "{arguments:?}: {err}\n{out}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn runs_are_measured_and_judged() {
    let cluster = Cluster::start();
    for (scenario, clients, connections) in [("single", 1, 1), ("spread", 8, 4), ("hot", 8, 8)] {
        let told = json(
            &cluster,
            &[
                "run",
                scenario,
                &format!("--clients={clients}"),
                &format!("--connections={connections}"),
                "--seconds=1",
                "--warmup=0.2",
                "--ttl=2",
                "--hold=1",
            ],
        );
        assert_eq!(told["target"], "holdfast");
        assert_eq!(told["scenario"], scenario);
        assert_eq!((told["clients"].as_u64(), told["seconds"].as_f64()), (Some(clients), Some(1.0)));
        assert!(told["cycles_per_s"].as_f64().unwrap() > 0.0, "{told}");
        for quantile in ["p50", "p99", "p999", "max"] {
            assert!(told["acquire_us"][quantile].as_u64().unwrap() > 0, "{told}");
            assert!(told["release_us"][quantile].as_u64().unwrap() > 0, "{told}");
            assert_eq!(told["handover_us"][quantile].is_u64(), scenario == "hot", "{told}");
        }
        assert_eq!((&told["judged"], &told["violations"]), (&Value::Bool(true), &0.into()), "{told}");
        assert_eq!(told["errors"], 0, "{told}");
    }
}

#[test]
fn an_interrupt_ends_a_run_early_with_its_report() {
    let cluster = Cluster::start();
    let mut running = loadtest()
        .args(["run", "hot", "--clients=8", "--seconds=600", "--warmup=0", "-o", "json"])
        .args(["--endpoints", &cluster.endpoint()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("8 clients run"), "{line}");
    kill(Pid::from_raw(running.id() as i32), Signal::SIGINT).unwrap();
    let status = eventually("the run ends", Duration::from_secs(30), || running.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    let mut out = String::new();
    running.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let told: Value = serde_json::from_str(&out).unwrap();
    assert!(told["seconds"].as_f64().unwrap() < 600.0, "{told}");
    assert_eq!((&told["errors"], &told["violations"]), (&0.into(), &0.into()), "{told}");
}

#[test]
fn many_sessions_are_kept_and_silent_ones_are_freed() {
    let cluster = Cluster::start();
    let kept = json(
        &cluster,
        &["sessions", "--count=30", "--ttl=3", "--seconds=1", "--processes=2", "--connections=2"],
    );
    assert_eq!((&kept["sessions"], &kept["lost"]), (&30.into(), &0.into()), "{kept}");
    for how in ["kill", "freeze"] {
        let silence =
            json(&cluster, &["silence", "--count=30", "--live=5", "--ttl=2", "--processes=2", "--how", how]);
        assert_eq!((&silence["still_held"], &silence["live_lost"]), (&0.into(), &0.into()), "{silence}");
        assert!(silence["all_free_after_s"].as_f64().unwrap() <= 14.0, "{silence}");
    }
}
