//! The last events, for watches from a revision and for the history of one name. Always whole revisions.

use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::{
    event::{Change, Event},
    ids::Revision,
    name::Name,
};

/// Most events kept; more only where one entry alone has more. About the last 10,000 grants with their ends.
pub const HISTORY_EVENTS: usize = 32_768;
/// Most bytes of keys and values in the events kept, with 128 for each event; more only where one entry alone has more.
pub const HISTORY_BYTES: usize = 16 << 20;

/// A bounded run of events without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// The first revision of which everything is kept.
    oldest: Revision,
    events: VecDeque<Event>,
    /// Weight of all events; derived.
    #[serde(skip)]
    bytes: usize,
}

impl History {
    pub(crate) fn oldest(&self) -> Revision {
        self.oldest
    }

    pub(crate) fn events(&self) -> &VecDeque<Event> {
        &self.events
    }

    /// Weight of all events, as it is counted along.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the events of one entry and drops the oldest revisions over the bounds.
    pub(crate) fn push(&mut self, events: &[Event]) {
        self.bytes += events.iter().map(weight).sum::<usize>();
        // Before they are added: one event more than the bound would double the room that is kept for events.
        while self.events.len() + events.len() > HISTORY_EVENTS || self.bytes > HISTORY_BYTES {
            let Some(first) = self.events.front() else { break };
            let keep_from = Revision(first.revision.0 + 1);
            self.compact(keep_from);
        }
        self.events.extend(events.iter().cloned());
    }

    /// Drops everything below a revision.
    pub(crate) fn compact(&mut self, keep_from: Revision) {
        while let Some(first) = self.events.front() {
            if first.revision >= keep_from {
                break;
            }
            self.bytes -= weight(first).min(self.bytes);
            self.events.pop_front();
        }
        self.oldest = self.oldest.max(keep_from);
    }

    /// Counts the weight anew, after decoding.
    pub(crate) fn recount(&mut self) {
        self.bytes = self.events.iter().map(weight).sum();
    }

    /// Events from a revision on; `None` where some of them are gone.
    pub(crate) fn from(&self, from: Revision) -> Option<impl Iterator<Item = &Event>> {
        if from < self.oldest {
            return None;
        }
        let start = self.events.partition_point(|event| event.revision < from);
        Some(self.events.range(start..))
    }
}

/// What an event costs of [`HISTORY_BYTES`].
pub(crate) fn weight(event: &Event) -> usize {
    128 + match &event.change {
        Change::Put { key, value, .. } => key.len() + value.len(),
        Change::Grant { .. } => 0,
        Change::Delete { key, .. } => key.len(),
    }
}

/// The queue an event belongs to.
pub(crate) fn queue_of(event: &Event) -> Option<&Name> {
    match &event.change {
        Change::Put { name, .. } | Change::Delete { name, .. } => name.as_ref(),
        Change::Grant { name, .. } => Some(name),
    }
}
