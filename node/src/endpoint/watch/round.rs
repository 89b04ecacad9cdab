//! One round of a watch: what has happened since its cursor, and what happens while the partition map stays.
//!
//! Reads this member's replicas. Knows nothing of when another round begins.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_stream::try_stream;
use futures::{StreamExt, stream::BoxStream};
use holdfast_locktable::{
    event::{Change, Event},
    ids::Revision,
    name::Name,
    outcome::Rejection,
};
use holdfast_partitioner::{GroupId, PartitionMap, Range};
use tokio::sync::mpsc;

use crate::{
    endpoint::{
        Answer, ApiError, Endpoint, ErrorCode,
        convert::compacted,
        cursor::{Cursor, Place},
        health::Health,
        types::WatchEvent,
    },
    group::{Group, read::history_view},
    watch::{
        Watch,
        watchers::{Filter, WATCHER_QUEUE, name_of},
    },
};

/// A change of one group.
pub(super) type Changed = (GroupId, Arc<Event>);

/// What a watch asks for and how far it has come.
pub(super) struct Reader {
    pub(super) endpoint: Endpoint,
    pub(super) filter: Filter,
    pub(super) cursor: Cursor,
    /// Changes of the revision at the cursor that have gone by in this round.
    pub(super) seen: BTreeMap<GroupId, u32>,
    /// The groups of the last round.
    pub(super) groups: BTreeSet<GroupId>,
}

/// One round: what has happened, and what happens while the map is this one.
pub(super) struct Round {
    pub(super) map: Arc<PartitionMap>,
    pub(super) past: Vec<Changed>,
    pub(super) live: futures::stream::SelectAll<BoxStream<'static, Answer<Changed>>>,
}

impl Reader {
    /// Reads what has happened since the cursor, and registers for what happens.
    pub(super) fn round(&mut self, map: Arc<PartitionMap>) -> Answer<Round> {
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
    pub(super) fn take(&mut self, group: GroupId, event: &Event) -> Option<WatchEvent> {
        let name = name_of(event).filter(|name| self.filter.matches(name))?;
        let place = self.cursor.0.entry(group).or_default();
        let new = place.pass(event.revision, self.seen.entry(group).or_default());
        new.then(|| watch_event(group, name, event, self.cursor.to_string()))
    }
}

/// The groups that can own a name of the filter.
pub(super) fn owners(filter: &Filter, map: &PartitionMap) -> BTreeSet<GroupId> {
    match filter {
        Filter::Name(name) => BTreeSet::from([map.locate(name.internal())]),
        Filter::Prefix { prefix, .. } => map.groups_under(prefix),
    }
}

/// Whether a range may hold a name of the filter.
pub(super) fn touches(range: &Range, filter: &Filter) -> bool {
    match filter {
        Filter::Name(name) => range.contains(name.internal()),
        Filter::Prefix { prefix, .. } => range.touches(prefix),
    }
}

/// Whether the name of a change belongs to the group by this map.
pub(super) fn has(map: &PartitionMap, group: GroupId, event: &Event) -> bool {
    name_of(event).is_none_or(|name| map.locate(name.internal()) == group)
}

/// Whether this replica has what the map gives its group.
pub(super) fn agrees(group: &Group, map: &PartitionMap) -> bool {
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

/// What has happened in a group, and where what happens will come.
type Subscription = (Vec<Arc<Event>>, mpsc::Receiver<Arc<Event>>);

/// Reads the past and registers for the future in one step, so that nothing falls between.
fn subscribe(group: &Group, filter: &Filter, from: Place) -> Answer<Subscription> {
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
