//! The demo's processes: cluster, Storage Service, workers. All are children of the demo and end with it.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tempfile::TempDir;

use super::{web, worker};
use crate::{
    dev::child::{free_block, ourselves},
    failure::Failure,
};

/// How long a cluster may take to get ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long processes have to end by themselves.
const END_WITHIN: Duration = Duration::from_secs(10);

/// A worker process.
pub(crate) struct Actor {
    child: Child,
    orders: ChildStdin,
    events: Receiver<Value>,
    /// Its session, in hex.
    pub session: String,
}

/// Everything that runs.
pub(crate) struct Stage {
    folder: Option<TempDir>,
    kept: PathBuf,
    base: u16,
    dev: Child,
    storage: Child,
    /// Workers by their name in the story.
    pub workers: BTreeMap<&'static str, Actor>,
}

impl Stage {
    /// Starts cluster and Storage Service, and waits until both serve.
    pub(crate) fn open(base: Option<u16>) -> Result<Self, Failure> {
        let failed =
            |what: &str, e: &dyn std::fmt::Display| Failure::other(format!("cannot start {what}: {e}"));
        let folder =
            TempDir::with_prefix("holdfast-demo-").map_err(|e| failed("in a temporary folder", &e))?;
        let base = base.map_or_else(free_block, Ok)?;
        let log = |name: &str| std::fs::File::create(folder.path().join(name));
        let dev = ourselves()?
            .args(["dev", "--members", "3", "--groups", "3", "--base-port", &base.to_string(), "--dir"])
            .arg(folder.path().join("cluster"))
            .args(["--parent-pid", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log("dev.log").map_err(|e| failed("the cluster", &e))?)
            .spawn()
            .map_err(|e| failed("the cluster", &e))?;
        let storage = ourselves()?
            .args(["storage", "serve", "--listen", &format!("127.0.0.1:{}", base + 50), "--database"])
            .arg(folder.path().join("storage.db"))
            .args(["--parent-pid", &std::process::id().to_string()])
            .env_remove("HOLDFAST_ENDPOINTS")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log("storage.log").map_err(|e| failed("the Storage Service", &e))?)
            .spawn()
            .map_err(|e| failed("the Storage Service", &e))?;
        let kept = folder.path().to_owned();
        let stage = Self { folder: Some(folder), kept, base, dev, storage, workers: BTreeMap::new() };
        stage.wait_ready().map_err(|why| Failure::other(format!("{why}; logs: {}", stage.kept.display())))?;
        let ready = || (web::get(&format!("{}/readyz", stage.storage())).status == 200).then_some(());
        web::until("the Storage Service is ready", READY_WITHIN, ready).map_err(Failure::other)?;
        Ok(stage)
    }

    /// Waits until all members are ready.
    pub(crate) fn wait_ready(&self) -> Result<(), String> {
        web::until("all members are ready", READY_WITHIN, || {
            (1..=3)
                .all(|member| web::get(&format!("{}/readyz", self.http(member))).status == 200)
                .then_some(())
        })
    }

    /// Base URL of a member's HTTP listener.
    pub(crate) fn http(&self, member: u64) -> String {
        format!("http://127.0.0.1:{}", u64::from(self.base) + 10 * member)
    }

    /// Base URL of the Storage Service.
    pub(crate) fn storage(&self) -> String {
        format!("http://127.0.0.1:{}", self.base + 50)
    }

    /// gRPC endpoints of all members, as `HOLDFAST_ENDPOINTS` has them.
    pub(crate) fn endpoints(&self) -> String {
        let urls: Vec<String> =
            (1..=3).map(|n| format!("http://127.0.0.1:{}", self.base + 10 * n + 1)).collect();
        urls.join(",")
    }

    /// Where the logs are.
    pub(crate) fn folder(&self) -> &Path {
        &self.kept
    }

    /// Leaves the folder behind.
    pub(crate) fn keep_logs(&mut self) {
        if let Some(folder) = self.folder.take() {
            self.kept = folder.keep();
        }
    }

