//! `holdfast elect`: campaigns in an election, or observes one.

use std::{collections::BTreeMap, ffi::OsString};

use clap::Args;
use futures::StreamExt as _;
use holdfast_client::LeaderView;
use nix::unistd::gethostname;
use serde::Serialize;

use super::{
    hold::{HoldArgs, Holding, Patience},
    lock::label,
};
use crate::{
    cli::{self, Global},
    cluster::{self, failed},
    failure::{self, Ended, Failure, Kind},
    output,
    run::{signals::ends, supervise::Lease},
    say,
};

const HELP: &str = "\
With a command, it runs while this candidate leads, with HOLDFAST_ELECTION, HOLDFAST_TOKEN and HOLDFAST_SESSION in its
environment; all that `holdfast lock --help` says of commands, signals and exit codes holds here too.
Without one, a line on standard output tells when this candidate leads, and it leads until Ctrl-C (exit 0) or until it
loses the leadership (exit 70).

Examples:
  holdfast elect scheduler -- ./scheduler
  holdfast elect scheduler 10.0.0.7:8080        lead, showing this address to observers
  holdfast elect scheduler --observe            a line per change of leader
  holdfast elect scheduler --observe -o json    one JSON object per change";

/// Campaign in a leader election and run a command while leading, or observe it
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ElectArgs {
    /// The election
    #[arg(value_parser = cli::name)]
    name: String,
    /// What observers see of this candidate while it leads; host and process id where it is not given
    value: Option<String>,
    /// Only watch: print the leader now and at each change, until Ctrl-C
    #[arg(long, conflicts_with_all = ["value", "command", "wait", "try"])]
    observe: bool,
    #[command(flatten)]
    hold: HoldArgs,
    /// The command and its arguments, after `--`
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Serialize)]
struct Change {
    election: String,
    leader: Option<LeaderView>,
}

#[derive(Serialize)]
struct Leading {
    election: String,
    session: String,
    token: u64,
    value: String,
}

/// Campaigns and leads, or observes.
pub(crate) fn run(global: &Global, args: ElectArgs) -> Ended {
    cluster::block_on(async {
        if args.observe {
            return observe(global, args.name).await;
        }
        let value = args.value.unwrap_or_else(default_value);
        let ask = |session: holdfast_client::Session, patience| {
            let election = session.election(args.name.as_str());
            let value = value.clone();
            async move {
                match patience {
                    Patience::Try => election.try_campaign(value).await,
                    Patience::AtMost(limit) => election.campaign_timeout(value, limit).await,
                    Patience::Endless => election.campaign(value).await,
                }
            }
        };
        let held = args.hold.get(global, &label(&args.command), ask).await?;
        if args.command.is_empty() {
            let leading = Leading {
                election: args.name,
                session: held.hold.session_id().to_string(),
                token: held.hold.token().get(),
                value,
            };
            return lead(global, held, leading).await;
        }
        let environment = BTreeMap::from([
            ("HOLDFAST_ELECTION", args.name.clone()),
            ("HOLDFAST_TOKEN", held.hold.token().to_string()),
            ("HOLDFAST_SESSION", held.hold.session_id().to_string()),
        ]);
        held.run(&args.command, environment).await
    })
}

/// Leads without a command.
async fn lead(global: &Global, mut held: Holding<holdfast_client::Leadership>, leading: Leading) -> Ended {
    output::print_next(global.output, &leading, |l| {
        format!("leading {} with token {}, session {}, value {}", l.election, l.token, l.session, l.value)
    })?;
    loop {
        tokio::select! {
            biased;
            signal = held.signals.next() => if ends(signal) {
                held.give_back().await;
                say::line("resigned");
                return Ok(failure::OK);
            },
            why = Lease::lost(&held.hold) => return Err(Failure::new(Kind::LockLost, why)),
        }
    }
}

async fn observe(global: &Global, election: String) -> Ended {
    let client = cluster::client(global)?;
    // Observing goes on over outages; this verb should say when there is nobody at all.
    client.admin().leader(&election).await.map_err(|e| failed(&e))?;
    let mut leaders = client.observe(election.clone());
    while let Some(leader) = leaders.next().await {
        let change = Change { election: election.clone(), leader: leader.map_err(|e| failed(&e))? };
        output::print_next(global.output, &change, |change| match &change.leader {
            None => format!("{}: nobody leads", change.election),
            Some(leader) => format!(
                "{}: session {} leads with token {}, value {}",
                change.election,
                leader.session,
                leader.token,
                String::from_utf8_lossy(&leader.value)
            ),
        })?;
    }
    Err(Failure::other("observing has ended"))
}

fn default_value() -> String {
    let host = gethostname().ok().and_then(|host| host.into_string().ok()).unwrap_or_default();
    format!("{host}:{}", std::process::id())
}
