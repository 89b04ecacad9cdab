//! Tells a client of holds that end without its doing: forced, deleted, or with the session (promise P8).
//!
//! A hold is watched only once it has lasted a while, so that short ones cost nothing: first the watch, then one look at
//! the lock, so that an end before the watch is not missed.

use std::{collections::HashMap, time::Duration};

use futures::StreamExt;
use holdfast_locktable::{
    ids::{SessionId, Token},
    name::{Name, NameKind},
};
use holdfast_proto::v1::{self, session_response::Body as Answer};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{Outbox, send};
use crate::endpoint::{ApiError, Endpoint, types::WatchRequest};

/// How long a hold lasts before it is watched. Well below the second within which its end is told.
pub(super) const QUIET: Duration = Duration::from_millis(500);
/// Pause before a broken watch is made anew.
const RETRY: Duration = Duration::from_millis(500);
/// Most holds of one stream that are watched; the ends of more show only in keepalives.
const MAX_WATCHED: usize = 65_536;

/// One hold of the stream's session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) name: Name,
    pub(super) token: Token,
}

/// The watched holds of one stream. Dropping it ends the watches.
pub(super) struct Holds {
    watcher: Watcher,
    tasks: JoinSet<()>,
    by_hold: HashMap<Held, AbortHandle>,
}

#[derive(Clone)]
struct Watcher {
    endpoint: Endpoint,
    session: SessionId,
    outbox: Outbox,
}

impl Holds {
    pub(super) fn new(endpoint: Endpoint, session: SessionId, outbox: Outbox) -> Self {
        let watcher = Watcher { endpoint, session, outbox };
        Self { watcher, tasks: JoinSet::new(), by_hold: HashMap::new() }
    }

    /// Begins to watch a hold after `quiet`.
    pub(super) fn watch(&mut self, held: Held, quiet: Duration) {
        // Those that are over leave their handles behind; they are swept with every new one.
        while self.tasks.try_join_next().is_some() {}
        if self.by_hold.len() >= MAX_WATCHED {
            self.by_hold.retain(|_, task| !task.is_finished());
        }
        if self.by_hold.len() >= MAX_WATCHED || self.by_hold.contains_key(&held) {
            return;
        }
        let watcher = self.watcher.clone();
        let task = self.tasks.spawn(watcher.follow(held.clone(), quiet));
        self.by_hold.insert(held, task);
    }

    /// The session has ended the hold itself.
    pub(super) fn forget(&mut self, held: &Held) {
        if let Some(task) = self.by_hold.remove(held) {
            task.abort();
        }
    }
}

impl Watcher {
    async fn follow(self, held: Held, quiet: Duration) {
        sleep(quiet).await;
        loop {
            match self.end_of(&held).await {
                Ok(what) => return self.tell(&held, what).await,
                // No leader, or the watch fell behind: what happened meanwhile is seen by the next look.
                Err(error) => tracing::debug!(name = ?held.name, %error, "the watch of a hold is made anew"),
            }
            sleep(RETRY).await;
        }
    }

    /// Waits for the end of the hold, and says how it came.
    async fn end_of(&self, held: &Held) -> Result<String, ApiError> {
        let request = WatchRequest {
            prefix: held.name.text().to_owned(),
            elections: held.name.kind() == NameKind::Election,
            exact: true,
            from: None,
        };
        let mut events = self.endpoint.watch(request).await?;
        let detail = self.endpoint.lock(&held.name).await?;
        if detail.lock.holder.is_none_or(|holder| holder.token != held.token) {
            let last = detail.history.into_iter().rev().find(|line| line.token == held.token);
            return Ok(last
                .map(|line| line.what)
                .filter(|what| is_end(what))
                .unwrap_or_else(|| "deleted".to_owned()));
        }
        while let Some(event) = events.next().await {
            let event = event?;
            if event.token == held.token && is_end(&event.what) {
                return Ok(event.what);
            }
        }
        Err(ApiError::new(crate::endpoint::ErrorCode::NoLeader, "the watch has ended"))
    }

    async fn tell(&self, held: &Held, what: String) {
        let body = match what.as_str() {
            // These end the session everywhere; an expiry in one group need not.
            "session_closed" | "session_forced" => Answer::SessionLost(v1::SessionLost {
                message: format!("session {} has ended ({what}); its locks are free", self.session),
            }),
            _ => {
                let name = v1::Name {
                    text: held.name.text().to_owned(),
                    election: held.name.kind() == NameKind::Election,
                };
                Answer::HoldEnded(v1::HoldEnded { name: Some(name), token: held.token.0, what })
            }
        };
        send(&self.outbox, 0, body).await;
    }
}

/// Whether an event of a key means that the key is gone.
fn is_end(what: &str) -> bool {
    !matches!(what, "queued" | "granted" | "proclaimed")
}
