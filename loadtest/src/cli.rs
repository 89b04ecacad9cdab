//! The command line: reads it, and hands over to the verbs. Does nothing itself.

use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum, error::ErrorKind};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;

use crate::{
    bench::{self, growth, process},
    cost,
    failure::Failure,
    many, run,
};

/// Exit code for a command line that makes no sense.
const USAGE: u8 = 2;

/// Load for Holdfast and its peers, measured and judged
#[derive(Debug, Parser)]
#[command(name = "holdfast-loadtest", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::RunArgs),
    Bench(bench::BenchArgs),
    Growth(growth::GrowthArgs),
    Sessions(many::SessionsArgs),
    Silence(many::SilenceArgs),
    Cost(cost::CostArgs),
    #[command(hide = true, name = process::VERB)]
    Launch(process::LaunchArgs),
}

/// How results are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

impl Cli {
    /// Runs the verb to its end.
    pub(crate) fn run(self) -> Result<(), Failure> {
        if let Verb::Launch(args) = &self.verb {
            return Err(process::launch(args));
        }
        allow_connections();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::other("cannot start", error))?;
        match self.verb {
            Verb::Run(args) => runtime.block_on(run::run(args)),
            Verb::Bench(args) => runtime.block_on(bench::run(args)),
            Verb::Growth(args) => runtime.block_on(growth::run(args)),
            Verb::Sessions(args) => runtime.block_on(many::sessions(args)),
            Verb::Silence(args) => runtime.block_on(many::silence(args)),
            Verb::Cost(args) => cost::run(&args),
            Verb::Launch(args) => Err(process::launch(&args)),
        }
    }
}

/// Each client has a connection of its own: as many as the system lets this process have. Where it lets it have few, the
/// run says so itself.
fn allow_connections() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// What clap has to say instead of a verb: help and version on standard output, wrong usage on standard error.
pub(crate) fn answer(answer: &clap::Error) -> u8 {
    let _ = answer.print();
    match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
        _ => USAGE,
    }
}

/// Reads whole or decimal seconds, up to a day.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "write a number of seconds, like 10 or 0.5".to_owned())?;
    if !(0.0..=86_400.0).contains(&number) {
        return Err("from 0 to 86400 seconds".into());
    }
    Ok(Duration::from_secs_f64(number))
}

/// Reads a length of time in which something is to happen: as [`seconds`], and more than none.
pub(crate) fn some_seconds(text: &str) -> Result<Duration, String> {
    let length = seconds(text)?;
    if length.is_zero() { Err("more than 0 seconds, up to 86400".into()) } else { Ok(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn seconds_are_numbers_within_a_day() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("10"), Ok(Duration::from_secs(10)));
        for bad in ["", "-1", "1s", "NaN", "inf", "86401"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_time_at_all_is_no_length_of_a_run() {
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(some_seconds("0.01"), Ok(Duration::from_millis(10)));
        for bad in ["0", "0.0", "-0", "1e-12", "soon"] {
            assert!(some_seconds(bad).is_err(), "{bad}");
        }
    }
}
