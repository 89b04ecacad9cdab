//! Who watches which names of a group: plain state over bounded queues.
//!
//! Knows filters, positions and lag. Does not know sockets or other groups.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use holdfast_locktable::{
    event::{Change, Event},
    ids::Revision,
    name::{Name, NameKind},
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// Events that a watcher may fall behind. One that is slower loses its stream and resumes from its cursor.
pub const WATCHER_QUEUE: usize = 1_024;

/// Which names a watcher wants to hear of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filter {
    /// Exactly this queue.
    Name(Name),
    /// Queues of one kind whose name begins with a prefix.
    Prefix {
        /// Locks or elections.
        kind: NameKind,
        /// Beginning of the name as users write it; empty for all.
        prefix: String,
    },
}

impl Filter {
    /// Whether it wants this queue.
    pub fn matches(&self, name: &Name) -> bool {
        match self {
            Self::Name(wanted) => wanted == name,
            Self::Prefix { kind, prefix } => name.kind() == *kind && name.text().starts_with(prefix.as_str()),
        }
    }
}

/// The queue an event belongs to; `None` for ordinary keys.
pub fn name_of(event: &Event) -> Option<&Name> {
    match &event.change {
        Change::Grant { name, .. } => Some(name),
        Change::Put { name, .. } | Change::Delete { name, .. } => name.as_ref(),
    }
}

#[derive(Debug)]
struct Watcher {
    filter: Filter,
    /// Events up to here have been given to it already.
    seen: Revision,
    queue: mpsc::Sender<Arc<Event>>,
}

/// The watchers of one group on one member.
#[derive(Debug, Default)]
pub struct Watchers {
    watchers: Vec<Watcher>,
    audience: Audience,
}

/// How many listen to a group on this member, those on their way to its fan-out included: without any, nobody need be
/// told. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Audience(Arc<AtomicUsize>);

impl Audience {
    /// One is about to be added. To be called under the table's lock, so that whatever is applied next is told.
    pub fn joins(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there is anybody.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    pub(super) fn leaves(&self, count: usize) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }
}

impl Watchers {
    /// No watchers yet; `audience` counts those who have joined.
    pub fn new(audience: Audience) -> Self {
        Self { watchers: Vec::new(), audience }
    }

    /// Adds a watcher that has joined the audience and has seen everything up to `seen`. Dropping the other end removes it.
    pub fn add(&mut self, filter: Filter, seen: Revision, queue: mpsc::Sender<Arc<Event>>) {
        self.watchers.push(Watcher { filter, seen, queue });
    }

    /// Gives the events of one entry to everyone who wants them. A watcher whose queue is full or gone is dropped: its
    /// stream ends after what it has, and it resumes from its cursor.
    pub fn publish(&mut self, events: &[Arc<Event>]) {
        let before = self.watchers.len();
        self.watchers.retain_mut(|watcher| watcher.offer(events));
        self.audience.leaves(before - self.watchers.len());
    }

    /// The table was replaced by a snapshot: nobody knows what happened in between, so every stream ends.
    pub fn restored(&mut self) {
        self.audience.leaves(self.watchers.len());
        self.watchers.clear();
    }

    /// How many watch.
    pub fn count(&self) -> usize {
        self.watchers.len()
    }
}

impl Watcher {
    fn offer(&mut self, events: &[Arc<Event>]) -> bool {
        let wanted = |event: &&Arc<Event>| {
            event.revision > self.seen && name_of(event).is_some_and(|name| self.filter.matches(name))
        };
        for event in events.iter().filter(wanted) {
            if self.queue.try_send(event.clone()).is_err() {
                return false;
            }
        }
        !self.queue.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use holdfast_locktable::ids::SessionId;

    use super::*;

    fn grant(name: &str, revision: u64) -> Arc<Event> {
        let (session, token) = (SessionId::new(1).unwrap(), Revision(revision));
        let change = Change::Grant { name: Name::lock(name).unwrap(), session, token };
        Arc::new(Event { revision: Revision(revision), at_ms: 0, change })
    }

    fn prefix(prefix: &str) -> Filter {
        Filter::Prefix { kind: NameKind::Lock, prefix: prefix.to_owned() }
    }

    #[test]
    fn a_watcher_hears_what_it_asked_for_in_order_and_nothing_twice() {
        let audience = Audience::default();
        let mut watchers = Watchers::new(audience.clone());
        assert!(audience.is_empty());
        let (tx, mut rx) = mpsc::channel(8);
        audience.joins();
        watchers.add(prefix("jobs/"), Revision(2), tx);
        watchers.publish(&[grant("jobs/a", 2)]);
        watchers.publish(&[grant("jobs/a", 3), grant("other", 4), grant("jobs/b", 5)]);
        let heard: Vec<u64> = std::iter::from_fn(|| rx.try_recv().ok()).map(|e| e.revision.0).collect();
        assert_eq!(heard, [3, 5]);
        assert!(!audience.is_empty());
        drop(rx);
        watchers.publish(&[]);
        assert!(audience.is_empty());
    }

    #[test]
    fn a_slow_watcher_loses_its_stream_and_holds_up_nobody() {
        let audience = Audience::default();
        let mut watchers = Watchers::new(audience.clone());
        audience.joins();
        audience.joins();
        let (slow, mut slow_rx) = mpsc::channel(1);
        let (quick, mut quick_rx) = mpsc::channel(8);
        watchers.add(prefix(""), Revision(0), slow);
        watchers.add(prefix(""), Revision(0), quick);
        watchers.publish(&[grant("a", 1), grant("a", 2)]);
        assert_eq!(watchers.count(), 1);
        assert_eq!(slow_rx.try_recv().map(|e| e.revision.0), Ok(1));
        assert_eq!(slow_rx.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
        assert_eq!(quick_rx.try_recv().map(|e| e.revision.0), Ok(1));
    }

    #[test]
    fn an_exact_filter_is_no_prefix_and_an_election_is_no_lock() {
        let filter = Filter::Name(Name::lock("job").unwrap());
        assert!(filter.matches(&Name::lock("job").unwrap()));
        assert!(!filter.matches(&Name::lock("job1").unwrap()));
        assert!(!prefix("job").matches(&Name::election("job").unwrap()));
    }
}
