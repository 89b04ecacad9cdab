//! One member process of a local cluster: started, watched, started again, stopped.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    rc::Rc,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    sync::watch,
    time::timeout,
};

use crate::say;

/// How long a member that died stays down.
const RESTART_AFTER: Duration = Duration::from_secs(2);
/// How long a member may take to stop; the whole command promises 10 s.
const STOP_WITHIN: Duration = Duration::from_secs(8);
/// Variables that set values of a member's configuration: only those that suit every member alike are passed on.
const SETTING_PREFIX: &str = "HOLDFAST__";
const SHARED_SETTINGS: [&str; 3] = ["HOLDFAST__LOG__", "HOLDFAST__RAFT__", "HOLDFAST__SNAPSHOTS__"];

/// How a member is run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Its number, from 1.
    pub number: u16,
    /// This process.
    pub parent: u32,
    /// Its configuration file.
    pub config: PathBuf,
    /// Where its output goes.
    pub log: PathBuf,
    /// Whether it is started again when it dies.
    pub restart: bool,
}

/// Keeps the member running until told to stop; answers whether it then stopped by itself.
pub(crate) async fn keep_running(plan: Rc<Plan>, mut stop: watch::Receiver<bool>) -> bool {
    loop {
        let ended = match plan.start() {
            Err(e) => format!("cannot be started: {e}"),
            Ok(mut process) => {
                let id = process.id().unwrap_or_default();
                tokio::select! {
                    biased;
                    _ = stop.wait_for(|stop| *stop) => return plan.stop(process).await,
                    status = process.wait() => format!("(process {id}) {}", how(status)),
                }
            }
        };
        let log = plan.log.display();
        if !plan.restart {
            say::line(&format!("member {} {ended}; it stays down (log: {log})", plan.number));
            let _ = stop.wait_for(|stop| *stop).await;
            return true;
        }
        let again = humantime::format_duration(RESTART_AFTER);
        say::line(&format!("member {} {ended}; starting it again in {again} (log: {log})", plan.number));
        if timeout(RESTART_AFTER, stop.wait_for(|stop| *stop)).await.is_ok() {
            return true;
        }
    }
}

impl Plan {
    fn start(&self) -> io::Result<Child> {
        let log = self.open_log()?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("holdfast")
            .arg("node")
            .arg("--config")
            .arg(&self.config)
            .arg(format!("--parent-pid={}", self.parent))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Out of reach of the terminal: Ctrl-C is for this process, which then stops its members.
            .process_group(0)
            .kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let shared = SHARED_SETTINGS.iter().any(|prefix| text.starts_with(prefix));
            if text == "HOLDFAST_CONFIG" || (text.starts_with(SETTING_PREFIX) && !shared) {
                command.env_remove(&name);
            }
        }
        command.spawn()
    }

    fn open_log(&self) -> io::Result<File> {
        if let Some(folder) = self.log.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().create(true).append(true).open(&self.log)
    }

    async fn stop(&self, mut process: Child) -> bool {
        let Some(id) = process.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw) else {
            return true;
        };
        let _ = kill(id, Signal::SIGTERM);
        // A member that was stopped for an experiment would not see it.
        let _ = kill(id, Signal::SIGCONT);
        if timeout(STOP_WITHIN, process.wait()).await.is_ok() {
            return true;
        }
        say::line(&format!("member {} does not stop; killing it (log: {})", self.number, self.log.display()));
        let _ = process.kill().await;
        false
    }
}

/// How a process ended, for people.
fn how(status: io::Result<ExitStatus>) -> String {
    match status {
        Err(e) => format!("was lost from sight: {e}"),
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => match Signal::try_from(signal) {
                Ok(name) => format!("was killed by {name}"),
                Err(_) => format!("was killed by signal {signal}"),
            },
            (None, None) => "ended".to_owned(),
        },
    }
}
