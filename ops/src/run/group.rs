//! A command and everything it started, as one process group.
//!
//! Knows how to start, signal and reap it. Does not know why it is ended.

use std::{collections::BTreeMap, ffi::OsString, io, os::unix::process::CommandExt as _, process::Command};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{Signal, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getpid},
};
use tokio::signal::unix::{self, SignalKind};

use super::launch;
use crate::failure::SIGNAL_BASE;

/// A running process group.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    exit: Option<u8>,
    children: unix::Signal,
}

/// What happened to the group's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The command ended with this exit code (128 + signal where one killed it); what it started may still run.
    Ended(u8),
    /// The command was stopped by this signal.
    Stopped(Signal),
}

impl Group {
    /// Starts the command, stopped before its first instruction, with these variables added to its environment. Must
    /// be called on a thread that lives as long as the command may run: the parent-death signal is tied to it.
    pub(crate) async fn start(
        command: &[OsString],
        environment: &BTreeMap<&'static str, String>,
    ) -> io::Result<Self> {
        // What the command leaves behind becomes this process's child, so that it can be reaped and counted also
        // where process 1 reaps nothing, as in many containers.
        prctl::set_child_subreaper(true)?;
        let children = unix::signal(SignalKind::child())?;
        let process = Command::new("/proc/self/exe")
            .arg0("holdfast")
            .arg(launch::VERB)
            .arg(format!("--parent={}", getpid()))
            .arg("--")
            .args(command)
            .envs(environment)
            .process_group(0)
            .spawn()?;
        let leader = Pid::from_raw(i32::try_from(process.id()).map_err(io::Error::other)?);
        let mut group = Self { leader, exit: None, children };
        // Reaped here from now on, never through the standard library.
        drop(process);
        match group.change().await {
            Change::Stopped(_) => Ok(group),
            Change::Ended(_) => Err(io::Error::other("it ended before it began")),
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> Pid {
        self.leader
    }

    /// Sends a signal to every process of the group.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = killpg(self.leader, signal);
    }

    /// The next change of the leader. Cancel safe. Never answers after the command has ended.
    pub(crate) async fn change(&mut self) -> Change {
        loop {
            if self.exit.is_none()
                && let Some(change) = self.reap()
            {
                return change;
            }
            self.children.recv().await;
        }
    }

    /// Waits until no process of the group is left. Cancel safe.
    pub(crate) async fn gone(&mut self) {
        while !self.is_gone() {
            // A grandchild whose parent is outside the group ends without telling us: look again now and then.
            let look_again = tokio::time::sleep(std::time::Duration::from_millis(20));
            tokio::select! {
                _ = self.children.recv() => {}
                () = look_again => {}
            }
        }
    }

    fn is_gone(&mut self) -> bool {
        while self.reap().is_some() {}
        killpg(self.leader, None) == Err(Errno::ESRCH)
    }

    /// Reaps what has ended in the group; answers the first news of its leader.
    fn reap(&mut self) -> Option<Change> {
        let any_of_group = Pid::from_raw(-self.leader.as_raw());
        loop {
            let status = match waitpid(any_of_group, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
                Ok(status) => status,
                Err(Errno::EINTR) => continue,
                Err(_) => return None,
            };
            let (pid, change) = match status {
                WaitStatus::Exited(pid, code) => (pid, Change::Ended(code as u8)),
                WaitStatus::Signaled(pid, signal, _) => (pid, Change::Ended(SIGNAL_BASE + signal as u8)),
                WaitStatus::Stopped(pid, signal) => (pid, Change::Stopped(signal)),
                WaitStatus::StillAlive => return None,
                _ => continue,
            };
            if pid != self.leader {
                continue;
            }
            if let Change::Ended(code) = change {
                self.exit = Some(code);
            }
            return Some(change);
        }
    }
}
