//! `holdfast config`: what a member would start with, and what is wrong with it.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use holdfast_node::config::Fault;
use serde::Serialize;

use crate::{
    cli::Global,
    failure::{self, Ended, Failure},
    output::{self, Table},
    say,
    settings::{Settings, SettingsArgs},
};

const HELP: &str = "\
Values are looked up in this order, later ones win: built in, the file, environment variables
(HOLDFAST__RAFT__HEARTBEAT_INTERVAL=200ms sets raft.heartbeat_interval), --set.

Examples:
  holdfast config check --config /etc/holdfast/member.toml
  holdfast config explain --config member.toml --set log.level=debug -o json";

/// Check a member's configuration, or show where each value comes from
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Report everything that is wrong, all at once; exit 1 where a member would refuse to start
    Check(SettingsArgs),
    /// Show every value in effect and where it comes from
    Explain(SettingsArgs),
}

#[derive(Serialize)]
struct Checked<'a> {
    ok: bool,
    faults: &'a [Fault],
}

#[derive(Serialize)]
struct Explained {
    key: String,
    value: String,
    source: String,
}

/// Checks or explains.
pub(crate) fn run(global: &Global, args: ConfigArgs) -> Ended {
    match args.verb {
        Verb::Check(args) => check(global, &Settings::load(&args)),
        Verb::Explain(args) => explain(global, &Settings::load(&args)),
    }
}

fn check(global: &Global, settings: &Settings) -> Ended {
    let checked = Checked { ok: !settings.is_refused(), faults: &settings.faults };
    output::print(global.output, &checked, |checked| {
        let mut table = Table::new(&["SEVERITY", "SETTING", "WHAT IS WRONG"], "the configuration is fine");
        for fault in checked.faults {
            let severity = if fault.is_error() { "error" } else { "warning" };
            table.row([severity.into(), fault.key.clone(), fault.message.clone()]);
        }
        table.text()
    })?;
    match settings.faults.iter().filter(|fault| fault.is_error()).count() {
        0 => Ok(failure::OK),
        1 => Err(Failure::other("a member would refuse to start: 1 fault")),
        n => Err(Failure::other(format!("a member would refuse to start: {n} faults"))),
    }
}

fn explain(global: &Global, settings: &Settings) -> Ended {
    let explain = settings.explain().into_iter();
    let rows: Vec<_> =
        explain.map(|(key, value, source)| Explained { key, value, source: source.to_string() }).collect();
    output::print(global.output, &rows, |rows| {
        let mut table = Table::new(&["SETTING", "VALUE", "SOURCE"], "no settings");
        for row in rows {
            table.row([row.key.clone(), row.value.clone(), row.source.clone()]);
        }
        table.text()
    })?;
    if settings.is_refused() {
        return Err(Failure::other(refusal(settings)));
    }
    report_warnings(settings);
    Ok(failure::OK)
}

/// Everything a member refuses to start over, one line each.
pub(crate) fn refusal(settings: &Settings) -> String {
    let mut text = String::from("the configuration is refused:");
    for fault in settings.faults.iter().filter(|fault| fault.is_error()) {
        let _ = write!(text, "\n  {fault}");
    }
    text
}

/// Says what is unwise but accepted.
pub(crate) fn report_warnings(settings: &Settings) {
    for fault in settings.faults.iter().filter(|fault| !fault.is_error()) {
        say::line(&format!("warning: {fault}"));
    }
}
