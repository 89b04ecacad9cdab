//! What `lock` and `elect` share: getting a grant in time, running a command under it, giving it back.
//!
//! Knows sessions, signals and exit codes. Does not know how a lock differs from an election.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    future::Future,
    time::{Duration, Instant},
};

use clap::Args;
use holdfast_client::{AcquireError, Client, HoldError, Leadership, LockGuard, Session};
use nix::sys::signal::Signal;

use crate::{
    cli::{self, Global},
    cluster::{self, failed, not_acquired},
    failure::{Ended, Failure, Kind},
    run::{
        signals::Signals,
        supervise::{self, End, Job, Lease},
    },
    say,
};

/// Shortest and longest TTL that members accept.
const TTL_BOUNDS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);
/// How long leaving takes at most, when nobody waits for its result.
pub(super) const LEAVE_WITHIN: Duration = Duration::from_secs(1);
/// The same, when the lease is over and whatever is left to give back is so already.
const LEAVE_LOST_WITHIN: Duration = Duration::from_millis(200);

/// How to get a grant and how long it survives silence.
#[derive(Clone, Debug, Args)]
pub(crate) struct HoldArgs {
    /// Wait in line at most so long, for example 30s; without it, for as long as it takes
    #[arg(long, value_name = "TIME", value_parser = cli::duration, conflicts_with = "try")]
    wait: Option<Duration>,
    /// Do not wait at all
    #[arg(long)]
    r#try: bool,
    /// How long the grant survives silence; the command is ended when it cannot be renewed for so long
    #[arg(long, value_name = "TIME", value_parser = ttl, default_value = "10s")]
    ttl: Duration,
    /// Exit code when it was not granted, instead of 75
    #[arg(short = 'E', long, value_name = "N")]
    exit_code: Option<u8>,
}

pub(super) fn ttl(text: &str) -> Result<Duration, String> {
    let ttl = cli::duration(text)?;
    if TTL_BOUNDS.contains(&ttl) { Ok(ttl) } else { Err("a TTL is 1s to 24h".into()) }
}

/// A grant of either kind.
pub(crate) trait Hold: Lease + Sized {
    /// Gives it back.
    fn give_back(&self) -> impl Future<Output = Result<bool, HoldError>>;
}

impl Lease for LockGuard {
    fn remaining(&self) -> Duration {
        Self::remaining(self)
    }

    async fn lost(&self) -> String {
        format!("the lock is lost: {}", Self::lost(self).await)
    }
}

impl Hold for LockGuard {
    fn give_back(&self) -> impl Future<Output = Result<bool, HoldError>> {
        self.release()
    }
}

impl Lease for Leadership {
    fn remaining(&self) -> Duration {
        Self::remaining(self)
    }

    async fn lost(&self) -> String {
        format!("the leadership is lost: {}", Self::lost(self).await)
    }
}

impl Hold for Leadership {
    fn give_back(&self) -> impl Future<Output = Result<bool, HoldError>> {
        self.resign()
    }
}

/// How long one attempt may wait in line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// Not at all.
    Try,
    /// So long.
    AtMost(Duration),
    /// For as long as it takes.
    Endless,
}

/// A grant, its session, and the signals that were caught since before either.
#[derive(Debug)]
pub(crate) struct Holding<H> {
    /// The grant.
    pub hold: H,
    session: Session,
    /// Signals to this process.
    pub signals: Signals,
    timeout: Duration,
}

