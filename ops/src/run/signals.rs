//! The signals that the wrapper catches: some end it, all are passed on to the command it runs.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use futures::FutureExt as _;
use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

/// Signals that are passed on to the command.
const FORWARDED: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCONT,
];

/// Caught signals, in no particular order.
#[derive(Debug)]
pub(crate) struct Signals {
    caught: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// Catches everything that is passed on.
    pub(crate) fn forwarded() -> io::Result<Self> {
        Self::catch(&FORWARDED)
    }

    /// Catches what ends a long-running verb.
    pub(crate) fn ending() -> io::Result<Self> {
        Self::catch(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
    }

    /// Catches these, also where they were inherited as ignored: a shell without job control starts background commands
    /// with INT ignored. Only HUP stays ignored then, because `nohup` means it.
    fn catch(signals: &[Signal]) -> io::Result<Self> {
        let mut caught = Vec::new();
        for signal in signals {
            if *signal == Signal::SIGHUP && ignored(*signal) {
                continue;
            }
            caught.push((*signal, unix::signal(SignalKind::from_raw(*signal as i32))?));
        }
        Ok(Self { caught })
    }

    /// The next signal. Cancel safe.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| self.poll(context)).await
    }

    /// The next signal that asks to end. Cancel safe.
    pub(crate) async fn next_ending(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if ends(signal) {
                return signal;
            }
        }
    }

    /// A signal that asks to end and has come already.
    pub(crate) fn waiting(&mut self) -> Option<Signal> {
        self.next_ending().now_or_never()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Signal> {
        for (signal, stream) in &mut self.caught {
            if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    }
}

/// Whether a signal asks a program to end.
pub(crate) const fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT)
}

/// Whether this process was started with the signal ignored.
fn ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal as u32 - 1)) != 0
}
