//! Runs a command for as long as a lease holds, and ends it in time when it does not.
//!
//! Knows deadlines and how to end a process group. Does not know what the lease is for.

use std::{collections::BTreeMap, ffi::OsString, future::Future, io, time::Duration};

use nix::sys::signal::Signal;
use tokio::sync::watch;

use super::{
    group::{Change, Group},
    signals::Signals,
    terminal::Terminal,
    watchdog::Watchdog,
};
use crate::{clock, say};

/// Longest sleep between two looks at the clock: timers stand still while the machine sleeps, the lease does not.
const LOOK_AT_LEAST: Duration = Duration::from_millis(500);
/// How long what the command left behind may take to end, once the command itself has.
const LEFTOVER_GRACE_MS: u64 = 5_000;
/// Longest time between TERM and KILL when the lease is running out.
const LONGEST_GRACE_MS: u64 = 5_000;
/// Time between TERM and KILL once the lease is gone and somebody else may hold already.
const LOST_GRACE_MS: u64 = 1_000;

/// What the command runs under, as it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Ours until this point on the boot clock (milliseconds), unless it is renewed.
    Until(u64),
    /// Gone, and why.
    Lost(String),
}

/// How the command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, or by a signal that was passed on: its exit code.
    Own(u8),
    /// Ended by us, because the lease was lost or could not be renewed in time.
    Lost(String),
}

/// A command to run.
#[derive(Debug)]
pub struct Job<'a> {
    /// Program and arguments.
    pub command: &'a [OsString],
    /// Added to its environment.
    pub environment: BTreeMap<&'static str, String>,
    /// The lease's TTL in milliseconds: how much time there is to end the command depends on it.
    pub ttl_ms: u64,
}

/// Runs the job to its end; no process of its group is left afterwards. Must run on the main thread.
pub async fn run(job: &Job<'_>, signals: &mut Signals, lease: watch::Receiver<Standing>) -> io::Result<End> {
    let mut watchdog = Watchdog::start()?;
    if let Standing::Until(deadline) = *lease.borrow() {
        watchdog.until(deadline);
    }
    let mut terminal = Terminal::of_stdin();
    let group = Group::start(job.command, &job.environment).await?;
    watchdog.guard(group.id());
    terminal.hand_to_new(group.id());
    group.signal(Signal::SIGCONT);
    let id = group.id();
    let mut run = Run { group, terminal, watchdog, lease, grace_ms: grace_ms(job.ttl_ms), waits_for_terminal: false };
    let end = run.until_ended(signals).await;
    run.terminal.take_back(id);
    run.watchdog.done();
    Ok(end)
}

/// How long before the deadline the command is asked to end.
const fn grace_ms(ttl_ms: u64) -> u64 {
    let fifth = ttl_ms / 5;
    if fifth < LONGEST_GRACE_MS { fifth } else { LONGEST_GRACE_MS }
}

struct Run {
    group: Group,
    terminal: Terminal,
    watchdog: Watchdog,
    lease: watch::Receiver<Standing>,
    grace_ms: u64,
    waits_for_terminal: bool,
}

impl Run {
    async fn until_ended(&mut self, signals: &mut Signals) -> End {
        loop {
            let (lost, kill_at) = match self.lease.borrow_and_update().clone() {
                Standing::Lost(why) => (Some(why), clock::boot_ms() + LOST_GRACE_MS.min(self.grace_ms)),
                Standing::Until(deadline) => {
                    self.watchdog.until(deadline);
                    let now = clock::boot_ms();
                    let late = now + self.grace_ms >= deadline;
                    (late.then(|| "the lease could not be renewed in time".to_owned()), deadline)
                }
            };
            if let Some(why) = lost {
                say::line(&format!("{why}; ending the command"));
                self.end(signals, kill_at).await;
                return End::Lost(why);
            }
            let term_at = kill_at.saturating_sub(self.grace_ms);
            tokio::select! {
                biased;
                change = self.group.change() => {
                    if let Some(code) = self.changed(change) {
                        return self.end_leftovers(signals, code).await;
                    }
                }
                signal = signals.next() => self.forward(signal),
                changed = self.lease.changed() => {
                    if changed.is_err() {
                        // Whoever renewed the lease is gone; the last known deadline counts.
                        sleep_until(term_at).await;
                    }
                }
                () = sleep_until(term_at) => {}
            }
        }
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
                // Stopped with the lock in its hands it would block everybody else, and lose the lock to nobody.
                say::line("the command holds a lock and cannot be suspended; it goes on");
                self.group.signal(Signal::SIGCONT);
            }
            Change::Stopped(_) => {}
        }
        None
    }

    fn offer_terminal(&mut self) {
        if self.waits_for_terminal && self.terminal.hand_to(self.group.id()) {
            self.waits_for_terminal = false;
            self.group.signal(Signal::SIGCONT);
        }
    }

    fn forward(&mut self, signal: Signal) {
        if signal == Signal::SIGCONT {
            self.offer_terminal();
        }
        self.group.signal(signal);
        if super::signals::ends(signal) {
            // A stopped command would not see it.
            self.group.signal(Signal::SIGCONT);
        }
    }

    /// Ends the whole group: TERM now, KILL at the deadline.
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
        let at_once = clock::boot_ms();
        if until(self.group.gone(), at_once, signals).await.is_none() {
            say::line("the command ended but left processes behind; ending them before the lock is released");
            let deadline = match &*self.lease.borrow() {
                Standing::Until(deadline) => *deadline,
                Standing::Lost(_) => at_once,
            };
            self.end(signals, deadline.min(at_once + LEFTOVER_GRACE_MS)).await;
        }
        End::Own(code)
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
        let left = Duration::from_millis(at.saturating_sub(clock::boot_ms()));
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK_AT_LEAST)).await;
    }
}
