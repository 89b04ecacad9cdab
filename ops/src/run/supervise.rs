//! Runs a command for as long as a lease holds, and ends it in time when it does not.
//!
//! Knows deadlines and how to end a process group. Does not know what the lease is for.

use std::{collections::BTreeMap, ffi::OsString, future::Future, io, time::Duration};

use nix::sys::signal::Signal;

use super::{
    group::{Change, Group},
    signals::{Signals, ends},
    terminal::Terminal,
    watchdog::Watchdog,
};
use crate::{clock, say};

/// Longest sleep between two looks at the lease: timers stand still while the machine sleeps, the lease does not.
const LONGEST_LOOK_MS: u64 = 500;
/// How long what the command left behind may take to end unasked, once the command itself has ended.
const LEFTOVER_PATIENCE_MS: u64 = 200;
/// How long what the command left behind may take to end when asked.
const LEFTOVER_GRACE_MS: u64 = 5_000;
/// Longest time between TERM and KILL when the lease is running out.
const LONGEST_GRACE_MS: u64 = 5_000;
/// Time between TERM and KILL once the lease is gone and somebody else may hold already.
const LOST_GRACE_MS: u64 = 1_000;
/// How much before the lease's end KILL is sent: the watchdog acts at the end itself.
const KILL_EARLY_MS: u64 = 20;

/// What the command runs under.
pub(crate) trait Lease {
    /// How long it certainly lasts if nothing more is heard; zero once it is over.
    fn remaining(&self) -> Duration;
    /// Waits until it is over, and says why.
    fn lost(&self) -> impl Future<Output = String>;
}

/// How the command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, or by a signal that was passed on: its exit code.
    Own(u8),
    /// Ended by us, because the lease was lost or could not be renewed in time.
    Lost,
}

/// A command to run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// Program and arguments.
    pub command: &'a [OsString],
    /// Added to its environment.
    pub environment: BTreeMap<&'static str, String>,
    /// The lease's TTL: how much time there is to end the command depends on it.
    pub ttl: Duration,
}

/// Runs the job to its end; no process of its group is left afterwards. Must run on the main thread.
pub(crate) async fn run(job: &Job<'_>, signals: &mut Signals, lease: &impl Lease) -> io::Result<End> {
    let mut watchdog = Watchdog::start()?;
    let mut terminal = Terminal::of_stdin();
    let group = Group::start(job.command, &job.environment).await?;
    let id = group.id();
    watchdog.guard(id);
    watchdog.until(end_of(lease));
    terminal.hand_to_new(id);
    group.signal(Signal::SIGCONT);
    let ttl_ms = u64::try_from(job.ttl.as_millis()).unwrap_or(u64::MAX);
    let mut run = Run {
        group,
        terminal,
        watchdog,
        lease,
        grace_ms: (ttl_ms / 5).min(LONGEST_GRACE_MS),
        look_ms: (ttl_ms / 10).min(LONGEST_LOOK_MS),
        waits_for_terminal: false,
    };
    let end = run.until_ended(signals).await;
    run.terminal.take_back(id);
    run.watchdog.done();
    Ok(end)
}

/// The lease's end on the boot clock.
fn end_of(lease: &impl Lease) -> u64 {
    clock::boot_ms().saturating_add(u64::try_from(lease.remaining().as_millis()).unwrap_or(u64::MAX))
}

struct Run<'a, L> {
    group: Group,
    terminal: Terminal,
    watchdog: Watchdog,
    lease: &'a L,
    /// How long before the lease's end the command is asked to end.
    grace_ms: u64,
    /// How often the lease is looked at.
    look_ms: u64,
    waits_for_terminal: bool,
}

