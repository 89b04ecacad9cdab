//! One round of a watch: what has happened since its cursor, and what happens while the partition map stays.
//!
//! Reads this member's replicas, and asks other members for groups that have none here ([`super::far`]). Knows nothing of when
//! another round begins.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_stream::try_stream;
use futures::{StreamExt, stream::BoxStream};
use holdfast_locktable::{
    event::{Change, Event},
    name::Name,
    outcome::Rejection,
};
use holdfast_partitioner::{GroupId, PartitionMap};
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
    watch::watchers::{Filter, name_of},
};

/// A change of one group.
pub(super) type Changed = (GroupId, Arc<Event>);

/// One group's part of a round: where it goes on, what has happened, and what happens.
pub(super) type Opened = (Place, Vec<Arc<Event>>, BoxStream<'static, Answer<Changed>>);

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
    pub(super) async fn round(&mut self, map: Arc<PartitionMap>) -> Answer<Round> {
        let groups = owners(&self.filter, &map);
        // A group that has nothing to do with the filter any more may still have changes from before.
        let all: BTreeSet<GroupId> = groups.union(&self.groups).copied().collect();
        let (mut past, mut live) = (Vec::new(), futures::stream::SelectAll::new());
        for id in all {
            let opened = match self.endpoint.parts.router.group(id) {
                Some(group) => self.open_here(&group),
                None => self.open_far(id, &map).await,
            };
            let (place, happened, changes) = match opened {
                Ok(opened) => opened,
                // A cursor may name a group that there is not.
                Err(error) if error.code == ErrorCode::NoLeader && !groups.contains(&id) => continue,
                Err(error) => return Err(error),
            };
            past.extend(happened.into_iter().map(|event| (id, event)));
            if groups.contains(&id) {
                live.push(changes);
            }
            self.cursor.0.insert(id, place);
        }
        // The revisions of a name grow also from group to group.
        past.sort_by_key(|(_, event)| event.revision);
        self.seen.clear();
        self.groups = groups;
        Ok(Round { map, past, live })
    }

    fn open_here(&self, group: &Group) -> Answer<Opened> {
        let (id, known, watched) = self.known(group.id());
        let place = group.place_of(&self.filter, known, watched);
        let (happened, queue) =
            group.subscribe(&self.filter, place.revision).map_err(|refusal| refused(id, refusal))?;
        Ok((place, happened, follow(id, queue, self.endpoint.parts.health.clone())))
    }

    /// How far the watch has come in a group, and whether it has watched it until now.
    pub(super) fn known(&self, id: GroupId) -> (GroupId, Place, bool) {
        (id, self.cursor.0.get(&id).copied().unwrap_or_default(), self.groups.contains(&id))
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

/// Whether the name of a change belongs to the group by this map.
pub(super) fn has(map: &PartitionMap, group: GroupId, event: &Event) -> bool {
    name_of(event).is_none_or(|name| map.locate(name.internal()) == group)
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

/// Why a watch cannot go on in a group.
pub(super) fn refused(group: GroupId, refusal: Rejection) -> ApiError {
    match refusal {
        Rejection::Compacted { oldest } => compacted(group, oldest),
        other => ApiError::new(ErrorCode::Internal, format!("history: {other:?}")),
    }
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
