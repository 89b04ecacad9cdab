//! One member: its files, its process, and the switches of its faults.

use std::{
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    FaultError,
    plan::Plan,
    ports::Block,
    shim::{Shim, Switch},
    spawner::Spawner,
};

/// Lines of a log that an error shows.
const SHOWN_LINES: usize = 30;

/// One member of a cluster.
#[derive(Debug)]
pub(crate) struct Member {
    number: u16,
    folder: PathBuf,
    child: Option<Child>,
    pub(crate) switch: Option<Switch>,
}

impl Member {
    /// Writes its configuration.
    pub(crate) fn create(folder: &Path, number: u16, plan: &Plan, block: &Block) -> Result<Self, FaultError> {
        let folder = folder.join(format!("member-{number}"));
        let write = |path: &Path, text: &str| {
            fs::write(path, text).map_err(FaultError::system(format!("write {}", path.display())))
        };
        fs::create_dir_all(&folder).map_err(FaultError::system(format!("create {}", folder.display())))?;
        write(&folder.join("config.toml"), &config(&folder, number, plan, block))?;
        Ok(Self { number, folder, child: None, switch: None })
    }

    /// Where its state is.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts its process, unless it runs.
    pub(crate) fn start(
        &mut self,
        plan: &Plan,
        shim: Option<&Shim>,
        spawner: &Spawner,
    ) -> Result<(), FaultError> {
        if self.is_running() {
            return Ok(());
        }
        let path = self.log();
        let log = File::options().create(true).append(true).open(&path);
        let log = log.and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(FaultError::system(format!("write {}", path.display())))?;
        let mut command = Command::new(&plan.binary);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HOLDFAST"))
        {
            command.env_remove(name);
        }
        command.arg("node").arg("--config").arg(self.folder.join("config.toml"));
        for (key, value) in &plan.settings {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        command
            .arg(format!("--parent-pid={}", std::process::id()))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        if let Some(shim) = shim {
            self.switch = Some(shim.load(&mut command, &self.folder.join("faults.control"))?);
        }
        self.child = Some(spawner.spawn(command)?);
        Ok(())
    }

    /// Whether its process runs (or is paused).
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Its process id while it runs.
    pub(crate) fn pid(&mut self) -> Option<Pid> {
        let running = self.is_running();
        let child = self.child.as_ref().filter(|_| running)?;
        i32::try_from(child.id()).ok().map(Pid::from_raw)
    }

    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), FaultError> {
        let Some(pid) = self.pid() else { return Err(self.failed("does not run")) };
        kill(pid, signal).map_err(FaultError::errno(format!("send {signal} to member {}", self.number)))
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// All it has written.
    pub(crate) fn said(&self) -> String {
        fs::read(self.log()).map_or_else(|_| String::new(), |log| String::from_utf8_lossy(&log).into_owned())
    }

    pub(crate) fn failed(&self, how: &str) -> FaultError {
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        let log = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n");
        FaultError::Member { member: self.number, how: how.to_owned(), log }
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Its configuration: the others are reached through links, it listens without any.
fn config(folder: &Path, number: u16, plan: &Plan, block: &Block) -> String {
    let data = folder.join("data");
    let mut text = format!(
        "cluster = \"faults\"\nmember = {number}\ndata_dir = {data:?}\n\
         listen = {{ http = \"{}\", grpc = \"{}\", peer = \"{}\" }}\n\
         groups = {{ lock_groups = {} }}\nsnapshots = {{ store = {:?} }}\n",
        block.http(number),
        block.grpc(number),
        block.peer(number),
        plan.groups,
        folder.join("snapshots"),
    );
    for member in 1..=plan.members {
        let peer = if member == number { block.peer(member) } else { block.link(number, member) };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[members]]\nid = {member}\nhttp = \"http://{}\"\ngrpc = \"http://{}\"\npeer = \"{peer}\"\n",
            block.http(member),
            block.grpc(member),
        );
    }
    text
}