impl HoldArgs {
    /// Opens a session and gets a grant from `ask`. Ends early at a signal; nothing is left in the queue then.
    pub(crate) async fn get<H, F>(
        &self,
        global: &Global,
        label: &str,
        ask: impl Fn(Session, Patience) -> F,
    ) -> Result<Holding<H>, Failure>
    where
        F: Future<Output = Result<H, AcquireError>>,
    {
        let mut signals =
            Signals::forwarded().map_err(|e| Failure::other(format!("cannot catch signals: {e}")))?;
        let begun = Instant::now();
        let client = cluster::client(&self.impatient(global))?;
        loop {
            let session = self.open(&client, label, &mut signals).await?;
            let patience = match (self.r#try, self.wait) {
                (true, _) => Patience::Try,
                (false, Some(wait)) => Patience::AtMost(wait.saturating_sub(begun.elapsed())),
                (false, None) => Patience::Endless,
            };
            let granted = tokio::select! {
                biased;
                signal = signals.next_ending() => Err(signal),
                granted = ask(session.clone(), patience) => Ok(granted),
            };
            match granted {
                Err(signal) => {
                    leave(&session, LEAVE_WITHIN).await;
                    return Err(interrupted(signal));
                }
                Ok(Ok(hold)) => return Ok(Holding { hold, session, signals, timeout: global.timeout }),
                Ok(Err(error)) => {
                    leave(&session, LEAVE_WITHIN).await;
                    if !self.goes_on(&error, begun) {
                        return Err(not_acquired(&error, self.exit_code));
                    }
                    say::line(&format!("{error}; asking again, at the end of the queue"));
                }
            }
        }
    }

    /// Whoever waits two seconds for a lock does not wait longer for a member.
    fn impatient(&self, global: &Global) -> Global {
        let timeout =
            self.wait.filter(|wait| !wait.is_zero()).map_or(global.timeout, |wait| wait.min(global.timeout));
        Global { timeout, ..global.clone() }
    }

    async fn open(&self, client: &Client, label: &str, signals: &mut Signals) -> Result<Session, Failure> {
        tokio::select! {
            biased;
            signal = signals.next_ending() => Err(interrupted(signal)),
            session = client.session().ttl(self.ttl).label(label).open() => session.map_err(|e| failed(&e)),
        }
    }

    /// Whether a wait that ended this way is begun again: outages end sessions, patience they do not end.
    fn goes_on(&self, error: &AcquireError, begun: Instant) -> bool {
        let interrupted = matches!(error, AcquireError::SessionLost { .. } | AcquireError::Unknown { .. });
        interrupted && !self.r#try && self.wait.is_none_or(|wait| begun.elapsed() < wait)
    }
}

impl<H: Hold> Holding<H> {
    /// Runs a command under the grant, and gives it back once no process of the command is left.
    pub(crate) async fn run(
        mut self,
        command: &[OsString],
        environment: BTreeMap<&'static str, String>,
    ) -> Ended {
        // A signal that came together with the grant: the command is not started.
        if let Some(signal) = self.signals.waiting() {
            leave(&self.session, LEAVE_WITHIN).await;
            return Err(interrupted(signal));
        }
        let job = Job { command, environment, ttl: self.session.ttl() };
        match supervise::run(&job, &mut self.signals, &self.hold).await {
            Ok(End::Own(code)) => {
                self.give_back().await;
                Ok(code)
            }
            Ok(End::Lost) => {
                leave(&self.session, LEAVE_LOST_WITHIN).await;
                Err(Failure::new(Kind::LockLost, "the command was ended because the lease under it was lost"))
            }
            Err(e) => {
                self.give_back().await;
                Err(Failure::other(format!("the command could not be started: {e}")))
            }
        }
    }

    /// Gives the grant back and closes the session, as far as members can be reached.
    pub(crate) async fn give_back(&self) {
        let deadline = Instant::now() + self.timeout;
        loop {
            match self.hold.give_back().await {
                Ok(_) => break,
                Err(error) if error.retryable() && Instant::now() < deadline => {}
                Err(error) => {
                    say::line(&format!("warning: {error}; it comes free at the latest when its TTL is over"));
                    break;
                }
            }
        }
        leave(&self.session, LEAVE_WITHIN).await;
    }
}

/// Closes the session, as far as that takes no longer than this: whatever it held or waited for is free then.
pub(super) async fn leave(session: &Session, within: Duration) {
    let _ = tokio::time::timeout(within, session.close()).await;
}

pub(super) fn interrupted(signal: Signal) -> Failure {
    Failure::new(Kind::Interrupted(signal as u8), format!("interrupted by {signal}; nothing was started"))
}
