//! The watchdog: a process of its own that kills the command's whole process group when the wrapper dies in a way it
//! cannot answer to (SIGKILL), or when the lease's time is over and the wrapper did not act (it was stopped).
//!
//! The wrapper writes to its standard input: `group N` once the command runs, `until N` (boot clock, milliseconds)
//! whenever the lease was renewed, `done` when the group is gone. The end of the input means that the wrapper is dead.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::{fd::AsFd as _, unix::process::CommandExt as _},
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal, killpg},
        time::TimeSpec,
        timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
    },
    unistd::{Pid, chdir, setsid},
};

use crate::{
    failure::{self, Ended, Failure},
    say,
};

/// Its name on the command line.
pub(crate) const VERB: &str = "internal-watchdog";

/// Points in time that differ by less are the same, read twice.
const WORTH_TELLING_MS: u64 = 2;

/// The wrapper's end of a watchdog.
#[derive(Debug)]
pub(crate) struct Watchdog {
    process: Child,
    input: ChildStdin,
    told_until: u64,
    silent: bool,
}

impl Watchdog {
    /// Starts a watchdog and waits until it is out of reach of the terminal's signals.
    pub(crate) fn start() -> io::Result<Self> {
        let mut process = Command::new("/proc/self/exe")
            .arg0("holdfast")
            .arg(VERB)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(mut output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::other("the watchdog has no pipes"));
        };
        let mut ready = [0; 1];
        output.read_exact(&mut ready)?;
        // A watchdog that was stopped must not stop the wrapper: better a lost line than a blocked write.
        fcntl(input.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self { process, input, told_until: 0, silent: false })
    }

    /// The command runs in this process group.
    pub(crate) fn guard(&mut self, group: Pid) {
        self.tell(&format!("group {group}\n"));
    }

    /// The command may run until this point on the boot clock.
    pub(crate) fn until(&mut self, boot_ms: u64) {
        if self.told_until.abs_diff(boot_ms) > WORTH_TELLING_MS {
            self.told_until = boot_ms;
            self.tell(&format!("until {boot_ms}\n"));
        }
    }

    /// The group is gone: the watchdog ends.
    pub(crate) fn done(mut self) {
        self.tell("done\n");
        drop(self.input);
        let _ = self.process.wait();
    }

    fn tell(&mut self, line: &str) {
        match self.input.write_all(line.as_bytes()) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) if self.silent => {}
            Err(_) => {
                self.silent = true;
                say::line(
                    "warning: the watchdog process is gone; if this process is killed, grandchildren of the command \
                     may outlive it",
                );
            }
        }
    }
}

/// The watchdog's own life.
pub(crate) fn run() -> Ended {
    // Nothing but the wrapper ends it: neither the terminal (own session) nor whoever signals all processes at once.
    setsid().map_err(|e| Failure::other(format!("the watchdog cannot leave the terminal: {e}")))?;
    SigSet::all()
        .thread_block()
        .map_err(|e| Failure::other(format!("the watchdog cannot block signals: {e}")))?;
    let _ = chdir("/");
    let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::empty())
        .map_err(|e| Failure::other(format!("the watchdog has no timer: {e}")))?;
    let _ = io::stdout().write_all(b"+").and_then(|()| io::stdout().flush());
    let mut guarded = None;
    match watch(&timer, &mut guarded) {
        Ok(Reason::Done) => return Ok(failure::OK),
        Ok(Reason::WrapperGone) => {
            if kill(guarded) {
                say::line("the wrapper was killed; its command was killed too");
            }
        }
        Ok(Reason::TimeOver) => {
            if kill(guarded) {
                say::line("the lease's time is over; the command was killed");
            }
        }
        Err(e) => {
            kill(guarded);
            return Err(Failure::other(format!("the watchdog failed and killed the command: {e}")));
        }
    }
    Ok(failure::OK)
}

enum Reason {
    Done,
    WrapperGone,
    TimeOver,
}

/// Reads lines and waits for the deadline, until there is a reason to end.
fn watch(timer: &TimerFd, guarded: &mut Option<Pid>) -> io::Result<Reason> {
    let stdin = io::stdin();
    let mut lines = BufReader::new(stdin.lock());
    loop {
        let mut sources =
            [PollFd::new(stdin.as_fd(), PollFlags::POLLIN), PollFd::new(timer.as_fd(), PollFlags::POLLIN)];
        match poll(&mut sources, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let [readable, over] = sources.map(|source| source.any() == Some(true));
        // Lines first: a renewal that is already here moves the deadline.
        while readable || !lines.buffer().is_empty() {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                return Ok(Reason::WrapperGone);
            }
            if obey(&line, timer, guarded)? {
                return Ok(Reason::Done);
            }
            if lines.buffer().is_empty() {
                break;
            }
        }
        if over && expired(timer)? {
            return Ok(Reason::TimeOver);
        }
    }
}

/// Whether the timer still says that the time is over: setting it anew takes back what `poll` saw.
fn expired(timer: &TimerFd) -> io::Result<bool> {
    let mut source = [PollFd::new(timer.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut source, PollTimeout::ZERO)? > 0)
}

/// Does what one line says; answers whether it was the last.
fn obey(line: &str, timer: &TimerFd, guarded: &mut Option<Pid>) -> io::Result<bool> {
    match line.trim_end().split_once(' ') {
        Some(("group", id)) => *guarded = id.parse().ok().map(Pid::from_raw),
        Some(("until", at)) => {
            let at = Duration::from_millis(at.parse().unwrap_or(u64::MAX / 2));
            timer.set(
                Expiration::OneShot(TimeSpec::from_duration(at)),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            )?;
        }
        _ => return Ok(true),
    }
    Ok(false)
}

/// Kills the group; answers whether there was one.
fn kill(guarded: Option<Pid>) -> bool {
    guarded.is_some_and(|group| killpg(group, Signal::SIGKILL).is_ok())
}
