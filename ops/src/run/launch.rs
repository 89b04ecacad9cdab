//! The hidden verb that becomes the command: the wrapper starts it, it ties itself to the wrapper's life, and then
//! executes the command in its own place.
//!
//! It exists because setting the parent-death signal between fork and exec would need unsafe code.

use std::{ffi::OsString, io::ErrorKind, os::unix::process::CommandExt as _, process::Command};

use clap::Args;
use nix::{
    sys::{
        prctl,
        signal::{Signal, raise},
    },
    unistd::getppid,
};

use crate::failure::{CANNOT_RUN, Ended, Failure, Kind, NOT_FOUND};

/// Its name on the command line.
pub(crate) const VERB: &str = "internal-launch";

/// What the wrapper tells it.
#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// The wrapper's process id.
    #[arg(long)]
    parent: i32,
    /// The command.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Waits, stopped, until the wrapper has told the watchdog about this process; then becomes the command.
pub(crate) fn run(args: LaunchArgs) -> Ended {
    die_with_parent(args.parent)?;
    raise(Signal::SIGSTOP).map_err(|e| Failure::other(format!("cannot wait for the wrapper: {e}")))?;
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("no command given"));
    };
    let error = Command::new(program).args(arguments).exec();
    let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN };
    Err(Failure::new(Kind::CannotRun(code), format!("cannot run {}: {error}", program.display())))
}

/// Asks the kernel to kill this process as soon as the thread that started it ends, and makes sure that this has not
/// happened yet.
pub(crate) fn die_with_parent(parent: i32) -> Result<(), Failure> {
    prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|e| Failure::other(format!("cannot tie this process to its parent: {e}")))?;
    if getppid().as_raw() == parent {
        return Ok(());
    }
    Err(Failure::other(format!("the parent process {parent} is gone; nothing was started")))
}
