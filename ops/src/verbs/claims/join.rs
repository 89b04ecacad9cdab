//! `holdfast claims join`: takes part until it is told to stop, and says what it has.
//!
//! It uses no partition for anything, so it gives back at once what is revoked.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use futures::StreamExt as _;
use holdfast_client::{Claim, ClaimEnd, ClaimError, ClaimEvent, Client, Partition, SessionId};
use serde::Serialize;

use crate::{
    cli::{self, Global},
    cluster::failed,
    failure::{self, Ended, Failure, Kind},
    output,
    run::signals::{Signals, ends},
    say,
    verbs::hold::{LEAVE_WITHIN, interrupted, leave, ttl},
};

/// Take part in a claim until Ctrl-C, and print a line per change
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// The claim
    #[arg(value_parser = cli::name)]
    name: String,
    /// How many partitions the claim has: the first member decides, 1 to 4096
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    partitions: u32,
    /// This member's share against the others', 1 to 1000
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    weight: u32,
    /// How long its part survives silence
    #[arg(long, value_name = "TIME", value_parser = ttl, default_value = "10s")]
    ttl: Duration,
}

/// One change, as JSON shows it.
#[derive(Serialize)]
struct Change<'a> {
    claim: &'a str,
    session: SessionId,
    /// `joined`, `assigned`, `revoked`, `ended`.
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Milliseconds since 1970 by this machine's clock.
    at_ms: u64,
}

/// Joins, and says what it has.
pub(super) async fn run(global: &Global, client: &Client, args: JoinArgs) -> Ended {
    let mut signals = Signals::ending().map_err(|e| Failure::other(format!("cannot catch signals: {e}")))?;
    let session = tokio::select! {
        biased;
        signal = signals.next_ending() => return Err(interrupted(signal)),
        session = client.session().ttl(args.ttl).label("holdfast").open() => session.map_err(|e| failed(&e))?,
    };
    let joined = tokio::select! {
        biased;
        signal = signals.next_ending() => Err(interrupted(signal)),
        claim = session.claim(args.name.as_str(), args.partitions).weight(args.weight).join() => {
            claim.map_err(|e| refused(&e))
        }
    };
    let ended = match joined {
        Ok(claim) => follow(global, &claim, session.id(), &mut signals).await,
        Err(failure) => Err(failure),
    };
    leave(&session, LEAVE_WITHIN).await;
    ended
}

async fn follow(global: &Global, claim: &Claim, session: SessionId, signals: &mut Signals) -> Ended {
    let print = |event, partition: Option<Partition>, why: Option<String>| {
        let change = Change {
            claim: claim.name(),
            session,
            event,
            partition: partition.map(|partition| partition.number),
            token: partition.map(|partition| partition.token.get()),
            why,
            at_ms: now_ms(),
        };
        output::print_next(global.output, &change, line)
    };
    print("joined", None, None)?;
    let mut events = claim.events();
    loop {
        let event = tokio::select! {
            biased;
            signal = signals.next() => {
                if ends(signal) {
                    // Said before anybody else can have any of it.
                    print("ended", None, Some(ClaimEnd::Left.to_string()))?;
                    let _ = tokio::time::timeout(global.timeout, claim.leave()).await;
                    return Ok(failure::OK);
                }
                continue;
            }
            event = events.next() => event,
        };
        match event {
            Some(ClaimEvent::Assigned(partition)) => print("assigned", Some(partition), None)?,
            Some(ClaimEvent::Revoked(partition)) => {
                print("revoked", Some(partition), None)?;
                // Told in the background: what comes meanwhile is told here.
                let claim = claim.clone();
                tokio::spawn(async move { claim.give_back([partition.number]).await });
            }
            Some(ClaimEvent::Ended(end)) => {
                print("ended", None, Some(end.to_string()))?;
                return over(end);
            }
            None => return Err(Failure::other("the claim's events have ended")),
        }
    }
}

/// Who was drained has done its work; who was lost has not.
fn over(end: ClaimEnd) -> Ended {
    match end {
        ClaimEnd::Left => Ok(failure::OK),
        ClaimEnd::Removed => {
            say::line(&end.to_string());
            Ok(failure::OK)
        }
        ClaimEnd::Lost(_) => Err(Failure::new(Kind::LockLost, end.to_string())),
    }
}

fn refused(error: &ClaimError) -> Failure {
    match error {
        ClaimError::Failed(error) => failed(error),
        // No repeat can succeed.
        ClaimError::OtherPartitions { .. } | ClaimError::AlreadyJoined { .. } => {
            Failure::other(error.to_string())
        }
        ClaimError::SessionLost { .. } => Failure::new(Kind::LockLost, error.to_string()),
    }
}

fn line(change: &Change<'_>) -> String {
    match (change.partition, change.token, &change.why) {
        (Some(partition), Some(token), _) => format!("{} {partition} with token {token}", change.event),
        (_, _, Some(why)) => format!("{}: {why}", change.event),
        (_, _, None) => format!("{} {} as session {}", change.event, change.claim, change.session),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
