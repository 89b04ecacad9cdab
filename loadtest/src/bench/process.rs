//! Processes that the bench starts: their output goes to a file, and none outlives the bench.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use clap::Args;
use nix::{
    sys::{
        prctl,
        signal::{Signal, kill},
    },
    unistd::{Pid, getppid},
};
use tokio::time::sleep;

use crate::failure::Failure;

/// The hidden verb that runs a program which ends with its parent.
pub(crate) const VERB: &str = "launch";
/// How long a process may take to end before it is killed.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// How often a process is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// So many lines of its output explain why a process ended.
const LAST_LINES: usize = 5;

/// Runs a program that is killed when its parent ends.
#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// Process id of the parent
    parent: i32,
    /// Program and arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Becomes the program. Returns only where that fails.
pub(crate) fn launch(args: &LaunchArgs) -> Failure {
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGKILL) {
        return Failure::other("cannot end with the parent", error);
    }
    // It may have ended before the line above.
    if getppid() != Pid::from_raw(args.parent) {
        return Failure::Other("the parent has ended".into());
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Failure::Usage("no program".into());
    };
    Failure::other(program, Command::new(program).args(arguments).exec())
}

/// A process, ended when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    output: PathBuf,
    errors: PathBuf,
}

impl Process {
    /// Starts a program, with its outputs going to `FOLDER/NAME.out` and `FOLDER/NAME.err`.
    ///
    /// Must run on the main thread: the kernel ties the end of the child to the thread that started it.
    pub(crate) fn start(
        name: &str,
        folder: &Path,
        program: &Path,
        arguments: &[String],
    ) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::other(&format!("cannot start {name}"), error);
        let output = folder.join(format!("{name}.out"));
        let errors = folder.join(format!("{name}.err"));
        let itself = std::env::current_exe().map_err(failed)?;
        let child = Command::new(itself)
            .arg(VERB)
            .arg(std::process::id().to_string())
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&output).map_err(failed)?)
            .stderr(File::create(&errors).map_err(failed)?)
            // An interrupt of the terminal is for the bench, which ends its processes in order.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        Ok(Self { name: name.to_owned(), child, output, errors })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to standard output so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// What it wrote to standard error so far.
    pub(crate) fn complained(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Waits until it has ended; an error where it does not.
    pub(crate) async fn ended(&mut self, within: Duration) -> Result<(), Failure> {
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > within {
                return Err(Failure::Other(format!("{} does not end", self.name)));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// An error where it has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let said = self.said() + &self.complained();
                let lines: Vec<&str> = said.lines().collect();
                let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ");
                Err(Failure::Other(format!(
                    "{} ended by itself ({status}); its last words:\n  {last}",
                    self.name
                )))
            }
            Err(error) => Err(Failure::other(&self.name, error)),
        }
    }

    /// Ends it in order.
    pub(crate) async fn stop(mut self) {
        self.signal(Signal::SIGTERM);
        // One that does not end is killed when it is dropped.
        let _ = self.ended(STOP_WITHIN).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal(Signal::SIGTERM);
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begin.elapsed() < STOP_WITHIN {
            std::thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
