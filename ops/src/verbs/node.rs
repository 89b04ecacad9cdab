//! `holdfast node`: one member, until a signal or a fault ends it.

use clap::Args;

use super::config::{refusal, report_warnings};
use crate::{
    failure::{Ended, Failure},
    logging, member,
    run::launch::die_with_parent,
    settings::{Settings, SettingsArgs},
};

const HELP: &str = "\
The member ends cleanly on SIGTERM and SIGINT. Check its configuration first with `holdfast config check`.
Under systemd (Type=notify) it says when it serves, what keeps it from serving, and, while all of it answers, that it
lives (WatchdogSec); `ops/deploy` has a unit.

Examples:
  holdfast node --config /etc/holdfast/member.toml
  HOLDFAST__MEMBER=2 holdfast node --config member.toml --set log.format=json";

/// Run one member of a cluster
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// End as soon as this process, the direct parent, ends in any way
    #[arg(long, hide = true, value_name = "PID")]
    parent_pid: Option<i32>,
}

/// Runs the member to its end.
pub(crate) fn run(args: NodeArgs) -> Ended {
    if let Some(parent) = args.parent_pid {
        die_with_parent(parent)?;
    }
    let settings = Settings::load(&args.settings);
    if settings.is_refused() {
        return Err(Failure::other(refusal(&settings)));
    }
    report_warnings(&settings);
    logging::start(&settings.config.log)?;
    member::serve(settings.config)
}
