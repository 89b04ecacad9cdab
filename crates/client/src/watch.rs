//! Watching changes: one endless stream over connections that come and go. A gap is an error, never silence.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use async_stream::stream;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream::BoxStream};
use holdfast_proto::v1::{self, lock_client::LockClient};
use serde::Serialize;
use tokio::time::sleep;

use crate::{
    admin::as_value,
    call::{RETRY_BASE, RETRY_MAX},
    client::Client,
    error::{ApiError, Error, ErrorCode, from_status},
    ids::SessionId,
};

/// What to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Names beginning with it; empty for all.
    pub prefix: String,
    /// Where to start: absent for "from now on", else a cursor, or (where one group owns the prefix) a revision.
    pub from: Option<String>,
    /// Elections instead of locks.
    pub elections: bool,
    /// Only exactly the name `prefix`.
    pub exact: bool,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchEvent {
    /// The group it happened in.
    pub group: u32,
    /// Its revision there.
    pub revision: u64,
    /// Milliseconds since 1970 by the leader's wall clock.
    pub at_ms: u64,
    /// `queued`, `granted`, `released`, `timed_out`, `cancelled`, `abandoned`, `force_released`, `session_closed`,
    /// `session_expired`, `session_forced`, `deleted`, `proclaimed`.
    pub what: String,
    /// The name.
    pub name: String,
    /// Whose key.
    pub session: Option<SessionId>,
    /// Its create revision.
    pub token: u64,
    /// Its value (elections).
    #[serde(flatten, serialize_with = "as_value")]
    pub value: Bytes,
    /// Where to go on after this event.
    pub cursor: String,
}

impl From<v1::WatchEvent> for WatchEvent {
    fn from(event: v1::WatchEvent) -> Self {
        Self {
            group: event.group,
            revision: event.revision,
            at_ms: event.at_ms,
            what: event.what,
            name: event.name,
            session: event.session.map(SessionId::from_wire),
            token: event.token,
            value: event.value,
            cursor: event.cursor,
        }
    }
}

/// Why a watch is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The history from the position on is gone: list the locks anew, then watch from now on.
    #[error(
        "the history from this position on is gone (oldest kept revision: {oldest:?}); list the locks anew and watch from there"
    )]
    Compacted {
        /// The oldest revision that is still known, where one group owns the prefix.
        oldest: Option<u64>,
    },
    /// The connection broke before the first event, so there is no position to go on from and changes may have been
    /// missed: list the locks anew, then watch again.
    #[error("the watch was interrupted before its first event; list the locks anew and watch again")]
    Interrupted,
    /// A member refused the watch.
    #[error(transparent)]
    Refused(ApiError),
}

/// A stream of changes. It goes on at another member when a connection breaks, exactly after the last event it gave,
/// and ends after the first error.
pub struct Watch {
    events: BoxStream<'static, Result<WatchEvent, WatchError>>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Stream for Watch {
    type Item = Result<WatchEvent, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(context)
    }
}

impl Watch {
    pub(crate) fn start(client: Client, options: WatchOptions) -> Self {
        Self { events: run(client, options).boxed() }
    }
}

fn run(client: Client, options: WatchOptions) -> impl Stream<Item = Result<WatchEvent, WatchError>> {
    stream! {
        let mut from = options.from.clone();
        let mut attempt = 0;
        let mut attached = false;
        loop {
            let request = v1::WatchRequest {
                prefix: options.prefix.clone(),
                elections: options.elections,
                exact: options.exact,
                from: from.clone(),
            };
            let failure = match attach(&client, request).await {
                Ok(mut events) => {
                    attached = true;
                    loop {
                        match events.next().await {
                            Some(Ok(v1::WatchResponse { event: Some(event) })) => {
                                attempt = 0;
                                from = Some(event.cursor.clone());
                                yield Ok(event.into());
                            }
                            Some(Ok(v1::WatchResponse { event: None })) => {}
                            Some(Err(status)) => break from_status(&status),
                            None => break Error::Unreachable { reason: "the stream has ended".into() },
                        }
                    }
                }
                Err(error) => error,
            };
            let over = match failure {
                Error::Api(error) if error.code == ErrorCode::Compacted => {
                    Some(WatchError::Compacted { oldest: error.facts.oldest })
                }
                Error::Api(error) if !error.code.retryable() => Some(WatchError::Refused(error)),
                Error::Api(_) | Error::Unreachable { .. } if attached && from.is_none() => Some(WatchError::Interrupted),
                Error::Api(_) | Error::Unreachable { .. } => None,
            };
            if let Some(error) = over {
                yield Err(error);
                return;
            }
            let caller = &client.inner().caller;
            caller.prefer(caller.preferred() + 1);
            sleep(caller.random.backoff(attempt, RETRY_BASE, RETRY_MAX)).await;
            attempt += 1;
        }
    }
}

async fn attach(
    client: &Client,
    request: v1::WatchRequest,
) -> Result<tonic::Streaming<v1::WatchResponse>, Error> {
    let open = |channel| {
        let request = request.clone();
        async move { LockClient::new(channel).watch(request).await }
    };
    client.inner().caller.call(open).await
}
