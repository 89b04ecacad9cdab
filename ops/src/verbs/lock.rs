//! `holdfast lock`: runs a command while holding a lock.

use std::{collections::BTreeMap, ffi::OsString, path::Path};

use clap::Args;

use super::hold::{HoldArgs, Patience};
use crate::{
    cli::{self, Global},
    cluster,
    failure::Ended,
};

const HELP: &str = "\
The command finds in its environment:
  HOLDFAST_LOCK      the lock's name
  HOLDFAST_TOKEN     the fencing token of this hold: hand it to whatever the lock protects
  HOLDFAST_SESSION   the session that holds

Exit codes: the command's own (128 + n where signal n killed it); 75 (or -E) the lock was not granted; 70 the lock was
lost and the command was ended; 69 no member answered; 126/127 the command cannot be run / was not found; 128 + n
signal n ended the wait, and the command was never started.

The command and everything it starts (its process group) is gone before the lock is given to anybody else: also when
members cannot be reached any more, and when this process is killed. Signals are passed on to it.

Examples:
  holdfast lock backup -- ./backup.sh
  holdfast lock deploy/web --try -- make deploy          give up at once where somebody deploys already
  holdfast lock report --wait 10m -E 0 -- ./report.sh    no failure where it stays busy
  holdfast lock db -- sh -c 'psql -c \"select fence($HOLDFAST_TOKEN)\" && ./migrate'";

/// Run a command while holding a lock
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct LockArgs {
    /// The lock
    #[arg(value_parser = cli::name)]
    name: String,
    #[command(flatten)]
    hold: HoldArgs,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Gets the lock, runs the command, releases.
pub(crate) fn run(global: &Global, args: LockArgs) -> Ended {
    cluster::block_on(async {
        let ask = |session: holdfast_client::Session, patience| {
            let lock = session.lock(args.name.as_str());
            async move {
                match patience {
                    Patience::Try => lock.try_acquire().await,
                    Patience::AtMost(limit) => lock.acquire_timeout(limit).await,
                    Patience::Endless => lock.acquire().await,
                }
            }
        };
        let held = args.hold.get(global, &label(&args.command), ask).await?;
        let environment = BTreeMap::from([
            ("HOLDFAST_LOCK", args.name.clone()),
            ("HOLDFAST_TOKEN", held.hold.token().to_string()),
            ("HOLDFAST_SESSION", held.hold.session_id().to_string()),
        ]);
        held.run(&args.command, environment).await
    })
}

/// What operators see of a command: its name.
pub(crate) fn label(command: &[OsString]) -> String {
    let name = command.first().map(Path::new).and_then(Path::file_name);
    name.map_or_else(|| "holdfast".into(), |name| name.to_string_lossy().chars().take(64).collect())
}
