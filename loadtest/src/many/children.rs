//! Processes that each keep a part of the sessions: this very program, with the verb `sessions`.

use std::{path::Path, time::Duration};

use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{crowd::Shape, sessions::Kept};
use crate::{bench::process::Process, failure::Failure};

/// What a process says once all its sessions are open.
pub(crate) const ALL_OPEN: &str = "all sessions are open";
/// They are told to end.
const FOR_EVER_S: u32 = 86_400;
const LOOK: Duration = Duration::from_millis(50);

/// The processes; ended when dropped.
#[derive(Debug)]
pub(crate) struct Children {
    processes: Vec<Process>,
    _folder: TempDir,
}

impl Children {
    /// Starts so many processes that share the sessions among them.
    ///
    /// Must run on the main thread, as [`Process::start`] says.
    pub(crate) fn start(endpoints: &[String], shape: &Shape, processes: u32) -> Result<Self, Failure> {
        let folder = TempDir::with_prefix("holdfast-loadtest-")
            .map_err(|error| Failure::other("cannot make a temporary folder", error))?;
        let itself = std::env::current_exe().map_err(|error| Failure::other("cannot find myself", error))?;
        let mut started = Vec::new();
        for number in 0..processes {
            let share = shape.count / processes + u32::from(number < shape.count % processes);
            if share > 0 {
                let arguments = arguments(endpoints, shape, number, share);
                let name = format!("sessions-{number}");
                started.push(Process::start(&name, folder.path(), Path::new(&itself), &arguments)?);
            }
        }
        Ok(Self { processes: started, _folder: folder })
    }

    /// Waits until all their sessions are open.
    pub(crate) async fn all_open(&mut self) -> Result<(), Failure> {
        for process in &mut self.processes {
            while !process.complained().contains(ALL_OPEN) {
                process.check()?;
                sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Sends a signal to all.
    pub(crate) fn signal(&self, signal: Signal) {
        for process in &self.processes {
            process.signal(signal);
        }
    }

    /// Tells them to end, and takes what they have to say.
    pub(crate) async fn finish(mut self, within: Duration) -> Result<Vec<Kept>, Failure> {
        self.signal(Signal::SIGTERM);
        let mut all = Vec::new();
        for process in &mut self.processes {
            process.ended(within).await?;
            let said = process.said();
            let kept = serde_json::from_str(&said).map_err(|error| {
                Failure::other(&format!("a process told no result: {}", process.complained().trim()), error)
            })?;
            all.push(kept);
        }
        Ok(all)
    }
}

fn arguments(endpoints: &[String], shape: &Shape, number: u32, share: u32) -> Vec<String> {
    vec![
        "sessions".to_owned(),
        format!("--endpoints={}", endpoints.join(",")),
        format!("--count={share}"),
        format!("--locks-each={}", shape.locks_each),
        format!("--connections={}", shape.connections),
        format!("--ttl={}", shape.ttl.as_secs()),
        format!("--prefix={}{number}-", shape.prefix),
        format!("--seconds={FOR_EVER_S}"),
        "--processes=1".to_owned(),
        "--output=json".to_owned(),
    ]
}
