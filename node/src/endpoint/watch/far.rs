//! The part of a watch that happens on other members: groups that have no replica here.
//!
//! Asks a replica again and again for what has happened since; each question waits there until something has.

use std::{sync::Arc, time::Duration};

use async_stream::try_stream;
use futures::StreamExt;
use holdfast_locktable::ids::Revision;
use holdfast_partitioner::{GroupId, PartitionMap};

use super::round::{Opened, Reader};
use crate::{
    endpoint::{
        Answer, ApiError, Endpoint,
        convert::{About, compacted},
        router::{ReplicaAnswer, ReplicaCall},
    },
    group::{
        proposer::GroupError,
        watching::{Past, WatchAnswer, WatchCall},
    },
    watch::watchers::Filter,
};

/// How long one question waits for something to happen.
const WAIT: Duration = Duration::from_secs(2);
/// Pause before a group is asked again that nobody answered for; whether it has a leader at all is looked at elsewhere.
const RETRY: Duration = Duration::from_millis(100);

impl Reader {
    /// Where the watch goes on in a group that is elsewhere, what has happened there, and what happens.
    pub(super) async fn open_far(&self, id: GroupId, map: &PartitionMap) -> Answer<Opened> {
        let (_, known, watched) = self.known(id);
        let open = WatchCall::Open { filter: self.filter.clone(), known, watched, epoch: map.epoch() };
        match self.endpoint.ask_watched(id, open).await? {
            WatchAnswer::Opened { place, past: Past { events, seen } } => {
                let happened = events.into_iter().map(Arc::new).collect();
                Ok((place, happened, self.follow_far(id, Revision(seen.0 + 1))))
            }
            other => Err(surprise(id, &other)),
        }
    }

    fn follow_far(
        &self,
        id: GroupId,
        mut from: Revision,
    ) -> futures::stream::BoxStream<'static, Answer<super::round::Changed>> {
        let (endpoint, filter) = (self.endpoint.clone(), self.filter.clone());
        try_stream! {
            loop {
                let asked = tokio::select! {
                    biased;
                    past = endpoint.next_far(id, &filter, from) => past,
                    () = endpoint.parts.health.leaderless(id) => Err(ApiError::no_leader(id)),
                };
                let past = asked?;
                // Another replica may be behind the one that answered before.
                from = from.max(Revision(past.seen.0 + 1));
                for event in past.events {
                    yield (id, Arc::new(event));
                }
            }
        }
        .boxed()
    }
}

impl Endpoint {
    /// What has happened in a group that is elsewhere, as soon as something has.
    async fn next_far(&self, id: GroupId, filter: &Filter, from: Revision) -> Answer<Past> {
        loop {
            let wait_ms = WAIT.min(self.patience()).as_millis() as u64;
            let next = WatchCall::Next { filter: filter.clone(), from, wait_ms };
            match self.ask_watched(id, next).await {
                Ok(WatchAnswer::Events(past)) => return Ok(past),
                Ok(other) => return Err(surprise(id, &other)),
                Err(error) if error.code == super::super::ErrorCode::NoLeader => {
                    tokio::time::sleep(RETRY).await
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks any replica of a group that is elsewhere.
    pub(super) async fn ask_watched(&self, id: GroupId, call: WatchCall) -> Answer<WatchAnswer> {
        match self.parts.router.ask_replica(id, ReplicaCall::Watch(call)).await {
            Ok(ReplicaAnswer::Watch(WatchAnswer::Compacted { oldest })) => Err(compacted(id, oldest)),
            Ok(ReplicaAnswer::Watch(answer)) => Ok(answer),
            Ok(ReplicaAnswer::Carries(_)) => Err(ApiError::no_leader(id)),
            Err(error) => Err(About { group: id, name: None, session: None }.error(error)),
        }
    }
}

fn surprise(id: GroupId, answer: &WatchAnswer) -> ApiError {
    let error = GroupError::Fatal(format!("a watch was answered with {answer:?}"));
    About { group: id, name: None, session: None }.error(error)
}
