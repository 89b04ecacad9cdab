//! Watching changes on the replicas of the groups a prefix touches: this member's own, where it has a current one.
//!
//! Order is each group's revision order; between groups there is none, but that the changes of one name come in order also
//! where it has moved. Ends with an error, never in silence.
//!
//! ```text
//!   cursor ──► a round: all that has happened since, in order of revisions, then what happens, while the map stays
//!      ▲                                                                                    │
//!      ├────────────── a range has moved, and the replicas here have seen it ◄──────────────┤
//!      └────────────── a replica here is current, or is not any more ◄──────────────────────┘
//! ```

mod far;
mod round;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_stream::try_stream;
use futures::{StreamExt, stream::BoxStream};
use holdfast_locktable::{
    ids::Revision,
    name::{Name, NameKind},
};
use holdfast_partitioner::{GroupId, PartitionMap};

use self::round::{Basis, Changed, Reader, has, owners};
use super::{
    Answer, ApiError, Endpoint, MapWatch,
    convert::compacted,
    cursor::{Cursor, Place},
    types::{WatchEvent, WatchRequest},
};
use crate::{
    group::watching::{WatchAnswer, WatchCall},
    watch::watchers::Filter,
};

/// How often replicas are looked at that have not seen a move yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What comes next in a round.
enum Next {
    /// Another round, by this map.
    Round(Arc<PartitionMap>),
    /// A change, or the end.
    Changed(Answer<Changed>),
}

