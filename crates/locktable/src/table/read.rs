//! Reads: nothing here changes anything. Views are copies, so that a reader holds no lock on the table.

mod claims;
mod keys;
mod queues;
mod requests;
mod sessions;

use holdfast_partitioner::{GroupId, Range};

pub use self::{queues::WaitView, requests::RequestState};
use super::{LockTable, history};
use crate::{
    event::Event,
    ids::{MoveNumber, Revision, Token},
    name::Name,
    outcome::Rejection,
    view::Counts,
};

impl LockTable {
    /// The group whose state this is.
    pub fn group(&self) -> GroupId {
        self.state.group
    }

    /// The revision of the last entry that changed keys; 0 before the first.
    pub fn revision(&self) -> Revision {
        self.state.revision
    }

    /// The first revision whose events are kept.
    pub fn oldest_revision(&self) -> Revision {
        self.state.history.oldest()
    }

    /// The events from a revision on, in order; none where it lies in the future.
    ///
    /// # Errors
    /// [`Rejection::Compacted`] where events of that revision or a later one are gone.
    pub fn history(&self, from: Revision) -> Result<impl Iterator<Item = &Event>, Rejection> {
        self.state.history.from(from).ok_or(Rejection::Compacted { oldest: self.state.history.oldest() })
    }

    /// Whether the key with this create revision stands in a queue, as holder or waiter.
    pub fn stands(&self, name: &Name, token: Token) -> bool {
        self.index.queue(name).is_some_and(|queue| queue.get(token).is_some())
    }

    /// The last events of one queue that are still kept, at most `last`, oldest first.
    pub fn history_of(&self, name: &Name, last: usize) -> alloc::vec::Vec<Event> {
        let newest = self.state.history.events().iter().rev();
        let mut found: alloc::vec::Vec<Event> =
            newest.filter(|event| history::queue_of(event) == Some(name)).take(last).cloned().collect();
        found.reverse();
        found
    }

    /// What the group may change, as ranges of names.
    pub fn owned_ranges(&self) -> alloc::vec::Vec<Range> {
        self.state.ownership.ranges()
    }

    /// The move that this group takes part in: a range is sealed here, or on its way here.
    pub fn move_under_way(&self) -> Option<MoveNumber> {
        self.state.moves.under_way()
    }

    /// How many claims are shared here.
    pub fn claim_count(&self) -> usize {
        self.state.claims.live.len()
    }

    /// Sizes, for metrics. Costs nothing that grows with the table.
    pub fn counts(&self) -> Counts {
        let held = self.index.queues().len();
        let alone = self.index.lengths().get(&1).copied().unwrap_or(0);
        let longest = self.index.lengths().last_key_value().map_or(0, |(length, _)| length - 1);
        Counts {
            sessions: self.state.sessions.len() as u64,
            held: held as u64,
            waiting: (self.index.places() - held) as u64,
            contended: (held - alone) as u64,
            longest_queue: longest as u64,
            keys: self.state.keys.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests;
