//! `holdfast deploy`: from a list of hosts to a cluster. The plan is printed, or written as files; nothing is started.
//!
//! [`members_file`]: the list, refused whole where anything in it is wrong. [`plan`]: what follows from it. [`show`]: the plan
//! for people. [`write`]: the plan as files.

mod commands;
mod members_file;
mod places;
mod plan;
mod show;
mod write;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use self::{members_file::MembersFile, plan::Plan};
use crate::{
    cli::Global,
    failure::{self, Ended},
    output, say,
};

const HELP: &str = "\
The members file is TOML; only the hosts have no default:

  cluster = \"prod\"          # members of differently named clusters refuse each other
  lock_groups = 4           # 1 to 32
  replicas = 3              # members that carry each lock group
  insecure = true           # needed beyond loopback: whoever reaches a member may do anything
  data_dir = \"/var/lib/holdfast\"
  [ports]                   # http 7610, grpc 7611, peer 7612
  [snapshots]               # as in a member's configuration; so are [raft] and [log]
  [[members]]
  id = 1
  host = \"10.0.0.1\"         # as the other members and the clients reach it
  zone = \"a\"                # what fails together; say it for all or for none
                            # also: name, listen, data_dir, and http, grpc, peer where a port differs

A cluster has 3 to 9 members. Nothing is started and no host is asked: the plan follows from the file alone.

Examples:
  holdfast deploy plan members.toml
  holdfast deploy plan members.toml --out ./prod          a folder per member: configuration and systemd unit
  holdfast deploy plan members.toml -o json | jq .checks";

/// Plan the members of a cluster
#[derive(Debug, Args)]
pub(crate) struct DeployArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print each member's configuration, the order in which to start them, and what to check
    #[command(after_help = HELP)]
    Plan {
        /// The members file
        #[arg(value_name = "MEMBERS-FILE")]
        file: PathBuf,
        /// Write it into this folder, which must be new or empty: per member its configuration and systemd unit
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// Plans, prints, writes.
pub(crate) fn run(global: &Global, args: DeployArgs) -> Ended {
    let Verb::Plan { file, out } = args.verb;
    let plan = Plan::of(&MembersFile::read(&file)?)?;
    if let Some(folder) = &out {
        write::all(&plan, folder)?;
    }
    output::print(global.output, &plan, show::text)?;
    for warning in &plan.warnings {
        say::line(&format!("warning: {warning}"));
    }
    if let Some(folder) = out {
        say::line(&format!("written to {}", folder.display()));
    }
    Ok(failure::OK)
}

#[cfg(test)]
mod tests;