impl Endpoint {
    /// Changes as they happen, from a position; ends with an error when the position is gone, the watcher lags behind
    /// its bound (`Overloaded`, resume from the last cursor), or the group has had no leader for three election timeouts.
    pub async fn watch(&self, request: WatchRequest) -> Answer<BoxStream<'static, Answer<WatchEvent>>> {
        let filter = filter_of(&request)?;
        let mut map = self.parts.map.clone();
        // A move that goes on longer shows a name's last changes in its old group behind its first in the new one.
        drop(tokio::time::timeout(self.patience(), self.settled(&mut map)).await);
        let now = self.map().await?;
        let cursor = self.start_of(request.from.as_deref(), &filter, &now).await?;
        let (seen, groups) = (BTreeMap::new(), cursor.0.keys().copied().collect());
        let mut reader = Reader { endpoint: self.clone(), filter, cursor, seen, groups, begun: false };
        let mut round = reader.round(now).await?;
        let patience = self.patience();
        Ok(try_stream! {
            loop {
                for (group, event) in std::mem::take(&mut round.past) {
                    if let Some(event) = reader.take(group, &event) {
                        yield event;
                    }
                }
                reader.has_given(&round.upto);
                let (endpoint, basis, later) = (reader.endpoint.clone(), round.basis.clone(), map.clone());
                let over = async move { endpoint.over(&later, &basis).await };
                tokio::pin!(over);
                loop {
                    let next = tokio::select! {
                        biased;
                        now = &mut over => Next::Round(now),
                        Some(item) = round.live.next() => Next::Changed(item),
                    };
                    match next {
                        Next::Round(now) => {
                            round = reader.round(now).await?;
                            break;
                        }
                        Next::Changed(item) => {
                            let (group, event) = item?;
                            if !has(&round.basis.map, group, &event) {
                                // It has come with a move: what happened before in the old group comes first. Where that is not
                                // heard of, the watch ends and goes on from its cursor.
                                let (endpoint, before) = (reader.endpoint.clone(), round.basis.map.clone());
                                let mut later = map.clone();
                                let settled = endpoint.settled_after(&mut later, &before);
                                let settled = tokio::time::timeout(patience, settled).await;
                                let now = settled.map_err(|_| ApiError::no_leader(group))?;
                                round = reader.round(now).await?;
                                break;
                            }
                            if let Some(event) = reader.take(group, &event) {
                                yield event;
                            }
                        }
                    }
                }
            }
        }
        .boxed())
    }

    /// Waits until a round is over, and answers the map of the next.
    async fn over(&self, map: &MapWatch, basis: &Basis) -> Arc<PartitionMap> {
        let (mut later, mut same) = (map.clone(), map.clone());
        tokio::select! {
            biased;
            now = self.settled_after(&mut later, &basis.map) => now,
            now = self.heard_elsewhere(&mut same, basis) => now,
        }
    }

    /// Waits until a group of a round is to be heard from another member, or from the replica here, and the current replicas here
    /// of its groups have what the map says.
    async fn heard_elsewhere(&self, map: &mut MapWatch, basis: &Basis) -> Arc<PartitionMap> {
        let mut current = self.parts.router.current();
        // Its sender lives as long as the router, which `self` holds.
        current.wait_for(|current| !basis.agrees(current)).await.ok();
        self.settled_where(map, |group| basis.hears(group)).await
    }

    /// Waits until every current replica here has what the map says, and answers that map.
    async fn settled(&self, map: &mut MapWatch) -> Arc<PartitionMap> {
        self.settled_where(map, |_| true).await
    }

    /// As [`Self::settled`], for some groups.
    async fn settled_where(&self, map: &mut MapWatch, counts: impl Fn(GroupId) -> bool) -> Arc<PartitionMap> {
        loop {
            let now = map.borrow_and_update().clone();
            let agree = |now: &Arc<PartitionMap>| {
                let mut current = self.parts.router.current_groups().into_iter();
                current.all(|group| !counts(group.id()) || group.agrees(now))
            };
            if let Some(now) = now.filter(agree) {
                return now;
            }
            // Whichever comes first, the next look decides. A map that will never change, as the member goes down, is not
            // asked again at once.
            if let Ok(Err(_)) = tokio::time::timeout(LOOK_EVERY, map.changed()).await {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }

    /// Waits for a later map than this one, which every current replica here has seen.
    async fn settled_after(&self, map: &mut MapWatch, before: &PartitionMap) -> Arc<PartitionMap> {
        let later =
            |now: &Option<Arc<PartitionMap>>| now.as_ref().is_some_and(|now| now.epoch() > before.epoch());
        let stopped = map.wait_for(later).await.is_err();
        if stopped {
            // The member goes down, and the watch with it.
            std::future::pending::<()>().await;
        }
        self.settled(map).await
    }

    /// A cursor over several groups, or a plain revision where one group owns everything asked for; where nothing is said,
    /// now. It has a place in every group, for ranges may come there.
    async fn start_of(&self, from: Option<&str>, filter: &Filter, map: &PartitionMap) -> Answer<Cursor> {
        let plain = from.and_then(|text| text.parse::<u64>().ok());
        let owners = owners(filter, map);
        if plain.is_some() && owners.len() != 1 {
            return Err(ApiError::invalid(
                "a plain revision means nothing over several groups; resume from the cursor of an event",
            ));
        }
        let (mut cursor, mut came) = (Cursor::default(), None);
        let groups = self.parts.router.all_groups();
        let asked = groups.iter().map(|group| self.now_in(*group, filter));
        for (group, now) in groups.iter().zip(futures::future::join_all(asked).await) {
            match now {
                Ok((next, arrived)) => {
                    cursor.0.insert(*group, Place::at(next));
                    came = came.max(arrived.filter(|_| owners.contains(group)));
                }
                // Another that cannot be asked has no place: where a range comes there, it begins with that.
                Err(error) if owners.contains(group) => return Err(error),
                Err(_) => {}
            }
        }
        let Some(text) = from else { return Ok(cursor) };
        if let (Some(revision), Some(owner)) = (plain, owners.first()) {
            // Rule R19: what was before is another group's, whose revisions are others.
            if let Some(came) = came.filter(|came| came.0 > revision) {
                return Err(compacted(*owner, came));
            }
            cursor.0.insert(*owner, Place::at(Revision(revision)));
            return Ok(cursor);
        }
        let given = Cursor::parse(text)
            .ok_or_else(|| ApiError::invalid("the cursor is not one of this service's"))?;
        cursor.0.extend(given.0);
        Ok(cursor)
    }

    /// The revision that comes next in a group, and when a range of the filter came there last.
    async fn now_in(&self, id: GroupId, filter: &Filter) -> Answer<(Revision, Option<Revision>)> {
        if let Some(group) = self.parts.router.current_group(id) {
            return Ok(group.watched_now(filter));
        }
        match self.ask_watched(id, WatchCall::Now { filter: filter.clone() }).await? {
            WatchAnswer::Now { next, came } => Ok((next, came)),
            _ => Err(ApiError::no_leader(id)),
        }
    }
}

fn filter_of(request: &WatchRequest) -> Answer<Filter> {
    let kind = if request.elections { NameKind::Election } else { NameKind::Lock };
    if !request.exact {
        return Ok(Filter::Prefix { kind, prefix: request.prefix.clone() });
    }
    let name = if request.elections { Name::election } else { Name::lock }(&request.prefix);
    name.map(Filter::Name).map_err(|error| ApiError::invalid(error.to_string()))
}
