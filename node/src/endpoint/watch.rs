//! Watching changes on this member's own replica of the groups a prefix touches.
//!
//! Order is each group's revision order; between groups there is none. Ends with an error, never in silence.

use std::{collections::BTreeMap, sync::Arc};

use async_stream::try_stream;
use futures::{StreamExt, stream::BoxStream};
use holdfast_locktable::{
    event::{Change, Event},
    ids::Revision,
    name::{Name, NameKind},
    outcome::Rejection,
};
use holdfast_partitioner::GroupId;
use tokio::sync::mpsc;

use super::{
    Answer, ApiError, Endpoint, ErrorCode,
    convert::compacted,
    cursor::{Cursor, Place},
    health::Health,
    types::{WatchEvent, WatchRequest},
};
use crate::{
    group::{Group, read::history_view},
    watch::{
        Watch,
        watchers::{Filter, WATCHER_QUEUE, name_of},
    },
};

/// What a subscription to one group gives: its past, then its future.
struct Subscription {
    group: GroupId,
    place: Place,
    past: Vec<Arc<Event>>,
    live: mpsc::Receiver<Arc<Event>>,
}

impl Endpoint {
    /// Changes as they happen, from a position; ends with an error when the position is gone, the watcher lags behind
    /// its bound (`Overloaded`, resume from the last cursor), or the group has had no leader for three election timeouts.
    pub async fn watch(&self, request: WatchRequest) -> Answer<BoxStream<'static, Answer<WatchEvent>>> {
        let filter = filter_of(&request)?;
        let groups = self.groups_of(&filter).await?;
        let from = start_of(request.from.as_deref(), &groups)?;
        let mut cursor = Cursor::default();
        let mut streams = Vec::new();
        for id in &groups {
            let group = self.parts.router.group(*id).ok_or_else(|| ApiError::no_leader(*id))?;
            let subscription =
                subscribe(group, &filter, from.as_ref().and_then(|from| from.0.get(id)).copied())?;
            cursor.0.insert(*id, subscription.place);
            streams.push(self.follow(subscription, filter.clone()).boxed());
        }
        let mut merged = futures::stream::select_all(streams);
        Ok(try_stream! {
            while let Some(item) = merged.next().await {
                let (group, place, event) = item?;
                cursor.0.insert(group, place);
                yield watch_event(group, &event, cursor.to_string());
            }
        }
        .boxed())
    }

    /// The groups that can own a name of the filter.
    async fn groups_of(&self, filter: &Filter) -> Answer<Vec<GroupId>> {
        match filter {
            Filter::Name(name) => Ok(vec![self.group_of(name).await?]),
            Filter::Prefix { prefix, .. } => Ok(self.map().await?.groups_under(prefix).into_iter().collect()),
        }
    }

    /// One group's changes with the place after each.
    fn follow(
        &self,
        mut subscription: Subscription,
        filter: Filter,
    ) -> impl futures::Stream<Item = Answer<(GroupId, Place, Arc<Event>)>> + Send + use<> {
        let health = self.parts.health.clone();
        try_stream! {
            let group = subscription.group;
            let (mut place, mut seen) = (subscription.place, 0);
            for event in std::mem::take(&mut subscription.past) {
                let wanted = name_of(&event).is_some_and(|name| filter.matches(name));
                if wanted && place.pass(event.revision, &mut seen) {
                    yield (group, place, event);
                }
            }
            loop {
                let event = next_event(&mut subscription.live, &health, group).await?;
                if place.pass(event.revision, &mut seen) {
                    yield (group, place, event);
                }
            }
        }
    }
}

/// The next live change, or why there will be none.
async fn next_event(
    live: &mut mpsc::Receiver<Arc<Event>>,
    health: &Health,
    group: GroupId,
) -> Answer<Arc<Event>> {
    tokio::select! {
        biased;
        next = live.recv() => next.ok_or_else(|| lagging(group)),
        () = health.leaderless(group) => Err(ApiError::no_leader(group)),
    }
}

/// Reads the past and registers for the future in one step, so that nothing falls between.
fn subscribe(group: &Group, filter: &Filter, from: Option<Place>) -> Answer<Subscription> {
    let (queue, live) = mpsc::channel(WATCHER_QUEUE);
    group.locks(|table| {
        let now = table.revision();
        let place = from.unwrap_or(Place::at(Revision(now.0 + 1)));
        let past = match from {
            None => Vec::new(),
            Some(place) => match table.history(place.revision) {
                Ok(events) => events.cloned().map(Arc::new).collect(),
                Err(Rejection::Compacted { oldest }) => return Err(compacted(group.id(), oldest)),
                Err(other) => return Err(ApiError::new(ErrorCode::Internal, format!("history: {other:?}"))),
            },
        };
        group.audiences().watchers.joins();
        group.fanout().do_send(Watch { filter: filter.clone(), seen: now, queue });
        Ok(Subscription { group: group.id(), place, past, live })
    })
}

fn lagging(group: GroupId) -> ApiError {
    let mut error = ApiError::new(
        ErrorCode::Overloaded,
        format!(
            "the watch fell behind group {group} or its history was replaced; resume from the last cursor"
        ),
    );
    error.facts.group = Some(group);
    error
}

fn filter_of(request: &WatchRequest) -> Answer<Filter> {
    let kind = if request.elections { NameKind::Election } else { NameKind::Lock };
    if !request.exact {
        return Ok(Filter::Prefix { kind, prefix: request.prefix.clone() });
    }
    let name = if request.elections { Name::election } else { Name::lock }(&request.prefix);
    name.map(Filter::Name).map_err(|error| ApiError::invalid(error.to_string()))
}

/// A cursor over several groups, or a plain revision where one group owns everything asked for.
fn start_of(from: Option<&str>, groups: &[GroupId]) -> Answer<Option<Cursor>> {
    let Some(text) = from else { return Ok(None) };
    if let Ok(revision) = text.parse::<u64>() {
        return match groups {
            [group] => Ok(Some(Cursor(BTreeMap::from([(*group, Place::at(Revision(revision)))])))),
            _ => Err(ApiError::invalid(
                "a plain revision means nothing over several groups; resume from the cursor of an event",
            )),
        };
    }
    let cursor =
        Cursor::parse(text).ok_or_else(|| ApiError::invalid("the cursor is not one of this service's"))?;
    Ok(Some(cursor))
}

fn watch_event(group: GroupId, event: &Event, cursor: String) -> WatchEvent {
    let view = history_view(event);
    let value = match &event.change {
        Change::Put { value, .. } => value.clone(),
        Change::Grant { .. } | Change::Delete { .. } => bytes::Bytes::new(),
    };
    WatchEvent {
        group,
        revision: view.revision,
        at_ms: view.at_ms,
        what: view.what,
        name: name_of(event).map(|name| name.text().to_owned()).unwrap_or_default(),
        session: view.session,
        token: view.token,
        value,
        cursor,
    }
}
