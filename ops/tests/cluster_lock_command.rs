//! `holdfast lock`: the command's exit code, its end before the lease's, nothing of it outliving the wrapper, and the
//! cases C42 to C45.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use harness::{Cluster, eventually, is_alive, parts};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

const SOON: Duration = Duration::from_secs(15);

fn run(cluster: &Cluster, arguments: &[&str]) -> (i32, String, String) {
    parts(&cluster.holdfast(["lock"]).args(arguments).stdin(Stdio::null()).output().unwrap())
}

/// Starts `holdfast lock NAME [options] -- sh -c SCRIPT FILE` in the background.
fn start(cluster: &Cluster, arguments: &[&str], script: &str, file: &Path) -> Child {
    let mut command = cluster.holdfast(["lock"]);
    command.args(arguments).args(["--", "sh", "-c", script]).arg(file).stdin(Stdio::null());
    command.spawn().unwrap()
}

/// The words that a script wrote to its file.
fn written(file: &Path) -> Vec<i32> {
    eventually("the command has written its file", SOON, || {
        let text = fs::read_to_string(file).ok()?;
        let words: Vec<i32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        (text.ends_with('\n') && !words.is_empty()).then_some(words)
    })
}

fn ended(child: &mut Child, within: Duration) -> ExitStatus {
    eventually("the wrapper ends", within, || child.try_wait().unwrap())
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

fn file(cluster: &Cluster, name: &str) -> PathBuf {
    cluster.scratch().join(name)
}

#[test]
fn c42_the_exit_code_is_the_commands_own() {
    let cluster = Cluster::start();
    for code in [0, 1, 7, 255] {
        let script = format!("exit {code}");
        assert_eq!(run(&cluster, &["job", "--", "sh", "-c", &script]).0, code);
    }
    assert_eq!(run(&cluster, &["job", "--", "sh", "-c", "kill -USR1 $$"]).0, 128 + 10);
    assert_eq!(run(&cluster, &["job", "--", "no-such-command-anywhere"]).0, 127);
    assert_eq!(run(&cluster, &["job", "--", "/etc/passwd"]).0, 126);
    assert!(cluster.lock(1, "job")["holder"].is_null(), "released each time");
}

#[test]
fn the_command_knows_its_lock_and_tokens_grow() {
    let cluster = Cluster::start();
    let script = "echo $HOLDFAST_LOCK $HOLDFAST_TOKEN $HOLDFAST_SESSION; cat";
    let mut last = 0;
    for _ in 0..3 {
        let (code, out, err) = run(&cluster, &["jobs/nightly", "--", "sh", "-c", script]);
        assert_eq!((code, err.as_str()), (0, ""));
        let words: Vec<&str> = out.split_whitespace().collect();
        assert_eq!((words[0], words.len()), ("jobs/nightly", 3));
        let token: u64 = words[1].parse().unwrap();
        assert!(token > last && u64::from_str_radix(words[2], 16).is_ok(), "{out}");
        last = token;
    }
}

#[test]
fn a_held_lock_is_75_or_what_the_caller_chose() {
    let cluster = Cluster::start();
    let pids = file(&cluster, "pids");
    let mut holder = start(&cluster, &["busy"], "echo $$ >$0; exec sleep 60", &pids);
    written(&pids);
    assert_eq!(run(&cluster, &["busy", "--try", "--", "true"]).0, 75);
    assert_eq!(run(&cluster, &["busy", "--wait", "300ms", "--", "true"]).0, 75);
    assert_eq!(run(&cluster, &["busy", "--try", "-E", "9", "--", "true"]).0, 9);
    assert_eq!(cluster.lock(1, "busy")["waiters"], 0);
    signal(&holder, Signal::SIGTERM);
    assert_eq!(ended(&mut holder, SOON).code(), Some(128 + 15));
}

#[test]
fn c43_signals_reach_the_command_and_the_lock_is_released_only_after_its_group_is_gone() {
    let cluster = Cluster::start();
    for name in
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2]
    {
        let pids = file(&cluster, name.as_str());
        // The grandchild ignores what the command handles; it has to go all the same.
        let script = "sh -c 'trap \"\" INT TERM HUP QUIT USR1 USR2; while :; do sleep 0.1; done' & \
                      trap 'exit 9' INT TERM HUP QUIT USR1 USR2; echo $$ $! >$0; while :; do sleep 0.1; done";
        let mut wrapper = start(&cluster, &["told"], script, &pids);
        let pids = written(&pids);
        signal(&wrapper, name);
        eventually("the command has ended", SOON, || (!is_alive(pids[0])).then_some(()));
        while is_alive(pids[1]) {
            let holder = cluster.lock(1, "told")["holder"].clone();
            assert!(!holder.is_null() || !is_alive(pids[1]), "released while a process of the command ran");
        }
        assert_eq!(ended(&mut wrapper, SOON).code(), Some(9), "{name}");
        assert!(cluster.lock(1, "told")["holder"].is_null());
    }
}

