//! One round of a watch: what has happened since its cursor, and what happens while the partition map stays, and the replicas
//! that are read.
//!
//! Reads this member's current replicas, and asks other members for groups that have none here ([`super::far`]). Knows nothing of when
//! another round begins.

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

/// One group's part of a round.
pub(super) struct Opened {
    /// Where it goes on.
    pub(super) place: Place,
    /// What has happened since, up to `seen`.
    pub(super) happened: Vec<Arc<Event>>,
    pub(super) seen: Revision,
    /// What happens.
    pub(super) live: BoxStream<'static, Answer<Changed>>,
}

/// What a watch asks for and how far it has come.
pub(super) struct Reader {
    pub(super) endpoint: Endpoint,
    pub(super) filter: Filter,
    pub(super) cursor: Cursor,
    /// Changes of the revision at the cursor that have gone by in this round.
    pub(super) seen: BTreeMap<GroupId, u32>,
    /// The groups of the last round; before the first, those of the cursor.
    pub(super) groups: BTreeSet<GroupId>,
    /// Whether there was a round.
    pub(super) begun: bool,
}

/// What a round goes by: with other replicas that are current here, or another map, there is another round.
#[derive(Clone)]
pub(super) struct Basis {
    pub(super) map: Arc<PartitionMap>,
    /// The groups that it hears, and whether each from the replica here.
    heard: BTreeMap<GroupId, bool>,
}

impl Basis {
    /// Whether it hears groups from the replicas here where these are current, and only there.
    pub(super) fn agrees(&self, current: &BTreeSet<GroupId>) -> bool {
        self.heard.iter().all(|(group, here)| current.contains(group) == *here)
    }

    /// Whether it hears a group.
    pub(super) fn hears(&self, group: GroupId) -> bool {
        self.heard.contains_key(&group)
    }
}

/// One round: what has happened, and what happens while its basis stays.
pub(super) struct Round {
    pub(super) basis: Basis,
    pub(super) past: Vec<Changed>,
    /// How far that goes in each group.
    pub(super) upto: BTreeMap<GroupId, Revision>,
    pub(super) live: futures::stream::SelectAll<BoxStream<'static, Answer<Changed>>>,
}

impl Reader {
    /// Reads what has happened since the cursor, and registers for what happens.
    pub(super) async fn round(&mut self, map: Arc<PartitionMap>) -> Answer<Round> {
        let groups = owners(&self.filter, &map);
        // A group that has nothing to do with the filter any more may still have changes from before.
        let all: BTreeSet<GroupId> = groups.union(&self.groups).copied().collect();
        let (mut past, mut live) = (Vec::new(), futures::stream::SelectAll::new());
        let (mut heard, mut upto) = (BTreeMap::new(), BTreeMap::new());
        for id in all {
            let current = self.endpoint.parts.router.current_group(id);
            let here = current.is_some();
            let opened = match current {
                Some(group) => self.open_here(&group),
                None if groups.contains(&id) || self.begun => self.open_far(id, &map).await,
                // Of those that a cursor names, one may be gone, and most have nothing to do with the filter: the watch does not
                // depend on them.
                None => match self.open_far_now(id, &map).await {
                    Err(error) if error.code == ErrorCode::NoLeader => continue,
                    opened => opened,
                },
            };
            let Opened { place, happened, seen, live: changes } = opened?;
            past.extend(happened.into_iter().map(|event| (id, event)));
            if groups.contains(&id) {
                live.push(changes);
                heard.insert(id, here);
            }
            self.cursor.0.insert(id, place);
            upto.insert(id, seen);
        }
        // The revisions of a name grow also from group to group.
        past.sort_by_key(|(_, event)| event.revision);
        self.seen.clear();
        (self.groups, self.begun) = (groups, true);
        Ok(Round { basis: Basis { map, heard }, past, upto, live })
    }

    fn open_here(&self, group: &Group) -> Answer<Opened> {
        let (id, known, watched) = self.known(group.id());
        let place = group.place_of(&self.filter, known, watched);
        let (happened, seen, queue) =
            group.subscribe(&self.filter, place.revision).map_err(|refusal| refused(id, refusal))?;
        let live = follow(id, queue, self.endpoint.parts.health.clone());
        Ok(Opened { place, happened, seen, live })
    }

    /// The past of a round has been given: the next begins behind it, so that a watch for which nothing happens in a busy group does
    /// not ask for what is not kept any more.
    pub(super) fn has_given(&mut self, upto: &BTreeMap<GroupId, Revision>) {
        for (group, seen) in upto {
            let (place, behind) = (self.cursor.0.entry(*group).or_default(), Place::at(Revision(seen.0 + 1)));
            if *place < behind {
                *place = behind;
                self.seen.remove(group);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_over_once_a_group_is_to_be_heard_elsewhere() {
        let map = Arc::new(PartitionMap::initial(&[GroupId(1), GroupId(2)]).unwrap());
        let basis = Basis { map, heard: [(GroupId(1), true), (GroupId(2), false)].into() };
        let agrees = |current: &[u32]| basis.agrees(&current.iter().copied().map(GroupId).collect());
        assert!(agrees(&[1]) && agrees(&[1, 3]), "what becomes of other groups is nothing to it");
        assert!(!agrees(&[]), "the replica here is on its way out");
        assert!(!agrees(&[1, 2]), "there is one here by now");
    }
}
