//! `holdfast demo`: the whole story on a throw-away cluster of real processes, each step shown with its evidence.
//!
//! Knows how the story is told. [`stage`] owns the processes, [`web`] reads the evidence, [`worker`] is what the actors
//! of the story run, [`story`] and [`failures`] are the steps.

mod failures;
mod stage;
mod story;
mod web;
pub(crate) mod worker;

use std::time::Instant;

use clap::Args;

use self::stage::Stage;
use crate::{
    failure::{self, Ended, Failure},
    output,
};

const HELP: &str = "\
Starts three members with three lock groups, the Storage Service and worker processes on free ports of this machine, tells
the story in twelve steps in about half a minute, and takes everything down again. Each step shows what the cluster says,
and the command by which you can ask it yourself; with --keep it stays up for that until Ctrl-C.";

/// Show on a throw-away cluster what locks, leases, fencing and fail-over do
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DemoArgs {
    /// Leave the cluster running afterwards, until Ctrl-C
    #[arg(long)]
    keep: bool,
    /// First port of a block of 60 free ones; one is looked for where it is not given
    #[arg(long, value_name = "PORT")]
    base_port: Option<u16>,
}

/// What a step shows: lines of evidence, or why it does not hold.
pub(crate) type Shown = Result<(), String>;

/// One step: its title and what it does.
type Step = (&'static str, fn(&mut Stage) -> Shown);

const STEPS: [Step; 12] = [
    ("worker A opens a session of 10 s and keeps it alive", story::session),
    ("A and B ask for the lock job-x", story::two_ask),
    ("the grant is in the log, on the disks of a majority", story::on_disk),
    ("A holds with the lowest create revision, B is next in line", story::queue),
    ("C queues too, and a release wakes only one", story::one_wakes),
    ("A writes with its fencing token: accepted", story::write),
    ("A is paused past its lease: B takes over, A's late write is refused", story::stale_write),
    ("the holder is killed: its lease expires, the lock moves on", failures::holder_killed),
    ("the leading member is killed: holder, queue and sessions carry over", failures::leader_killed),
    ("three instances elect a leader, it dies, the next takes over", failures::election),
    ("leaders sit on different members: other groups do not pause", failures::other_groups),
    ("a snapshot is taken, and the metrics tell the story", failures::snapshot_and_metrics),
];

/// Tells the story. Runs on the main thread, whose end ends every process it started.
pub(crate) fn run(args: &DemoArgs) -> Ended {
    let began = Instant::now();
    let mut stage = Stage::open(args.base_port)?;
    for (at, (title, step)) in STEPS.iter().enumerate() {
        output::write(&format!("[{:>2}/{}] {title}", at + 1, STEPS.len()))?;
        match step(&mut stage) {
            Ok(()) => output::write("        ok\n")?,
            Err(why) => {
                output::write(&format!("        FAILED: {why}\n"))?;
                stage.keep_logs();
                return Err(Failure::other(format!(
                    "step {} does not show what it claims; logs: {}",
                    at + 1,
                    stage.folder().display()
                )));
            }
        }
    }
    output::write(&format!("All {} steps hold, in {:.0} s.", STEPS.len(), began.elapsed().as_secs_f64()))?;
    if args.keep {
        output::write(&format!(
            "The cluster stays up until Ctrl-C: export HOLDFAST_ENDPOINTS={}",
            stage.endpoints()
        ))?;
        stage.wait();
    }
    Ok(failure::OK)
}
