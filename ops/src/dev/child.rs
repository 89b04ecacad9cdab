//! A local cluster as a child of another verb: `holdfast dev` on a block of ports that nobody uses.
//!
//! Knows how it is started and ended. Does not know what it is for.

use std::{
    fs::{self, File},
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::failure::Failure;

/// Ports of one block.
const PORTS: u16 = 60;
/// First port that is looked at.
const FIRST: u16 = 18_000;
/// Blocks that are looked at.
const BLOCKS: u16 = 200;
/// How long a cluster may take to get ready.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// How long it has to end by itself.
const END_WITHIN: Duration = Duration::from_secs(12);
/// How often it is looked whether it is ready, or has ended.
const LOOK: Duration = Duration::from_millis(50);

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    /// Folder of the cluster.
    pub folder: &'a Path,
    /// Where what it says goes.
    pub logs: &'a Path,
    /// First port of its block.
    pub base: u16,
    /// How many members.
    pub members: u16,
    /// How many lock groups.
    pub groups: u16,
    /// How many members carry each.
    pub replicas: u16,
}

/// A local cluster that ends with this.
#[derive(Debug)]
pub(crate) struct DevChild {
    dev: Child,
    said: PathBuf,
}

impl DevChild {
    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(plan: Plan<'_>) -> Result<Self, Failure> {
        let failed = |e: io::Error| Failure::other(format!("cannot start a cluster: {e}"));
        let (ready, said) = (plan.logs.join("dev.ready"), plan.logs.join("dev.log"));
        let dev = ourselves()?
            .args(["dev", "--members", &plan.members.to_string()])
            .args(["--groups", &plan.groups.to_string(), "--replicas", &plan.replicas.to_string()])
            .args(["--base-port", &plan.base.to_string(), "--parent-pid", &std::process::id().to_string()])
            .arg("--dir")
            .arg(plan.folder)
            .stdin(Stdio::null())
            .stdout(File::create(&ready).map_err(failed)?)
            .stderr(File::create(&said).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let mut child = Self { dev, said };
        let until = Instant::now() + READY_WITHIN;
        while !fs::read_to_string(&ready).is_ok_and(|text| text.starts_with("ready ")) {
            if child.dev.try_wait().map_err(failed)?.is_some() || Instant::now() > until {
                return Err(Failure::other(format!("the cluster did not get ready:\n{}", child.said())));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(child)
    }

    /// What it has said.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(self.dev.id().cast_signed()), Signal::SIGTERM);
        let until = Instant::now() + END_WITHIN;
        while Instant::now() < until {
            if !matches!(self.dev.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = self.dev.kill();
        let _ = self.dev.wait();
    }
}

impl Drop for DevChild {
    fn drop(&mut self) {
        self.end();
    }
}

/// This program, to be run once more.
pub(crate) fn ourselves() -> Result<Command, Failure> {
    let program =
        std::env::current_exe().map_err(|e| Failure::other(format!("cannot find this program: {e}")))?;
    Ok(Command::new(program))
}

/// A block of ports that nobody uses right now, for at most five members.
pub(crate) fn free_block() -> Result<u16, Failure> {
    let free = |base: &u16| {
        let used = (1..=5).flat_map(|member| [10 * member, 10 * member + 1, 10 * member + 2]);
        used.into_iter().all(|port| TcpListener::bind(("127.0.0.1", base + port)).is_ok())
    };
    let start = u16::try_from(std::process::id() % u32::from(BLOCKS)).unwrap_or_default();
    let mut blocks = (0..BLOCKS).map(|n| FIRST + (start + n) % BLOCKS * PORTS);
    let last = FIRST + BLOCKS * PORTS;
    blocks
        .find(free)
        .ok_or_else(|| Failure::other(format!("no block of free ports between {FIRST} and {last}")))
}
