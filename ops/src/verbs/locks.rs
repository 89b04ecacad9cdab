//! `holdfast locks`: who holds what, who waits, and taking a lock away.

use clap::{Args, Subcommand};
use futures::StreamExt as _;
use holdfast_client::{
    Client, HolderView, Kind, ListLocks, LockDetail, LockPage, Token, WatchEvent, WatchOptions,
};
use serde::Serialize;

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended, Failure},
    output::{self, Table},
    say, times,
};

/// Locks that are asked for at once.
const PAGE: u32 = 1_000;

const HELP: &str = "\
Examples:
  holdfast locks list jobs/                     every lock whose name begins with jobs/
  holdfast locks show jobs/nightly              its holder, its queue, what happened to it
  holdfast locks watch jobs/ -o json            one line per change
  holdfast locks release jobs/nightly --token 42 --reason 'host burnt down' --now";

/// List, show, watch and forcibly release locks
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct LocksArgs {
    #[command(subcommand)]
    verb: Verb,
    /// Elections instead of locks
    #[arg(long, global = true)]
    elections: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List locks that are held or waited for, in name order
    List {
        /// Only names that begin with it
        #[arg(default_value = "")]
        prefix: String,
        /// At most this many
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Show one lock with its queue and history
    Show {
        /// The lock
        name: String,
    },
    /// Take a lock from its holder
    Release(ReleaseArgs),
    /// Print a line per change, until Ctrl-C
    Watch {
        /// Only names that begin with it
        #[arg(default_value = "")]
        prefix: String,
        /// Go on after this position, as the field `cursor` of an earlier change says
        #[arg(long, value_name = "CURSOR")]
        from: Option<String>,
    },
}

#[derive(Debug, Args)]
struct ReleaseArgs {
    /// The lock
    name: String,
    /// Its fencing token, as `locks show` says: another holder is not touched
    #[arg(long, value_name = "N")]
    token: u64,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// At once, without waiting for the holder, as this version always does: until it notices, only fencing protects what
    /// it writes to
    #[arg(long)]
    now: bool,
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: LocksArgs) -> Ended {
    let client = cluster::client(global)?;
    let kind = if args.elections { Kind::Election } else { Kind::Lock };
    cluster::block_on(async {
        match args.verb {
            Verb::List { prefix, limit } => list(global, &client, kind, prefix, limit).await,
            Verb::Show { name } => show(global, &client, kind, &name).await,
            Verb::Release(args) => release(global, &client, kind, &args).await,
            Verb::Watch { prefix, from } => watch(global, &client, kind, prefix, from).await,
        }
    })
}

async fn list(global: &Global, client: &Client, kind: Kind, prefix: String, limit: Option<usize>) -> Ended {
    let wanted = limit.unwrap_or(usize::MAX);
    let mut all = LockPage::default();
    let mut query = ListLocks { kind, prefix, limit: PAGE, cursor: None };
    loop {
        query.limit = PAGE.min(u32::try_from(wanted - all.locks.len()).unwrap_or(PAGE)).max(1);
        let page = client.admin().locks(&query).await.map_err(|e| failed(&e))?;
        all.locks.extend(page.locks);
        all.unavailable_groups.extend(page.unavailable_groups);
        all.next_cursor = page.next_cursor;
        if all.next_cursor.is_none() || all.locks.len() >= wanted {
            break;
        }
        query.cursor.clone_from(&all.next_cursor);
    }
    all.unavailable_groups.sort_unstable();
    all.unavailable_groups.dedup();
    cluster::warn_incomplete(&all.unavailable_groups);
    output::print(global.output, &all, |all| {
        let mut table = Table::new(
            &["NAME", "HOLDER", "WHO", "TOKEN", "HELD", "LEASE LEFT", "WAITERS", "GROUP"],
            "no locks",
        );
        for lock in &all.locks {
            let holder = lock.holder.as_ref();
            table.row([
                lock.name.clone(),
                holder.map_or_else(|| "-".into(), |h| h.session.to_string()),
                holder.map_or_else(String::new, who),
                holder.map_or_else(String::new, |h| h.token.to_string()),
                holder.map_or_else(String::new, |h| times::length(h.held_ms)),
                holder.and_then(|h| h.ttl_left_ms).map_or_else(String::new, times::length),
                lock.waiters.to_string(),
                lock.group.to_string(),
            ]);
        }
        table.text()
    })?;
    Ok(failure::OK)
}

/// What a holder says about itself, in one cell.
fn who(holder: &HolderView) -> String {
    super::about(&holder.metadata)
}

async fn show(global: &Global, client: &Client, kind: Kind, name: &str) -> Ended {
    let detail = client.admin().lock(kind, name).await.map_err(|e| failed(&e))?;
    output::print(global.output, &detail, in_words)?;
    Ok(failure::OK)
}

/// One lock for people: a few lines, then queue and history.
fn in_words(detail: &LockDetail) -> String {
    let mut facts = Table::new(&["LOCK", ""], "");
    let mut fact = |name: &str, value: String| facts.row([name.to_owned(), value]);
    fact("name", detail.lock.name.clone());
    fact("group", detail.lock.group.to_string());
    match &detail.lock.holder {
        None => fact("holder", "nobody".into()),
        Some(holder) => {
            fact("holder", format!("session {}", holder.session));
            fact("who", who(holder));
            fact("token", holder.token.to_string());
            fact("held for", times::length(holder.held_ms));
            fact("lease left", holder.ttl_left_ms.map_or_else(|| "unknown".into(), times::length));
            if !holder.value.is_empty() {
                fact("value", String::from_utf8_lossy(&holder.value).into_owned());
            }
        }
    }
    let mut queue = Table::new(&["POSITION", "SESSION", "WHO", "WAITING"], "nobody waits");
    for waiter in &detail.queue {
        queue.row([
            waiter.position.to_string(),
            waiter.session.to_string(),
            super::about(&waiter.metadata),
            times::length(waiter.waiting_ms),
        ]);
    }
    let mut history = Table::new(&["WHEN", "WHAT", "SESSION", "TOKEN"], "no history");
    for line in &detail.history {
        history.row([
            times::point(line.at_ms),
            line.what.clone(),
            line.session.map_or_else(String::new, |session| session.to_string()),
            line.token.to_string(),
        ]);
    }
    format!("{}\n\n{}\n\n{}", facts.text(), queue.text(), history.text())
}

#[derive(Serialize)]
struct Released {
    name: String,
    token: u64,
    session: String,
}

async fn release(global: &Global, client: &Client, kind: Kind, args: &ReleaseArgs) -> Ended {
    if !args.now {
        say::line("this version frees at once, as with --now: it cannot ask the holder first");
    }
    let session = client
        .admin()
        .force_release(kind, &args.name, Token::new(args.token), &args.reason, &cluster::actor())
        .await
        .map_err(|e| failed(&e))?;
    say::line(
        "released; the former holder may still believe that it holds: from here on only fencing protects",
    );
    let released = Released { name: args.name.clone(), token: args.token, session: session.to_string() };
    output::print(global.output, &released, |r| {
        let mut table = Table::new(&["RELEASED", "TOKEN", "FORMER HOLDER"], "");
        table.row([r.name.clone(), r.token.to_string(), r.session.clone()]);
        table.text()
    })?;
    Ok(failure::OK)
}

async fn watch(global: &Global, client: &Client, kind: Kind, prefix: String, from: Option<String>) -> Ended {
    // A watch goes on over outages; this one should say when there is nobody at all.
    client.admin().status().await.map_err(|e| failed(&e))?;
    let options = WatchOptions { prefix, from, elections: kind == Kind::Election, exact: false };
    let mut events = client.watch_with(options);
    while let Some(event) = events.next().await {
        let event = event.map_err(|e| Failure::other(e.to_string()))?;
        output::print_next(global.output, &event, line)?;
    }
    Err(Failure::other("the watch has ended"))
}

fn line(event: &WatchEvent) -> String {
    let session = event.session.map_or_else(|| "-".into(), |session| session.to_string());
    format!(
        "{}  {:<16} {}  session {session}  token {}",
        times::point(event.at_ms),
        event.what,
        event.name,
        event.token
    )
}
