//! A throw-away cluster: `holdfast dev` as its own process, its members found by their configuration files.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{HOLDFAST, encoded, eventually, get, holdfast, post};

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(15);
/// Blocks of ports that are tried: below the ports that systems give out by themselves.
const BLOCKS: std::ops::Range<u16> = 100..300;

/// Shape of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// How many members.
    pub members: u16,
    /// How many lock groups.
    pub groups: u16,
    /// Whether members that died are started again.
    pub restart: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { members: 3, groups: 2, restart: true }
    }
}

/// A running cluster; ended when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    options: Options,
    base: u16,
    folder: TempDir,
    dev: Option<Child>,
    starts: u32,
}

impl Cluster {
    /// Three members, two lock groups.
    pub(crate) fn start() -> Self {
        Self::start_with(Options::default())
    }

    /// A cluster of another shape, on a free block of ports.
    pub(crate) fn start_with(options: Options) -> Self {
        let folder = TempDir::with_prefix("holdfast-test-").unwrap();
        let mut cluster = Self { options, base: 0, folder, dev: None, starts: 0 };
        let first = std::process::id() as u16 % BLOCKS.len() as u16;
        for attempt in 0..20 {
            let block = BLOCKS.start + (first + attempt * 7) % BLOCKS.len() as u16;
            cluster.base = block * 100;
            match cluster.begin() {
                Ok(()) => return cluster,
                Err(error) if error.contains("ports cannot be used") => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no free block of ports");
    }

    /// Kills everything at once, and waits until it is gone: ports and folders are free.
    #[track_caller]
    pub(crate) fn lose(&mut self) {
        let members = self.member_pids();
        self.stop(Signal::SIGKILL);
        eventually("all members are gone", STOP_WITHIN, || {
            members.values().all(|pid| !super::is_alive(*pid)).then_some(())
        });
    }

    /// A cluster that goes on in the folder `cluster` below this one, on this block of ports.
    pub(crate) fn start_in(options: Options, base: u16, folder: TempDir) -> Self {
        let mut cluster = Self { options, base, folder, dev: None, starts: 0 };
        cluster.start_again();
        cluster
    }

    /// First port of its block.
    pub(crate) fn base(&self) -> u16 {
        self.base
    }

    /// The folder of its members.
    pub(crate) fn members_folder(&self) -> PathBuf {
        self.folder.path().join("cluster")
    }

    /// Starts it again after [`Cluster::stop`], with the same folder and ports.
    pub(crate) fn start_again(&mut self) {
        if let Err(error) = self.begin() {
            panic!("{error}");
        }
    }

    /// Runs `holdfast dev` and waits for its ready line; answers what it said where it ended instead.
    fn begin(&mut self) -> Result<(), String> {
        self.starts += 1;
        let (out, err) = (self.file("out"), self.file("err"));
        let mut command = Command::new(HOLDFAST);
        command
            .args(["dev", "--members", &self.options.members.to_string()])
            .args(["--groups", &self.options.groups.to_string()])
            .args(["--base-port", &self.base.to_string()])
            // Also when the test is killed, nothing of it stays.
            .arg(format!("--parent-pid={}", std::process::id()))
            .arg("--dir")
            .arg(self.folder.path().join("cluster"))
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap());
        if !self.options.restart {
            command.arg("--no-restart");
        }
        let dev = self.dev.insert(command.spawn().unwrap());
        let ready = eventually("the cluster is ready", READY_WITHIN, || {
            if fs::read_to_string(&out).unwrap().lines().any(|line| line.starts_with("ready ")) {
                return Some(true);
            }
            dev.try_wait().unwrap().map(|_| false)
        });
        if ready {
            return Ok(());
        }
        self.dev = None;
        Err(fs::read_to_string(&err).unwrap())
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.path().join(format!("{kind}.{}", self.starts))
    }

    /// What `holdfast dev` wrote to standard output and standard error since it was started last.
    pub(crate) fn said(&self) -> (String, String) {
        let read = |kind| fs::read_to_string(self.file(kind)).unwrap_or_default();
        (read("out"), read("err"))
    }

    /// A folder for the test's own files; removed with the cluster.
    pub(crate) fn scratch(&self) -> &Path {
        self.folder.path()
    }

    /// Base URL of a member's HTTP listener; members count from 1.
    pub(crate) fn http(&self, member: u16) -> String {
        format!("http://127.0.0.1:{}", self.base + 10 * member)
    }

    /// gRPC URL of a member.
    pub(crate) fn grpc(&self, member: u16) -> String {
        format!("http://127.0.0.1:{}", self.base + 10 * member + 1)
    }

    /// gRPC URLs of all members, as the command takes them.
    pub(crate) fn endpoints(&self) -> String {
        (1..=self.options.members).map(|member| self.grpc(member)).collect::<Vec<_>>().join(",")
    }

    /// The command, talking to this cluster.
    pub(crate) fn holdfast<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = holdfast();
        command.env("HOLDFAST_ENDPOINTS", self.endpoints()).args(arguments);
        command
    }

