//! Observing who leads: one endless stream over connections that come and go. Never a wrong leader, each change once.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use async_stream::stream;
use futures::{Stream, StreamExt, stream::BoxStream};
use holdfast_proto::v1::{self, lock_client::LockClient};
use tokio::time::sleep;

use crate::{
    admin::LeaderView,
    call::{RETRY_BASE, RETRY_MAX},
    client::Client,
    error::{Error, from_status},
    ids::Token,
};

/// A stream of who leads an election: the leader now, then each change of leader or value; `None` while nobody leads.
/// Values in between may be skipped. It goes on at another member when a connection breaks, and ends after an answer that
/// a repeat would not change.
pub struct Observe {
    leaders: BoxStream<'static, Result<Option<LeaderView>, Error>>,
}

impl std::fmt::Debug for Observe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observe").finish_non_exhaustive()
    }
}

impl Stream for Observe {
    type Item = Result<Option<LeaderView>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.leaders.poll_next_unpin(context)
    }
}

impl Observe {
    pub(crate) fn start(client: Client, election: String) -> Self {
        Self { leaders: run(client, election).boxed() }
    }
}

fn run(client: Client, election: String) -> impl Stream<Item = Result<Option<LeaderView>, Error>> {
    stream! {
        // What was told last, so that a new connection does not tell it again.
        let mut told: Option<Option<LeaderView>> = None;
        // Tokens only grow: a lower one is an old story from a member that is behind.
        let mut highest = Token::new(0);
        let mut attempt = 0;
        loop {
            let failure = match attach(&client, &election).await {
                Ok(mut leaders) => loop {
                    match leaders.next().await {
                        Some(Ok(v1::ObserveResponse { leader })) => {
                            attempt = 0;
                            let leader: Option<LeaderView> = leader.map(Into::into);
                            if leader.as_ref().is_some_and(|leader| leader.token < highest) {
                                continue;
                            }
                            highest = leader.as_ref().map_or(highest, |leader| leader.token);
                            if !told.as_ref().is_some_and(|told| same(told.as_ref(), leader.as_ref())) {
                                told = Some(leader.clone());
                                yield Ok(leader);
                            }
                        }
                        Some(Err(status)) => break from_status(&status),
                        None => break Error::Unreachable { reason: "the stream has ended".into() },
                    }
                },
                Err(error) => error,
            };
            if !failure.retryable() {
                yield Err(failure);
                return;
            }
            let caller = &client.inner().caller;
            caller.prefer(caller.preferred() + 1);
            sleep(caller.random.backoff(attempt, RETRY_BASE, RETRY_MAX)).await;
            attempt += 1;
        }
    }
}

fn same(told: Option<&LeaderView>, now: Option<&LeaderView>) -> bool {
    match (told, now) {
        (None, None) => true,
        (Some(told), Some(now)) => told.token == now.token && told.value == now.value,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

async fn attach(client: &Client, election: &str) -> Result<tonic::Streaming<v1::ObserveResponse>, Error> {
    let open = |channel| {
        let request = v1::ObserveRequest { name: election.to_owned() };
        async move { LockClient::new(channel).observe(request).await }
    };
    client.inner().caller.call(open).await
}
