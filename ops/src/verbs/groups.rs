//! `holdfast groups`: the Raft groups, where they are, their leaders and how far they are; and changing that.

use clap::{Args, Subcommand};
use holdfast_client::{Client, GroupDetail, GroupView, VoterView};

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended, Failure},
    output::{self, Table},
    say,
};

const HELP: &str = "\
Examples:
  holdfast groups list
  holdfast groups show 2                                  where it is, and what goes on with it and why
  holdfast groups add --count 2                           two more groups, which own nothing yet
  holdfast partitions spread '' --over 1,2,3,4 --yes      give them their share
  holdfast groups transfer-leader 2 --to 5

While there are more members than replicas, new groups go to the members that carry the fewest.";

/// List, show and add groups, and say who leads them
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct GroupsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List all groups; 0 is the meta group
    List,
    /// Show one group: where it is, how far its members are, what is under way and why
    Show {
        /// Its number
        group: u32,
    },
    /// Add lock groups, which own nothing yet
    Add {
        /// How many
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
        count: u32,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT", default_value = "asked for by an operator")]
        reason: String,
    },
    /// Let another of its members lead a group; calls wait for the moment without leader
    TransferLeader {
        /// Its number
        group: u32,
        /// The member
        #[arg(long, value_name = "MEMBER")]
        to: u64,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT", default_value = "asked for by an operator")]
        reason: String,
    },
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: GroupsArgs) -> Ended {
    let client = cluster::client(global)?;
    cluster::block_on(async {
        match args.verb {
            Verb::List => {
                let groups = client.admin().groups().await.map_err(|e| failed(&e))?;
                output::print(global.output, &groups, |groups| table(groups))?;
            }
            Verb::Show { group } => show(global, &client, group).await?,
            Verb::Add { count, reason } => add(global, &client, count, &reason).await?,
            Verb::TransferLeader { group, to, reason } => {
                let moved = client.admin().transfer_leader(group, to, &reason, &cluster::actor()).await;
                moved.map_err(|e| failed(&e))?;
                say::line(&format!("member {to} leads group {group}"));
            }
        }
        Ok(failure::OK)
    })
}

async fn add(global: &Global, client: &Client, count: u32, reason: &str) -> Result<(), Failure> {
    let added = client.admin().add_groups(count, reason, &cluster::actor()).await.map_err(|e| failed(&e))?;
    let all = client.admin().groups().await.map_err(|e| failed(&e))?;
    let over: Vec<String> =
        all.iter().filter(|group| group.group > 0).map(|group| group.group.to_string()).collect();
    let new: Vec<GroupView> = all.into_iter().filter(|group| added.contains(&group.group)).collect();
    output::print(global.output, &new, |groups| table(groups))?;
    say::line(&format!(
        "the new groups own nothing yet; give them a share with: holdfast partitions spread '' --over {}",
        over.join(",")
    ));
    Ok(())
}

async fn show(global: &Global, client: &Client, number: u32) -> Result<(), Failure> {
    let group = client.admin().group(number).await.map_err(|e| failed(&e))?;
    output::print(global.output, &group, detail)
}

fn detail(group: &GroupDetail) -> String {
    let view = &group.view;
    let mut members = Table::new(&["MEMBER", "PART", "STORED UP TO"], "no members");
    let parts = view.voters.iter().map(|voter| (voter, "voter"));
    for (VoterView { member, matched_index }, part) in
        parts.chain(view.learners.iter().map(|l| (l, "learner")))
    {
        let part = if view.leader == Some(*member) { "leader" } else { part };
        let stored = matched_index.map_or_else(|| "only its leader knows".into(), |index| index.to_string());
        members.row([member.to_string(), part.to_owned(), stored]);
    }
    let mut lines = vec![table(std::slice::from_ref(view)), String::new(), members.text()];
    if !view.replicas.is_empty() {
        lines.push(format!("\nto be on members {}", listed(&view.replicas)));
    }
    if !group.leaving.is_empty() {
        lines.push(format!("still carried by {}, to be carried by it no more", listed(&group.leaving)));
    }
    lines.extend(group.under_way.iter().map(|what| format!("under way: {what}")));
    lines.extend(group.why.iter().map(|why| format!("because: {why}")));
    lines.extend(group.entries_per_s.iter().map(|rate| format!("load: {rate:.1} entries per second")));
    lines.join("\n")
}

fn listed(members: &[u64]) -> String {
    members.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn table(groups: &[GroupView]) -> String {
    let header = [
        "GROUP", "LEADER", "TERM", "APPLIED", "LAST LOG", "REVISION", "REPLICAS", "VOTERS", "HELD",
        "WAITING", "SESSIONS",
    ];
    let mut table = Table::new(&header, "no groups");
    for group in groups {
        let voters: Vec<u64> = group.voters.iter().map(|voter| voter.member).collect();
        table.row([
            if group.group == 0 { "0 (meta)".into() } else { group.group.to_string() },
            group.leader.map_or_else(|| "none".into(), |leader| leader.to_string()),
            group.term.to_string(),
            group.applied_index.to_string(),
            group.last_log_index.to_string(),
            group.revision.to_string(),
            if group.replicas.is_empty() { "-".into() } else { listed(&group.replicas) },
            listed(&voters),
            group.held.to_string(),
            group.waiting.to_string(),
            group.sessions.to_string(),
        ]);
    }
    table.text()
}
