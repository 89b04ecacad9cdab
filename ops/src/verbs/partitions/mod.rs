//! `holdfast partitions`: which group owns which names, and changing that.
//!
//! [`show`]: the map. [`change`]: planning, asking back and following a change. [`planner`]: what should change, and when that is
//! done without asking. [`words`]: how plans and changes are shown.

mod change;
mod planner;
mod show;
mod words;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use holdfast_client::PartitionRequest;

use self::change::How;
use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended},
    output, say,
};

const HELP: &str = "\
Examples:
  holdfast partitions show
  holdfast partitions split jobs/ --into 1,2,3,4 --dry-run     what would move, and how much is in it
  holdfast partitions split jobs/ --into 1,2,3,4 --yes
  holdfast partitions move jobs/eu/ --to 2
  holdfast partitions isolate jobs/hot --to 4                  a single hot lock
  holdfast partitions merge jobs/ --to 1
  holdfast partitions changes                                  what is under way, and what was before
  holdfast partitions plan                                     what is hot, and what the planner would do about it
  holdfast partitions plan --apply                             and do it
  holdfast partitions policy --mode auto --veto billing/       let the planner do it, but for one prefix

Holders, queues, waiting calls and tokens stay what they are while a range moves. Each range pauses for some ten
milliseconds; where that would be more than 3 seconds, its move is given up and tried again.";

/// Show the partition map, and split, move, merge or pin prefixes
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct PartitionsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show how names are spread over groups; the rule with the longest matching prefix counts
    Show,
    /// Show the change under way and the last ones before it
    Changes,
    /// Show what is hot and what the planner would do, or have it done
    Plan(planner::PlanArgs),
    /// Show or change when the planner acts
    Policy(planner::PolicyArgs),
    /// Spread what begins with a prefix over groups
    Split {
        /// The prefix; empty for all names
        prefix: String,
        /// The groups, at least two
        #[arg(long, value_name = "G,G,…", value_delimiter = ',', required = true)]
        into: Vec<u32>,
        /// Segments after the prefix that stand together
        #[arg(long, value_name = "N", default_value_t = 1)]
        depth: u16,
        /// What computes the table: hash, rendezvous, range, or one that the members were built with
        #[arg(long, value_name = "NAME", default_value = "hash")]
        strategy: String,
        /// A setting of the strategy; may be given again
        #[arg(long = "param", value_name = "KEY=VALUE", value_parser = param)]
        params: Vec<(String, String)>,
        #[command(flatten)]
        how: How,
    },
    /// Bring what begins with a prefix to one group
    Move {
        /// The prefix
        prefix: String,
        /// The group
        #[arg(long, value_name = "G")]
        to: u32,
        #[command(flatten)]
        how: How,
    },
    /// Take the rule of a prefix out, so that its names go back to where the next shorter prefix puts them
    Merge {
        /// The prefix
        prefix: String,
        /// All of it to this group instead
        #[arg(long, value_name = "G")]
        to: Option<u32>,
        #[command(flatten)]
        how: How,
    },
    /// Keep a prefix in one group until it is unpinned
    Pin {
        /// The prefix
        prefix: String,
        /// The group; where it is now if it is not given
        #[arg(long, value_name = "G")]
        to: Option<u32>,
        #[command(flatten)]
        how: How,
    },
    /// Lift a pin; moves nothing
    Unpin {
        /// The prefix
        prefix: String,
        #[command(flatten)]
        how: How,
    },
    /// Bring a single hot lock or election to a group
    Isolate {
        /// Its name
        name: String,
        /// The group
        #[arg(long, value_name = "G")]
        to: u32,
        #[command(flatten)]
        how: How,
    },
    /// Let the strategy of a prefix spread it over these groups: to fill a new group, or to empty one
    Spread {
        /// The prefix of the rule; empty for the one of all names
        prefix: String,
        /// The groups that may own some of it afterwards
        #[arg(long, value_name = "G,G,…", value_delimiter = ',', required = true)]
        over: Vec<u32>,
        #[command(flatten)]
        how: How,
    },
    /// Stop a change where it is; what it has moved stays moved
    Stop {
        /// Its number
        change: u64,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT", default_value = "stopped by an operator")]
        reason: String,
    },
}

fn param(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is no KEY=VALUE"))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Asks, shows; changes what it is told to.
pub(crate) fn run(global: &Global, args: PartitionsArgs) -> Ended {
    let client = cluster::client(global)?;
    let admin = client.admin();
    cluster::block_on(async {
        let (request, how) = match args.verb {
            Verb::Show => {
                let map = admin.partitions().await.map_err(|e| failed(&e))?;
                output::print(global.output, &map, show::in_words)?;
                return Ok(failure::OK);
            }
            Verb::Changes => {
                let changes = admin.partition_changes().await.map_err(|e| failed(&e))?;
                output::print(global.output, &changes, words::changes)?;
                return Ok(failure::OK);
            }
            Verb::Plan(args) => return planner::plan(global, &admin, args).await,
            Verb::Policy(args) => return planner::policy(global, &admin, args).await,
            Verb::Stop { change, reason } => {
                let stopped = admin.stop_partition_change(change, &reason, &cluster::actor()).await;
                stopped.map_err(|e| failed(&e))?;
                say::line(&format!("change {change} stops; what it has moved stays moved"));
                return Ok(failure::OK);
            }
            Verb::Split { prefix, into, depth, strategy, params, how } => {
                let params: BTreeMap<_, _> = params.into_iter().collect();
                (PartitionRequest::Split { prefix, into, depth, strategy, params }, how)
            }
            Verb::Move { prefix, to, how } => (PartitionRequest::Move { prefix, to }, how),
            Verb::Merge { prefix, to, how } => (PartitionRequest::Merge { prefix, to }, how),
            Verb::Pin { prefix, to, how } => (PartitionRequest::Pin { prefix, to }, how),
            Verb::Unpin { prefix, how } => (PartitionRequest::Unpin { prefix }, how),
            Verb::Isolate { name, to, how } => (PartitionRequest::Isolate { name, to }, how),
            Verb::Spread { prefix, over, how } => (PartitionRequest::Spread { prefix, over }, how),
        };
        change::carry_out(global, &admin, request, &how).await
    })
}
