//! `holdfast claims`: partitions that workers share: who has which, taking part, and sending a worker away.

mod join;

use clap::{Args, Subcommand};
use holdfast_client::{ClaimDetail, ClaimPage, Client, ListClaims, SessionId};

use crate::{
    cli::{self, Global},
    cluster::{self, failed},
    failure::{self, Ended, Failure},
    output::{self, Table},
    say, times,
};

/// Claims that are asked for at once.
const PAGE: u32 = 1_000;

const HELP: &str = "\
A claim is a name with a fixed number of partitions that the live sessions taking part in it share by weight. Each
partition has one owner, and a fencing token that grows with each owner. One that is to move is revoked first, and given
to the next only once its owner has stopped, left, or is gone for longer than its TTL.

Examples:
  holdfast claims list ingest/                  every claim whose name begins with ingest/
  holdfast claims show ingest/eu                its members, and who has which partition
  holdfast claims join ingest/eu --partitions 64          take part until Ctrl-C: a line per change
  holdfast claims join ingest/eu --partitions 64 --weight 2 -o json
  holdfast claims drain ingest/eu --session 3f2a91c07d5e8b16      it gives everything back, one by one, and goes";

/// List, show, join and drain claims
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ClaimsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List claims that somebody takes part in, in name order
    List {
        /// Only names that begin with it
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Show one claim with its members and the owners of its partitions
    Show {
        /// The claim
        name: String,
    },
    Join(join::JoinArgs),
    /// Have a member give everything back, partition by partition, and go
    Drain {
        /// The claim
        #[arg(value_parser = cli::name)]
        name: String,
        /// The member's session, in hexadecimal, as `claims show` says
        #[arg(long, value_name = "ID")]
        session: String,
    },
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: ClaimsArgs) -> Ended {
    cluster::block_on(async {
        let client = cluster::client(global)?;
        match args.verb {
            Verb::List { prefix } => list(global, &client, prefix).await,
            Verb::Show { name } => {
                let detail = client.admin().claim(&name).await.map_err(|e| failed(&e))?;
                output::print(global.output, &detail, in_words)?;
                Ok(failure::OK)
            }
            Verb::Join(args) => join::run(global, &client, args).await,
            Verb::Drain { name, session } => {
                let id: SessionId = session.parse().map_err(|e| Failure::usage(format!("{e}")))?;
                client.admin().drain_claim(&name, id).await.map_err(|e| failed(&e))?;
                say::line(&format!("session {id} gives back what it has of {name}, and goes"));
                Ok(failure::OK)
            }
        }
    })
}

async fn list(global: &Global, client: &Client, prefix: String) -> Ended {
    let mut all = ClaimPage::default();
    let mut query = ListClaims { prefix, limit: PAGE, cursor: None };
    loop {
        let page = client.admin().claims(&query).await.map_err(|e| failed(&e))?;
        all.claims.extend(page.claims);
        all.unavailable_groups.extend(page.unavailable_groups);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    all.unavailable_groups.sort_unstable();
    all.unavailable_groups.dedup();
    cluster::warn_incomplete(&all.unavailable_groups);
    output::print(global.output, &all, |all| {
        let mut table =
            Table::new(&["NAME", "PARTITIONS", "MEMBERS", "OWNED", "REVOKING", "GROUP"], "no claims");
        for claim in &all.claims {
            table.row([
                claim.name.clone(),
                claim.partitions.to_string(),
                claim.members.to_string(),
                claim.owned.to_string(),
                claim.revoking.to_string(),
                claim.group.to_string(),
            ]);
        }
        table.text()
    })?;
    Ok(failure::OK)
}

/// One claim for people: its members, then its partitions.
fn in_words(detail: &ClaimDetail) -> String {
    let mut members =
        Table::new(&["SESSION", "WHO", "WEIGHT", "PARTITIONS", "SINCE", "STATE"], "nobody takes part");
    for member in &detail.members {
        members.row([
            member.session.to_string(),
            super::about(&member.metadata),
            member.weight.to_string(),
            member.owned.to_string(),
            times::length(member.joined_ms),
            if member.draining { "draining" } else { "" }.into(),
        ]);
    }
    let mut owners = Table::new(&["PARTITION", "SESSION", "TOKEN", "STATE"], "nobody has a partition");
    for owner in &detail.owners {
        owners.row([
            owner.partition.to_string(),
            owner.session.to_string(),
            owner.token.to_string(),
            if owner.revoking { "revoked" } else { "" }.into(),
        ]);
    }
    let claim = &detail.claim;
    let facts = format!("{}: {} partitions in group {}", claim.name, claim.partitions, claim.group);
    format!("{facts}\n\n{}\n\n{}", members.text(), owners.text())
}