impl<L: Lease> Run<'_, L> {
    async fn until_ended(&mut self, signals: &mut Signals) -> End {
        let lease = self.lease;
        let lost = lease.lost();
        tokio::pin!(lost);
        loop {
            let (now, end) = (clock::boot_ms(), end_of(lease));
            self.watchdog.until(end);
            if now + self.grace_ms >= end {
                return self.end_lost(signals, "the lease could not be renewed in time", end).await;
            }
            let look_at = (now + self.look_ms).min(end - self.grace_ms);
            tokio::select! {
                biased;
                change = self.group.change() => {
                    if let Some(code) = self.changed(change) {
                        return self.end_leftovers(signals, code).await;
                    }
                }
                signal = signals.next() => self.forward(signal),
                why = &mut lost => {
                    let end = end_of(lease);
                    let kill_at = if end > clock::boot_ms() { end } else { clock::boot_ms() + LOST_GRACE_MS };
                    return self.end_lost(signals, &why, kill_at.min(clock::boot_ms() + LOST_GRACE_MS)).await;
                }
                () = sleep_until(look_at) => self.offer_terminal(),
            }
        }
    }

    /// Ends the command, because the lease does.
    async fn end_lost(&mut self, signals: &mut Signals, why: &str, kill_at: u64) -> End {
        say::line(&format!("{why}; ending the command"));
        self.end(signals, kill_at.saturating_sub(KILL_EARLY_MS)).await;
        End::Lost
    }

    /// Answers the exit code where the command has ended.
    fn changed(&mut self, change: Change) -> Option<u8> {
        match change {
            Change::Ended(code) => return Some(code),
            Change::Stopped(Signal::SIGTTIN | Signal::SIGTTOU) => {
                self.waits_for_terminal = true;
                self.offer_terminal();
            }
            Change::Stopped(Signal::SIGTSTP) => {
                // Suspended it would keep everybody else from the lock, and the terminal would wait for it.
                say::line("the command runs under a lock and cannot be suspended; it goes on");
                self.group.signal(Signal::SIGCONT);
            }
            Change::Stopped(_) => {}
        }
        None
    }

    /// Hands the terminal to a command that was stopped for want of it, once the wrapper has it to give.
    fn offer_terminal(&mut self) {
        if self.waits_for_terminal && self.terminal.hand_to(self.group.id()) {
            self.waits_for_terminal = false;
            self.group.signal(Signal::SIGCONT);
        }
    }

    fn forward(&mut self, signal: Signal) {
        self.offer_terminal();
        self.group.signal(signal);
        if ends(signal) {
            // A stopped command would not see it.
            self.group.signal(Signal::SIGCONT);
        }
    }

    /// Ends the whole group: TERM now, KILL at the point on the boot clock.
    async fn end(&mut self, signals: &mut Signals, kill_at: u64) {
        self.group.signal(Signal::SIGTERM);
        self.group.signal(Signal::SIGCONT);
        if until(self.group.gone(), kill_at, signals).await.is_none() {
            self.group.signal(Signal::SIGKILL);
            self.group.gone().await;
        }
    }

    /// The command has ended; what it left in its group must too, before the lock is given to anybody else.
    async fn end_leftovers(&mut self, signals: &mut Signals, code: u8) -> End {
        let patience = clock::boot_ms() + LEFTOVER_PATIENCE_MS;
        if until(self.group.gone(), patience, signals).await.is_none() {
            say::line("the command ended but left processes behind; ending them before the lock is released");
            self.end(signals, end_of(self.lease).min(patience + LEFTOVER_GRACE_MS)).await;
        }
        // Killed by the watchdog while this process was stopped itself, it did not end by its own.
        if self.lease.remaining().is_zero() { End::Lost } else { End::Own(code) }
    }
}

/// The future's answer, or nothing at the point on the boot clock. Further signals are swallowed meanwhile.
async fn until<T>(work: impl Future<Output = T>, at: u64, signals: &mut Signals) -> Option<T> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = sleep_until(at) => return None,
            _ = signals.next() => {}
        }
    }
}

/// Sleeps until a point on the boot clock.
async fn sleep_until(at: u64) {
    loop {
        let left = at.saturating_sub(clock::boot_ms());
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(left.min(LONGEST_LOOK_MS))).await;
    }
}