    /// Stays until the cluster ends, which Ctrl-C does.
    pub(crate) fn wait(&mut self) {
        // However it ends, it has ended.
        let _ = self.dev.wait();
    }

    /// Starts a worker process with a session of its own.
    pub(crate) fn hire(&mut self, name: &'static str, ttl_ms: u64) -> Result<(), String> {
        let failed = |e: &dyn std::fmt::Display| format!("worker {name} cannot start: {e}");
        let mut child = ourselves()
            .map_err(|e| e.to_string())?
            .args(["--endpoints", &self.endpoints(), worker::VERB])
            .args(["--parent", &std::process::id().to_string(), "--label", &format!("worker {name}")])
            .args(["--ttl-ms", &ttl_ms.to_string(), "--storage", &self.storage()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|e| failed(&e))?;
        let (Some(orders), Some(told)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(&"it has no standard input or output"));
        };
        let (tell, events) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(told).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if tell.send(event).is_err() {
                    return;
                }
            }
        });
        let mut actor = Actor { child, orders, events, session: String::new() };
        let opened = actor.hear("session", Duration::from_secs(10))?;
        actor.session = opened["session"].as_str().unwrap_or_default().to_owned();
        self.workers.insert(name, actor);
        Ok(())
    }

    /// A worker of the story.
    pub(crate) fn worker(&mut self, name: &str) -> Result<&mut Actor, String> {
        self.workers.get_mut(name).ok_or_else(|| format!("there is no worker {name}"))
    }

    /// The session of a worker, in hex.
    pub(crate) fn session(&self, name: &str) -> String {
        self.workers.get(name).map(|worker| worker.session.clone()).unwrap_or_default()
    }

    /// The name of the worker that a session belongs to.
    pub(crate) fn name_of(&self, session: &str) -> String {
        let found = self.workers.iter().find(|(_, worker)| worker.session == session);
        found.map_or_else(|| format!("session {session}"), |(name, _)| format!("worker {name}"))
    }

    /// Kills a member's process, as a crash would. The cluster starts it again after 2 s.
    pub(crate) fn kill_member(&self, member: u64) -> Result<(), String> {
        let marker = format!("member-{member}/config.toml");
        let parent = format!("PPid:\t{}", self.dev.id());
        let pids = std::fs::read_dir("/proc").map_err(|e| e.to_string())?;
        for pid in pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok()) {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            if line.contains(&marker) && status.contains(&parent) {
                return kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(|e| e.to_string());
            }
        }
        Err(format!("member {member} has no process"))
    }
}

impl Actor {
    /// Gives an order.
    pub(crate) fn order(&mut self, order: &str) -> Result<(), String> {
        writeln!(self.orders, "{order}").map_err(|e| format!("the worker does not listen: {e}"))
    }

    /// Waits for the next event of a kind; another kind of bad news ends the wait.
    pub(crate) fn hear(&mut self, kind: &str, limit: Duration) -> Result<Value, String> {
        let until = Instant::now() + limit;
        loop {
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) if event["event"] == kind => return Ok(event),
                Ok(event) if event["event"] == "error" => return Err(event["why"].to_string()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!(
                        "the worker did not tell {kind:?} within {:.0} s",
                        limit.as_secs_f64()
                    ));
                }
                Err(RecvTimeoutError::Disconnected) => return Err("the worker has ended".to_owned()),
            }
        }
    }

    /// Whether an event of a kind has come, without waiting.
    pub(crate) fn heard(&mut self, kind: &str) -> Option<Value> {
        self.events.try_iter().find(|event| event["event"] == kind)
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), String> {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).map_err(|e| e.to_string())
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may have been killed in the story.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.workers.clear();
        for child in [&mut self.dev, &mut self.storage] {
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        }
        for child in [&mut self.dev, &mut self.storage] {
            let ended = web::until("a process ends", END_WITHIN, || child.try_wait().ok().flatten());
            if ended.is_err() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
