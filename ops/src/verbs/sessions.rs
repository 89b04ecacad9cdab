//! `holdfast sessions`: who is connected, what they hold, and ending one.

use clap::{Args, Subcommand};
use holdfast_client::{SessionId, SessionInfo};

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended, Failure},
    output::{self, Table},
    say, times,
};

const HELP: &str = "\
Examples:
  holdfast sessions list
  holdfast sessions show 3f2a91c07d5e8b16       what it holds and waits for
  holdfast sessions end 3f2a91c07d5e8b16 --reason 'host burnt down'";

/// List, show and end sessions
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List all sessions
    List,
    /// Show one session and the queues it stands in
    Show {
        /// The session, in hexadecimal
        id: String,
    },
    /// End a session: all its locks come free at once, and only fencing protects what it still writes to
    End {
        /// The session, in hexadecimal
        id: String,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT", default_value = "ended by an operator")]
        reason: String,
    },
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: SessionsArgs) -> Ended {
    let client = cluster::client(global)?;
    let admin = client.admin();
    cluster::block_on(async {
        match args.verb {
            Verb::List => {
                let page = admin.sessions().await.map_err(|e| failed(&e))?;
                cluster::warn_incomplete(&page.unavailable_groups);
                output::print(global.output, &page, |page| table(&page.sessions))?;
            }
            Verb::Show { id } => {
                let session = admin.session(parse(&id)?).await.map_err(|e| failed(&e))?;
                output::print(global.output, &session, in_words)?;
            }
            Verb::End { id, reason } => {
                admin.end_session(parse(&id)?, &reason, &cluster::actor()).await.map_err(|e| failed(&e))?;
                say::line(&format!("session {id} has ended; its locks are free"));
            }
        }
        Ok(failure::OK)
    })
}

fn parse(id: &str) -> Result<SessionId, Failure> {
    id.parse().map_err(|e| Failure::usage(format!("{e}")))
}

fn table(sessions: &[SessionInfo]) -> String {
    let header = ["SESSION", "WHO", "TTL", "LEFT", "OPEN FOR", "HOLDS", "WAITS", "HOME"];
    let mut table = Table::new(&header, "no sessions");
    for session in sessions {
        let holds = session.locks.iter().filter(|lock| lock.held).count();
        table.row([
            session.session.to_string(),
            super::about(&session.metadata),
            times::length(session.ttl_ms),
            session.ttl_left_ms.map_or_else(String::new, times::length),
            times::length(session.open_ms),
            holds.to_string(),
            (session.locks.len() - holds).to_string(),
            session.home.to_string(),
        ]);
    }
    table.text()
}

fn in_words(session: &SessionInfo) -> String {
    let mut locks = Table::new(&["NAME", "KIND", "TOKEN", "STATE"], "it stands in no queue");
    for lock in &session.locks {
        locks.row([
            lock.name.clone(),
            if lock.election { "election" } else { "lock" }.into(),
            lock.token.to_string(),
            if lock.held { "holds" } else { "waits" }.into(),
        ]);
    }
    format!("{}\n\n{}", table(std::slice::from_ref(session)), locks.text())
}