#[test]
fn c43_a_killed_wrapper_takes_command_and_grandchildren_with_it() {
    let cluster = Cluster::start();
    let pids = file(&cluster, "pids");
    let mut wrapper = start(&cluster, &["orphan"], "sleep 60 & echo $$ $! >$0; wait", &pids);
    let pids = written(&pids);
    signal(&wrapper, Signal::SIGKILL);
    ended(&mut wrapper, SOON);
    for pid in pids {
        eventually("the process is gone", Duration::from_secs(3), || (!is_alive(pid)).then_some(()));
    }
}

#[test]
fn a_stopped_wrapper_cannot_keep_its_command_running_beyond_the_lease() {
    let cluster = Cluster::start();
    let pids = file(&cluster, "pids");
    let mut wrapper = start(&cluster, &["stopped", "--ttl", "2s"], "sleep 60 & echo $$ $! >$0; wait", &pids);
    let pids = written(&pids);
    signal(&wrapper, Signal::SIGSTOP);
    for pid in pids {
        eventually("the process is gone", Duration::from_secs(2), || (!is_alive(pid)).then_some(()));
    }
    signal(&wrapper, Signal::SIGCONT);
    assert_eq!(ended(&mut wrapper, SOON).code(), Some(70));
}

#[test]
fn c45_a_lease_that_cannot_be_renewed_ends_the_command_before_its_time() {
    let cluster = Cluster::start();
    let pids = file(&cluster, "pids");
    // Deaf to TERM: it must be killed in time.
    let script = "trap '' TERM; echo $$ >$0; while :; do sleep 0.1; done";
    let mut wrapper = start(&cluster, &["lost", "--ttl", "4s"], script, &pids);
    let pids = written(&pids);
    (1..=3).for_each(|member| cluster.pause(member));
    let paused = Instant::now();
    eventually("the command is gone", Duration::from_millis(4_000), || (!is_alive(pids[0])).then_some(()));
    let code = ended(&mut wrapper, Duration::from_millis(4_500)).code();
    let took = paused.elapsed();
    (1..=3).for_each(|member| cluster.resume(member));
    assert_eq!(code, Some(70));
    assert!(took <= Duration::from_millis(4_500), "{took:?}");
}

#[test]
fn a_forced_release_ends_the_command() {
    let cluster = Cluster::start();
    let pids = file(&cluster, "pids");
    let mut wrapper = start(&cluster, &["forced"], "echo $$ $HOLDFAST_TOKEN >$0; exec sleep 60", &pids);
    let token = written(&pids)[1].to_string();
    let mut release =
        cluster.holdfast(["locks", "release", "forced", "--now", "--reason", "a test", "--token"]);
    let (code, _, err) = parts(&release.arg(token).output().unwrap());
    assert_eq!(code, 0, "{err}");
    assert_eq!(ended(&mut wrapper, Duration::from_secs(3)).code(), Some(70));
}

#[test]
fn c44_an_interrupted_wait_starts_nothing_and_leaves_the_queue() {
    let cluster = Cluster::start();
    let session = cluster.session(1, 60_000);
    let http = cluster.http(1);
    let body = |extra: (&str, serde_json::Value)| {
        let mut body = serde_json::json!({"name": "race", "session": session});
        body[extra.0] = extra.1;
        body
    };
    let soak = std::env::var_os("HOLDFAST_SOAK").is_some_and(|value| value == "1");
    for round in 0..if soak { 50 } else { 10 } {
        let granted =
            harness::post(&format!("{http}/v1/locks/acquire"), &body(("wait_ms", 0.into()))).expect(200);
        let started = file(&cluster, &format!("started.{round}"));
        let mut waiter = start(&cluster, &["race"], "echo 1 >$0", &started);
        cluster.wait_for_waiters("race", 1);
        signal(&waiter, Signal::SIGINT);
        harness::post(&format!("{http}/v1/locks/release"), &body(("token", granted["token"].clone())))
            .expect(200);
        assert_eq!(ended(&mut waiter, Duration::from_secs(2)).code(), Some(128 + 2));
        assert!(!started.exists(), "the command was started after the signal");
        eventually("the queue is empty", Duration::from_secs(2), || {
            let lock = cluster.lock(1, "race");
            (lock["holder"].is_null() && lock["waiters"] == 0).then_some(())
        });
    }
}

#[test]
fn a_waiter_gets_the_lock_when_the_holders_wrapper_ends() {
    let cluster = Cluster::start();
    let first = file(&cluster, "first");
    let mut holder = start(&cluster, &["next"], "echo $$ $HOLDFAST_TOKEN >$0; sleep 1", &first);
    let first = written(&first);
    let second = file(&cluster, "second");
    let mut waiter = start(&cluster, &["next", "--wait", "20s"], "echo $$ $HOLDFAST_TOKEN >$0", &second);
    let second = written(&second);
    assert!(!is_alive(first[0]), "the waiter's command ran beside the holder's");
    assert!(second[1] > first[1]);
    assert_eq!((ended(&mut holder, SOON).code(), ended(&mut waiter, SOON).code()), (Some(0), Some(0)));
}
