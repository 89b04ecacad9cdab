//! The command line: global options and the list of verbs. Each verb describes its own arguments.

use std::time::Duration;

use clap::{Args, Parser, Subcommand, error::ErrorKind};
use holdfast_locktable::name::Name;

use crate::{
    demo, deploy, dev,
    failure::{self, Ended},
    output::Format,
    run, say, verbs,
};

const ABOUT: &str = "Named locks, leader elections and shared partitions for distributed programs";
const LONG_ABOUT: &str = "\
Named locks, leader elections and shared partitions for distributed programs.

A cluster of members grants each lock to one session at a time. A session that falls silent longer than its TTL loses
its locks; every grant carries a fencing token that only grows, so that a late writer can be told apart.";
const AFTER_HELP: &str = "\
Start here:
  holdfast demo                                 the whole story in twelve steps
  holdfast dev                                  a local cluster, until Ctrl-C
  holdfast lock backup -- ./backup.sh           run a command while holding the lock `backup`
  holdfast locks list                           who holds what
  holdfast locks show backup                    holder, queue and history of one lock

Exit codes: 0 done, 1 failed, 2 wrong usage, 69 no member answered, 70 lock lost while the command ran,
75 lock not acquired, 77 denied, 126/127 command cannot be run / not found, otherwise the command's own.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, about = ABOUT, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Options of every verb.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// gRPC URLs of members, separated by commas; any one will do, several survive the loss of one
    /// [default: http://127.0.0.1:7611]
    #[arg(long, global = true, env = "HOLDFAST_ENDPOINTS", value_name = "URL,…", value_delimiter = ',')]
    pub endpoints: Vec<String>,
    /// Form of the answer
    #[arg(short, long, global = true, value_enum, value_name = "FORM", default_value = "table")]
    pub output: Format,
    /// How long to wait for the first answer of a member
    #[arg(long, global = true, value_name = "TIME", value_parser = duration, default_value = "5s")]
    pub timeout: Duration,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Node(verbs::node::NodeArgs),
    Dev(dev::DevArgs),
    Demo(demo::DemoArgs),
    Lock(verbs::lock::LockArgs),
    Elect(verbs::elect::ElectArgs),
    Locks(verbs::locks::LocksArgs),
    Claims(verbs::claims::ClaimsArgs),
    Sessions(verbs::sessions::SessionsArgs),
    Members(verbs::members::MembersArgs),
    Groups(verbs::groups::GroupsArgs),
    Partitions(verbs::partitions::PartitionsArgs),
    Snapshots(verbs::snapshots::SnapshotsArgs),
    Storage(verbs::storage::StorageArgs),
    Config(verbs::config::ConfigArgs),
    Health(verbs::health::HealthArgs),
    Deploy(deploy::DeployArgs),
    Completions(verbs::completions::CompletionsArgs),
    #[command(hide = true, name = run::launch::VERB)]
    Launch(run::launch::LaunchArgs),
    #[command(hide = true, name = demo::worker::VERB)]
    DemoWorker(demo::worker::WorkerArgs),
    #[command(hide = true, name = run::watchdog::VERB)]
    Watchdog,
}

impl Cli {
    /// Runs the verb to its end.
    pub(crate) fn run(self) -> Ended {
        let global = self.global;
        match self.verb {
            Verb::Node(args) => verbs::node::run(args),
            Verb::Dev(args) => dev::run(args),
            Verb::Demo(args) => demo::run(&args),
            Verb::Lock(args) => verbs::lock::run(&global, args),
            Verb::Elect(args) => verbs::elect::run(&global, args),
            Verb::Locks(args) => verbs::locks::run(&global, args),
            Verb::Claims(args) => verbs::claims::run(&global, args),
            Verb::Sessions(args) => verbs::sessions::run(&global, args),
            Verb::Members(args) => verbs::members::run(&global, args),
            Verb::Groups(args) => verbs::groups::run(&global, args),
            Verb::Partitions(args) => verbs::partitions::run(&global, args),
            Verb::Snapshots(args) => verbs::snapshots::run(&global, args),
            Verb::Storage(args) => verbs::storage::run(&global, args),
            Verb::Config(args) => verbs::config::run(&global, args),
            Verb::Health(args) => verbs::health::run(&global, args),
            Verb::Deploy(args) => deploy::run(&global, args),
            Verb::Completions(args) => verbs::completions::run(&args),
            Verb::Launch(args) => run::launch::run(args),
            Verb::DemoWorker(args) => demo::worker::run(&global, args),
            Verb::Watchdog => run::watchdog::run(),
        }
    }
}

/// What clap has to say instead of a verb: help and version on standard output, wrong usage on standard error.
pub(crate) fn answer(answer: &clap::Error) -> u8 {
    match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = answer.print();
            failure::OK
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = answer.print();
            failure::USAGE
        }
        _ => {
            let text = answer.render().to_string();
            say::line(text.strip_prefix("error: ").unwrap_or(&text));
            failure::USAGE
        }
    }
}

/// Reads `30s`, `1m 30s`, `250ms`; a plain number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(seconds.into()));
    }
    humantime::parse_duration(text).map_err(|e| format!("{e}; write for example 250ms, 30s or 1m30s"))
}

/// Reads the name of a lock, an election or a claim.
pub(crate) fn name(text: &str) -> Result<String, String> {
    Name::lock(text).map(|name| name.text().to_owned()).map_err(|e| e.to_string())
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
    fn durations_are_text_and_plain_numbers_are_seconds() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("4"), Ok(Duration::from_secs(4)));
        assert!(duration("soon").is_err());
        assert!(duration("-1").is_err());
    }
}
