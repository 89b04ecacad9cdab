//! How the Storage Service asks the lock service whether a token can be genuine.
//!
//! Knows what a lock's holder, history and group say about tokens. Does not know marks or objects.

use holdfast_client::{Client, Error, Kind, LockDetail};
use holdfast_fence::{TokenCheck, TokenVerdict, VerdictFuture};
use tokio::runtime::Handle;

/// Transitions in a lock's history that only a holder makes: their tokens were granted.
const OF_HOLDERS: [&str; 4] = ["granted", "released", "force_released", "proclaimed"];

/// Asks the members of a cluster.
#[derive(Debug)]
pub(crate) struct AskTheCluster {
    client: Client,
    /// Where connections live: the service's own threads come and go.
    runtime: Handle,
}

impl AskTheCluster {
    /// Asks through this client, on the current runtime.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, runtime: Handle::current() }
    }
}

impl TokenCheck for AskTheCluster {
    fn check<'a>(&'a self, lock: &'a str, token: u64) -> VerdictFuture<'a> {
        let (client, lock) = (self.client.clone(), lock.to_owned());
        let asking = self.runtime.spawn(async move { verdict(&client, &lock, token).await });
        Box::pin(async move {
            let unavailable = |reason: String| TokenVerdict::Unavailable { reason };
            match asking.await {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(e)) => unavailable(e.to_string()),
                Err(e) => unavailable(e.to_string()),
            }
        })
    }
}

/// A lock and an election may have the same name; the token may be of either.
async fn verdict(client: &Client, name: &str, token: u64) -> Result<TokenVerdict, Error> {
    let mut highest = None;
    let mut group = None;
    for kind in [Kind::Lock, Kind::Election] {
        let detail = client.admin().lock(kind, name).await?;
        highest = highest.max(highest_granted(&detail));
        group = Some(detail.lock.group);
        if highest.is_some_and(|highest| token <= highest) {
            return Ok(TokenVerdict::Plausible);
        }
    }
    if let Some(highest) = highest {
        return Ok(TokenVerdict::NotGranted { highest });
    }
    // Nothing is remembered of the name. No token of its group is above the group's revision, and the next grant will
    // be: whatever is accepted up to there locks nobody out.
    let groups = client.admin().groups().await?;
    let revision = groups.iter().find(|view| Some(view.group) == group).map_or(0, |view| view.revision);
    Ok(if token <= revision { TokenVerdict::Plausible } else { TokenVerdict::NotGranted { highest: 0 } })
}

fn highest_granted(detail: &LockDetail) -> Option<u64> {
    let held = detail.lock.holder.as_ref().map(|holder| holder.token.get());
    let remembered = detail
        .history
        .iter()
        .filter(|line| OF_HOLDERS.contains(&line.what.as_str()))
        .map(|line| line.token)
        .max();
    held.max(remembered)
}
