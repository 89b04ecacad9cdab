//! Watching changes on this member's own replicas of the groups a prefix touches.
//!
//! Order is each group's revision order; between groups there is none, but that the changes of one name come in order also
//! where it has moved. Ends with an error, never in silence.
//!
//! ```text
//!   cursor ──► a round: all that has happened since, in order of revisions, then what happens, while the map stays
//!      ▲                                                                                    │
//!      └────────────── a range has moved, and the replicas here have seen it ◄──────────────┘
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_stream::try_stream;
use futures::{StreamExt, stream::BoxStream};
use holdfast_locktable::{
    event::{Change, Event},
    ids::Revision,
    name::{Name, NameKind},
    outcome::Rejection,
};
use holdfast_partitioner::{GroupId, PartitionMap, Range};
use tokio::sync::mpsc;

use super::{
    Answer, ApiError, Endpoint, ErrorCode, MapWatch,
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

/// How often replicas are looked at that have not seen a move yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A change of one group.
type Changed = (GroupId, Arc<Event>);

/// What a watch asks for and how far it has come.
struct Reader {
    endpoint: Endpoint,
    filter: Filter,
    cursor: Cursor,
    /// Changes of the revision at the cursor that have gone by in this round.
    seen: BTreeMap<GroupId, u32>,
    /// The groups of the last round.
    groups: BTreeSet<GroupId>,
}

/// What comes next in a round.
enum Next {
    /// Another round.
    Moved(Arc<PartitionMap>),
    /// A change, or the end.
    Changed(Answer<Changed>),
}

/// One round: what has happened, and what happens while the map is this one.
struct Round {
    map: Arc<PartitionMap>,
    past: Vec<Changed>,
    live: futures::stream::SelectAll<BoxStream<'static, Answer<Changed>>>,
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
        let cursor = self.start_of(request.from.as_deref(), &filter, &now)?;
        let (seen, groups) = (BTreeMap::new(), cursor.0.keys().copied().collect());
        let mut reader = Reader { endpoint: self.clone(), filter, cursor, seen, groups };
        let mut round = reader.round(now)?;
        Ok(try_stream! {
            loop {
                for (group, event) in std::mem::take(&mut round.past) {
                    if let Some(event) = reader.take(group, &event) {
                        yield event;
                    }
                }
                let (endpoint, before, mut later) = (reader.endpoint.clone(), round.map.clone(), map.clone());
                let moved = async move { endpoint.settled_after(&mut later, &before).await };
                tokio::pin!(moved);
                loop {
                    let next = tokio::select! {
                        biased;
                        now = &mut moved => Next::Moved(now),
                        Some(item) = round.live.next() => Next::Changed(item),
                    };
                    match next {
                        Next::Moved(now) => {
                            round = reader.round(now)?;
                            break;
                        }
                        Next::Changed(item) => {
                            let (group, event) = item?;
                            if !has(&round.map, group, &event) {
                                // It has come with a move: what happened before in the old group comes first.
                                round = reader.round((&mut moved).await)?;
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

    /// Waits until every replica here has what the map says.
    async fn settled(&self, map: &mut MapWatch) {
        loop {
            let now = map.borrow_and_update().clone();
            if now.is_some_and(|now| self.parts.router.groups().all(|group| agrees(group, &now))) {
                return;
            }
            // Whichever comes first, the next look decides.
            let _ = tokio::time::timeout(LOOK_EVERY, map.changed()).await;
        }
    }

    /// Waits for a later map than this one, which every replica here has seen.
    async fn settled_after(&self, map: &mut MapWatch, before: &PartitionMap) -> Arc<PartitionMap> {
        loop {
            let later = |now: &Option<Arc<PartitionMap>>| {
                now.as_ref().is_some_and(|now| now.epoch() > before.epoch())
            };
            let stopped = map.wait_for(later).await.is_err();
            if stopped {
                // The member goes down, and the watch with it.
                std::future::pending::<()>().await;
            }
            self.settled(map).await;
            let now = map.borrow().clone();
            if let Some(now) = now {
                return now;
            }
        }
    }

    /// A cursor over several groups, or a plain revision where one group owns everything asked for; where nothing is said,
    /// now. It has a place in every group, for ranges may come there.
    fn start_of(&self, from: Option<&str>, filter: &Filter, map: &PartitionMap) -> Answer<Cursor> {
        let here = |group: &Group| {
            let next = group.locks(holdfast_locktable::table::LockTable::revision).0 + 1;
            (group.id(), Place::at(Revision(next)))
        };
        let mut cursor = Cursor(self.parts.router.groups().map(here).collect());
        let Some(text) = from else { return Ok(cursor) };
        if let Ok(revision) = text.parse::<u64>() {
            let owners = owners(filter, map);
            let [owner] = owners.iter().copied().collect::<Vec<_>>()[..] else {
                return Err(ApiError::invalid(
                    "a plain revision means nothing over several groups; resume from the cursor of an event",
                ));
            };
            let group = self.parts.router.group(owner).ok_or_else(|| ApiError::no_leader(owner))?;
            // Rule R19: what was before is another group's, whose revisions are others.
            let came = group.locks(|table| table.arrivals(|range| touches(range, filter)).max());
            if let Some(came) = came.filter(|came| came.0 > revision) {
                return Err(compacted(owner, came));
            }
            cursor.0.insert(owner, Place::at(Revision(revision)));
            return Ok(cursor);
        }
        let given = Cursor::parse(text)
            .ok_or_else(|| ApiError::invalid("the cursor is not one of this service's"))?;
        cursor.0.extend(given.0);
        Ok(cursor)
    }
}

impl Reader {
    /// Reads what has happened since the cursor, and registers for what happens.
    fn round(&mut self, map: Arc<PartitionMap>) -> Answer<Round> {
        let groups = owners(&self.filter, &map);
        // A group that has nothing to do with the filter any more may still have changes from before.
        let all: BTreeSet<GroupId> = groups.union(&self.groups).copied().collect();
        let (mut past, mut live) = (Vec::new(), futures::stream::SelectAll::new());
        for id in all {
            let Some(group) = self.endpoint.parts.router.group(id) else {
                // A cursor may name a group that there is not.
                if groups.contains(&id) {
                    return Err(ApiError::no_leader(id));
                }
                continue;
            };
            let place = self.place(group);
            let (happened, queue) = subscribe(group, &self.filter, place)?;
            past.extend(happened.into_iter().map(|event| (id, event)));
            if groups.contains(&id) {
                live.push(follow(id, queue, self.endpoint.parts.health.clone()));
            }
            self.cursor.0.insert(id, place);
        }
        // The revisions of a name grow also from group to group.
        past.sort_by_key(|(_, event)| event.revision);
        self.seen.clear();
        self.groups = groups;
        Ok(Round { map, past, live })
    }

    /// Where to go on in a group. One that had nothing to do with the filter before has no older changes of interest than
    /// those since a range came there.
    fn place(&self, group: &Group) -> Place {
        let known = self.cursor.0.get(&group.id()).copied().unwrap_or_default();
        if self.groups.contains(&group.id()) {
            return known;
        }
        let since = |since: &Revision| *since >= known.revision;
        let came =
            group.locks(|table| table.arrivals(|range| touches(range, &self.filter)).filter(since).min());
        came.map_or(known, Place::at)
    }

    /// Passes a change: the watcher's view of it, where it is new.
    fn take(&mut self, group: GroupId, event: &Event) -> Option<WatchEvent> {
        let name = name_of(event).filter(|name| self.filter.matches(name))?;
        let place = self.cursor.0.entry(group).or_default();
        let new = place.pass(event.revision, self.seen.entry(group).or_default());
        new.then(|| watch_event(group, name, event, self.cursor.to_string()))
    }
}

/// The groups that can own a name of the filter.
fn owners(filter: &Filter, map: &PartitionMap) -> BTreeSet<GroupId> {
    match filter {
        Filter::Name(name) => BTreeSet::from([map.locate(name.internal())]),
        Filter::Prefix { prefix, .. } => map.groups_under(prefix),
    }
}

/// Whether a range may hold a name of the filter.
fn touches(range: &Range, filter: &Filter) -> bool {
    match filter {
        Filter::Name(name) => range.contains(name.internal()),
        Filter::Prefix { prefix, .. } => range.touches(prefix),
    }
}

/// Whether the name of a change belongs to the group by this map.
fn has(map: &PartitionMap, group: GroupId, event: &Event) -> bool {
    name_of(event).is_none_or(|name| map.locate(name.internal()) == group)
}

/// Whether this replica has what the map gives its group.
fn agrees(group: &Group, map: &PartitionMap) -> bool {
    let ranges = map.ranges_of(group.id());
    group.locks(|table| table.owns_exactly(&ranges))
}

/// One group's changes as they happen.
fn follow(
    group: GroupId,
    mut live: mpsc::Receiver<Arc<Event>>,
    health: Health,
) -> BoxStream<'static, Answer<Changed>> {
    try_stream! {
        loop {
            yield (group, next_event(&mut live, &health, group).await?);
        }
    }
    .boxed()
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
fn subscribe(
    group: &Group,
    filter: &Filter,
    from: Place,
) -> Answer<(Vec<Arc<Event>>, mpsc::Receiver<Arc<Event>>)> {
    let (queue, live) = mpsc::channel(WATCHER_QUEUE);
    group.locks(|table| {
        let seen = table.revision();
        let wanted = |event: &&Event| name_of(event).is_some_and(|name| filter.matches(name));
        let past = match table.history(from.revision) {
            _ if from.revision > seen => Vec::new(),
            Ok(events) => events.filter(wanted).cloned().map(Arc::new).collect(),
            Err(Rejection::Compacted { oldest }) => return Err(compacted(group.id(), oldest)),
            Err(other) => return Err(ApiError::new(ErrorCode::Internal, format!("history: {other:?}"))),
        };
        group.audiences().watchers.joins();
        group.fanout().do_send(Watch { filter: filter.clone(), seen, queue });
        Ok((past, live))
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
    let name = match kind {
        NameKind::Lock => Name::lock(&request.prefix),
        NameKind::Election => Name::election(&request.prefix),
    };
    name.map(Filter::Name).map_err(|error| ApiError::invalid(error.to_string()))
}

fn watch_event(group: GroupId, name: &Name, event: &Event, cursor: String) -> WatchEvent {
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
        name: name.text().to_owned(),
        session: view.session,
        token: view.token,
        value,
        cursor,
    }
}
