//! `holdfast dev`: real members that never outlive it, one ready line, and clear words where it cannot start.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use std::{
    net::TcpListener,
    process::{Command, Stdio},
    time::Duration,
};

use harness::{Cluster, HOLDFAST, Options, children, eventually, holdfast, is_alive, parts};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

const SOON: Duration = Duration::from_secs(10);

fn one_member() -> Cluster {
    Cluster::start_with(Options { members: 1, groups: 1, restart: true })
}

#[test]
fn ready_is_one_line_with_endpoints_and_members_are_its_only_children() {
    let cluster = Cluster::start();
    let (out, err) = cluster.said();
    assert_eq!(out.lines().count(), 1, "{out}");
    let expected = format!("ready http={},", cluster.http(1));
    assert!(out.starts_with(&expected), "{out}");
    assert!(out.contains(&format!("grpc={}", cluster.endpoints())) && out.contains(" dir=/"), "{out}");
    assert!(err.lines().all(|line| line.starts_with("holdfast:")), "{err}");
    let members = cluster.member_pids();
    assert_eq!(members.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(children(cluster.dev_pid()).len(), 3);
}

#[test]
fn a_member_that_dies_is_reported_and_started_again() {
    let cluster = one_member();
    let before = cluster.member_pids()[&1];
    cluster.kill(1);
    eventually("another process of the member", SOON, || {
        cluster.member_pids().get(&1).filter(|pid| **pid != before).map(|_| ())
    });
    cluster.wait_ready();
    let (out, err) = cluster.said();
    assert!(err.contains("member 1") && err.contains("SIGKILL"), "{err}");
    assert_eq!(out.lines().filter(|line| line.starts_with("ready ")).count(), 1, "{out}");
}

#[test]
fn a_member_that_dies_stays_down_with_no_restart() {
    let mut cluster = Cluster::start_with(Options { members: 1, groups: 1, restart: false });
    cluster.kill(1);
    eventually("the death is reported", SOON, || cluster.said().1.contains("stays down").then_some(()));
    assert!(cluster.member_pids().is_empty());
    assert!(cluster.stop(Signal::SIGTERM).success());
}

#[test]
fn members_end_with_dev_also_when_it_is_killed() {
    let mut cluster = one_member();
    let members = cluster.member_pids();
    cluster.stop(Signal::SIGKILL);
    for pid in members.values() {
        eventually("the member is gone", SOON, || (!is_alive(*pid)).then_some(()));
    }
}

#[test]
fn it_stops_cleanly_and_goes_on_with_the_same_folder() {
    let mut cluster = one_member();
    let members = cluster.member_pids();
    cluster.pause(1);
    let status = cluster.stop(Signal::SIGINT);
    assert!(status.success(), "{status}: {}", cluster.said().1);
    assert!(members.values().all(|pid| !is_alive(*pid)));
    cluster.start_again();
    cluster.wait_ready();
}

#[test]
fn signals_that_were_inherited_as_ignored_stop_it_too() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        // A shell without job control starts background commands with INT ignored; `trap ''` does it for both.
        let script = format!(
            "trap '' INT TERM; exec {HOLDFAST} dev --members 1 --groups 1 --base-port {} >{}",
            free_block(),
            out.display()
        );
        let mut dev = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap();
        eventually("dev is ready", Duration::from_secs(60), || {
            std::fs::read_to_string(&out).ok().filter(|text| text.starts_with("ready "))
        });
        kill(Pid::from_raw(dev.id() as i32), signal).unwrap();
        let status = eventually("dev ends", SOON, || dev.try_wait().unwrap());
        assert!(status.success(), "{signal}: {status}");
    }
}

#[test]
fn a_busy_port_is_named_and_nothing_is_started() {
    let block = free_block();
    let _taken = TcpListener::bind(("127.0.0.1", block + 21)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = holdfast();
    command.args(["dev", "--members", "2", "--base-port", &block.to_string(), "--dir"]).arg(folder.path());
    let (code, out, err) = parts(&command.output().unwrap());
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains(&format!("port {} (gRPC of member 2)", block + 21)), "{err}");
    assert!(!folder.path().join("member-1").join("log").exists());
}

#[test]
fn a_folder_of_another_shape_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("holdfast-dev.toml"), "members = 5\ngroups = 2\n").unwrap();
    let mut command = holdfast();
    command.args(["dev", "--base-port", &free_block().to_string(), "--dir"]).arg(folder.path());
    let (code, _, err) = parts(&command.output().unwrap());
    assert_eq!(code, 1);
    assert!(err.contains("5 members with 2 lock groups") && err.contains("--members 5 --groups 2"), "{err}");
}

/// A base port whose block looks free.
fn free_block() -> u16 {
    let taken = |base: u16| {
        (1..=3).any(|i| (0..3).any(|j| TcpListener::bind(("127.0.0.1", base + 10 * i + j)).is_err()))
    };
    let first = 6_000 + (std::process::id() % 40) as u16 * 100;
    (0..20).map(|i| first - i * 100).find(|base| !taken(*base)).unwrap()
}
