//! `holdfast groups`: the Raft groups, their leaders and how far they are.

use clap::{Args, Subcommand};
use holdfast_client::{Client, GroupView};

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended, Failure},
    output::{self, Table},
};

/// List and show groups
#[derive(Debug, Args)]
pub(crate) struct GroupsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List all groups; 0 is the meta group
    List,
    /// Show one group and how far its voters are
    Show {
        /// Its number
        group: u32,
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
        }
        Ok(failure::OK)
    })
}

async fn show(global: &Global, client: &Client, number: u32) -> Result<(), Failure> {
    let groups = client.admin().groups().await.map_err(|e| failed(&e))?;
    let last = groups.iter().map(|group| group.group).max().unwrap_or(0);
    let found = groups.into_iter().find(|group| group.group == number);
    let group =
        found.ok_or_else(|| Failure::other(format!("there is no group {number}; groups are 0 to {last}")))?;
    output::print(global.output, &group, |group| {
        let mut voters = Table::new(&["VOTER", "STORED UP TO"], "no voters");
        for voter in &group.voters {
            let stored =
                voter.matched_index.map_or_else(|| "only its leader knows".into(), |i| i.to_string());
            voters.row([voter.member.to_string(), stored]);
        }
        format!("{}\n\n{}", table(std::slice::from_ref(group)), voters.text())
    })
}

fn table(groups: &[GroupView]) -> String {
    let header = [
        "GROUP", "LEADER", "TERM", "APPLIED", "LAST LOG", "REVISION", "VOTERS", "HELD", "WAITING", "SESSIONS",
    ];
    let mut table = Table::new(&header, "no groups");
    for group in groups {
        let voters: Vec<String> = group.voters.iter().map(|voter| voter.member.to_string()).collect();
        table.row([
            if group.group == 0 { "0 (meta)".into() } else { group.group.to_string() },
            group.leader.map_or_else(|| "none".into(), |leader| leader.to_string()),
            group.term.to_string(),
            group.applied_index.to_string(),
            group.last_log_index.to_string(),
            group.revision.to_string(),
            voters.join(" "),
            group.held.to_string(),
            group.waiting.to_string(),
            group.sessions.to_string(),
        ]);
    }
    table.text()
}
