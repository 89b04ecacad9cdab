//! What a replica says of the changes in its group, to watches on this member and, call by call, to those on members that do
//! not carry the group.
//!
//! Reads the table and joins the fan-out. Knows nothing of cursors over several groups.

use std::{sync::Arc, time::Duration};

use holdfast_locktable::{event::Event, ids::Revision, outcome::Rejection, table::LockTable};
use holdfast_partitioner::{MapEpoch, PartitionMap, Range};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{Group, proposer::GroupError};
use crate::{
    endpoint::{MapWatch, cursor::Place},
    watch::{
        Watch,
        watchers::{Filter, WATCHER_QUEUE, name_of},
    },
};

/// How often a replica is looked at that has not seen a move yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Most changes in one answer to another member; more come with the next.
const MOST_EVENTS: usize = 1_024;

/// What a watch on another member asks of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchCall {
    /// Which revision comes next, and when has a range of the filter come here last?
    Now {
        /// The filter.
        filter: Filter,
    },
    /// Where does a watch go on here, and what has happened since?
    Open {
        /// The filter.
        filter: Filter,
        /// How far it has come here.
        known: Place,
        /// Whether it has watched this group until now.
        watched: bool,
        /// The map by which it asks; the replica must have seen what that gives its group.
        epoch: MapEpoch,
    },
    /// What has happened from this revision on? Waits so long where nothing has.
    Next {
        /// The filter.
        filter: Filter,
        /// The revision.
        from: Revision,
        /// In milliseconds.
        wait_ms: u64,
    },
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchAnswer {
    /// To [`WatchCall::Now`].
    Now {
        /// The next revision.
        next: Revision,
        /// When a range of the filter came last.
        came: Option<Revision>,
    },
    /// To [`WatchCall::Open`].
    Opened {
        /// Where the watch goes on.
        place: Place,
        /// What has happened.
        past: Past,
    },
    /// To [`WatchCall::Next`].
    Events(Past),
    /// History begins only later.
    Compacted {
        /// With this revision.
        oldest: Revision,
    },
}

/// Changes that have happened, all of the filter up to a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// The changes.
    pub events: Vec<Event>,
    /// The revision.
    pub seen: Revision,
}

/// What has happened in a group, up to which revision, and where what happens will come.
pub type Subscription = (Vec<Arc<Event>>, Revision, mpsc::Receiver<Arc<Event>>);

impl Group {
    /// The revision that comes next here, and when a range of the filter came last.
    pub fn watched_now(&self, filter: &Filter) -> (Revision, Option<Revision>) {
        self.locks(|table| (Revision(table.revision().0 + 1), arrivals(table, filter).max()))
    }

    /// Whether this replica has what the map gives its group.
    pub fn agrees(&self, map: &PartitionMap) -> bool {
        let ranges = map.ranges_of(self.id());
        self.locks(|table| table.owns_exactly(&ranges))
    }

    /// Where a watch goes on here that had come so far. A group that had nothing to do with its filter before has no older
    /// changes of interest than those since a range came there.
    pub fn place_of(&self, filter: &Filter, known: Place, watched: bool) -> Place {
        if watched {
            return known;
        }
        let since = |since: &Revision| *since >= known.revision;
        let came = self.locks(|table| arrivals(table, filter).filter(since).min());
        came.map_or(known, Place::at)
    }

    /// Reads the past and registers for the future in one step, so that nothing falls between.
    ///
    /// # Errors
    /// Where the past is not kept any more.
    pub fn subscribe(&self, filter: &Filter, from: Revision) -> Result<Subscription, Rejection> {
        let (queue, live) = mpsc::channel(WATCHER_QUEUE);
        self.locks(|table| {
            let past = history(table, filter, from, usize::MAX)?.events.into_iter().map(Arc::new).collect();
            let seen = table.revision();
            self.audiences().watchers.joins();
            self.fanout().do_send(Watch { filter: filter.clone(), seen, queue });
            Ok((past, seen, live))
        })
    }

    /// Answers a watch on another member.
    pub(crate) async fn watch(
        &self,
        call: WatchCall,
        map: MapWatch,
        patience: Duration,
    ) -> Result<WatchAnswer, GroupError> {
        let answer = match call {
            WatchCall::Now { filter } => {
                let (next, came) = self.watched_now(&filter);
                Ok(WatchAnswer::Now { next, came })
            }
            WatchCall::Open { filter, known, watched, epoch } => {
                if tokio::time::timeout(patience, self.seen_map(map, epoch)).await.is_err() {
                    return Err(GroupError::NotLeader { leader: None });
                }
                let place = self.place_of(&filter, known, watched);
                let past = self.locks(|table| history(table, &filter, place.revision, usize::MAX));
                past.map(|past| WatchAnswer::Opened { place, past })
            }
            WatchCall::Next { filter, from, wait_ms } => {
                let limit = Duration::from_millis(wait_ms).min(patience);
                self.next_changes(&filter, from, limit).await.map(WatchAnswer::Events)
            }
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(Rejection::Compacted { oldest }) => Ok(WatchAnswer::Compacted { oldest }),
            Err(other) => Err(GroupError::Rejected(other)),
        }
    }

    /// Waits until this member has a map of this epoch and this replica what that gives its group.
    async fn seen_map(&self, mut map: MapWatch, epoch: MapEpoch) {
        loop {
            let now = map.borrow_and_update().clone();
            if now.is_some_and(|now| now.epoch() >= epoch && self.agrees(&now)) {
                return;
            }
            // Whichever comes first, the next look decides; a map that will never change is not asked again at once.
            if let Ok(Err(_)) = tokio::time::timeout(LOOK_EVERY, map.changed()).await {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }

    async fn next_changes(
        &self,
        filter: &Filter,
        from: Revision,
        limit: Duration,
    ) -> Result<Past, Rejection> {
        let (past, _, mut live) = self.subscribe(filter, from)?;
        if past.is_empty() {
            // It says only that there is something: all changes of a revision are read together.
            drop(tokio::time::timeout(limit, live.recv()).await);
        }
        self.locks(|table| history(table, filter, from, MOST_EVENTS))
    }
}

/// Whether a range may hold a name of the filter.
pub fn touches(range: &Range, filter: &Filter) -> bool {
    match filter {
        Filter::Name(name) => range.contains(name.internal()),
        Filter::Prefix { prefix, .. } => range.touches(prefix),
    }
}

fn arrivals<'t>(table: &'t LockTable, filter: &'t Filter) -> impl Iterator<Item = Revision> + 't {
    table.arrivals(move |range| touches(range, filter))
}

/// What has happened from a revision on; all changes of a revision or none of them, and about so many at most.
fn history(table: &LockTable, filter: &Filter, from: Revision, most: usize) -> Result<Past, Rejection> {
    let seen = table.revision();
    if from > seen {
        return Ok(Past { events: Vec::new(), seen });
    }
    let mut events: Vec<Event> = Vec::new();
    for event in table.history(from)? {
        if !name_of(event).is_some_and(|name| filter.matches(name)) {
            continue;
        }
        let last = events.last().map(|last| last.revision);
        if events.len() >= most
            && let Some(last) = last.filter(|last| *last < event.revision)
        {
            return Ok(Past { events, seen: last });
        }
        events.push(event.clone());
    }
    Ok(Past { events, seen })
}
