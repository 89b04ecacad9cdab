//! The part of a watch that happens on other members: groups that have no current replica here.
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
        Answer, ApiError, Endpoint, ErrorCode,
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
    ///
    /// Its leader may just be changing: that is waited for as while a watch goes on.
    pub(super) async fn open_far(&self, id: GroupId, map: &PartitionMap) -> Answer<Opened> {
        let opened = tokio::select! {
            biased;
            opened = self.endpoint.ask_patiently(id, self.opening(id, map)) => opened,
            () = self.endpoint.parts.health.leaderless(id) => Err(ApiError::no_leader(id)),
        };
        self.opened(id, opened?)
    }

    /// As [`Self::open_far`], where somebody answers at once.
    pub(super) async fn open_far_now(&self, id: GroupId, map: &PartitionMap) -> Answer<Opened> {
        let opened = self.endpoint.ask_watched(id, self.opening(id, map)).await?;
        self.opened(id, opened)
    }

    fn opening(&self, id: GroupId, map: &PartitionMap) -> WatchCall {
        let (_, known, watched) = self.known(id);
        WatchCall::Open { filter: self.filter.clone(), known, watched, epoch: map.epoch() }
    }

    fn opened(&self, id: GroupId, answer: WatchAnswer) -> Answer<Opened> {
        match answer {
            WatchAnswer::Opened { place, past: Past { events, seen } } => {
                let happened = events.into_iter().map(Arc::new).collect();
                let live = self.follow_far(id, Revision(seen.0 + 1));
                Ok(Opened { place, happened, seen, live })
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
        let wait_ms = WAIT.min(self.patience()).as_millis() as u64;
        match self.ask_patiently(id, WatchCall::Next { filter: filter.clone(), from, wait_ms }).await? {
            WatchAnswer::Events(past) => Ok(past),
            other => Err(surprise(id, &other)),
        }
    }

    /// Asks until somebody answers for the group.
    async fn ask_patiently(&self, id: GroupId, call: WatchCall) -> Answer<WatchAnswer> {
        loop {
            match self.ask_watched(id, call.clone()).await {
                Err(error) if error.code == ErrorCode::NoLeader => tokio::time::sleep(RETRY).await,
                answer => return answer,
            }
        }
    }

    /// Asks a replica of a group that has no current one here.
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