    /// Process id of `holdfast dev`.
    pub(crate) fn dev_pid(&self) -> i32 {
        self.dev.as_ref().map_or(0, |dev| dev.id() as i32)
    }

    /// Process ids of the members that run, by member.
    pub(crate) fn member_pids(&self) -> BTreeMap<u16, i32> {
        children(self.dev_pid()).into_iter().filter_map(|pid| Some((self.member_of(pid)?, pid))).collect()
    }

    fn member_of(&self, pid: i32) -> Option<u16> {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        (1..=self.options.members).find(|member| line.contains(&format!("/member-{member}/")))
    }

    /// Sends a signal to one member.
    #[track_caller]
    pub(crate) fn signal(&self, member: u16, signal: Signal) {
        let pids = self.member_pids();
        let pid = pids.get(&member).unwrap_or_else(|| panic!("member {member} does not run: {pids:?}"));
        kill(Pid::from_raw(*pid), signal).unwrap();
    }

    /// Kills a member; it is started again after 2 s, unless the options say otherwise.
    #[track_caller]
    pub(crate) fn kill(&self, member: u16) {
        self.signal(member, Signal::SIGKILL);
    }

    /// Freezes a member.
    #[track_caller]
    pub(crate) fn pause(&self, member: u16) {
        self.signal(member, Signal::SIGSTOP);
    }

    /// Thaws a member.
    #[track_caller]
    pub(crate) fn resume(&self, member: u16) {
        self.signal(member, Signal::SIGCONT);
    }

    /// Waits until all members run and say that they are ready.
    #[track_caller]
    pub(crate) fn wait_ready(&self) {
        eventually("all members are ready", READY_WITHIN, || {
            let all = self.member_pids().len() == usize::from(self.options.members)
                && (1..=self.options.members).all(|member| self.is_ready(member));
            all.then_some(())
        });
    }

    /// Whether a member says that it is ready.
    pub(crate) fn is_ready(&self, member: u16) -> bool {
        get(&format!("{}/readyz", self.http(member))).status == 200
    }

    /// Opens a session at a member and answers its id.
    #[track_caller]
    pub(crate) fn session(&self, member: u16, ttl_ms: u64) -> String {
        let opened =
            post(&format!("{}/v1/sessions", self.http(member)), &json!({"ttl_ms": ttl_ms})).expect(201);
        opened["session"].as_str().unwrap().to_owned()
    }

    /// One lock as a member tells it.
    #[track_caller]
    pub(crate) fn lock(&self, member: u16, name: &str) -> Value {
        let answer = get(&format!("{}/v1/locks?name={}", self.http(member), encoded(name))).expect(200);
        match answer.get("locks") {
            Some(locks) => locks[0].clone(),
            None => answer,
        }
    }

    /// Waits until a lock has this many waiters.
    #[track_caller]
    pub(crate) fn wait_for_waiters(&self, name: &str, count: u64) {
        eventually(&format!("{name} has {count} waiters"), Duration::from_secs(10), || {
            (self.lock(1, name)["waiters"].as_u64() == Some(count)).then_some(())
        });
    }

    /// Stops the cluster with a signal and answers how `holdfast dev` ended.
    #[track_caller]
    pub(crate) fn stop(&mut self, signal: Signal) -> ExitStatus {
        let mut dev = self.dev.take().unwrap();
        kill(Pid::from_raw(dev.id() as i32), signal).unwrap();
        eventually("holdfast dev ends", STOP_WITHIN, || dev.try_wait().unwrap())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(mut dev) = self.dev.take() else { return };
        if std::thread::panicking() {
            let (_, err) = self.said();
            eprintln!("holdfast dev said:\n{err}");
        }
        // Its members end with it.
        let _ = dev.kill();
        let _ = dev.wait();
    }
}

/// The direct children of a process.
pub(crate) fn children(parent: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
