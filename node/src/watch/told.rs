//! Which calls were told of which grants, lately: plain state.
//!
//! A call whose client has gone gives its grant back, but only where no other call of the same request was told of it too.
//! Knows nothing of time and of queues; what it has forgotten counts as told to somebody.

use std::collections::{BTreeMap, VecDeque};

use holdfast_partitioner::Range;
use serde::{Deserialize, Serialize};

use super::waits::WaitKey;

/// Grants that are remembered; beyond it the oldest is forgotten. A client that has gone is reported within a few seconds.
pub const REMEMBERED: usize = 16_384;

/// One call at an endpoint, for all that is repeated on its behalf. Chosen at random there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptId(pub u64);

/// Whom a grant was told to, but for a call that has just gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Somebody else was told.
    Some,
    /// Nobody else was.
    None,
    /// Nothing is known of this grant: never told here, or long ago.
    Unknown,
}

/// The calls that were told of grants by this leader.
#[derive(Debug, Default)]
pub struct Told {
    attempts: BTreeMap<WaitKey, Vec<AttemptId>>,
    order: VecDeque<WaitKey>,
}

impl Told {
    /// A call is about to hear that its request was granted.
    pub fn add(&mut self, key: &WaitKey, attempt: AttemptId) {
        if let Some(attempts) = self.attempts.get_mut(key) {
            if !attempts.contains(&attempt) {
                attempts.push(attempt);
            }
            return;
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.attempts.remove(&oldest);
        }
        self.attempts.insert(key.clone(), vec![attempt]);
        self.order.push_back(key.clone());
    }

    /// The client of a call has gone: was anybody else told?
    pub fn gone(&mut self, key: &WaitKey, attempt: AttemptId) -> Others {
        let Some(attempts) = self.attempts.get_mut(key) else { return Others::Unknown };
        attempts.retain(|told| *told != attempt);
        // An emptied entry stays in its place in the order, and is known to be nobody's.
        if attempts.is_empty() { Others::None } else { Others::Some }
    }

    /// Another group tells of grants in this range from here on.
    pub fn forget(&mut self, range: &Range) {
        self.attempts.retain(|key, _| !range.contains(key.name.internal()));
        self.order.retain(|key| self.attempts.contains_key(key));
    }

    /// Another leader tells from here on.
    pub fn clear(&mut self) {
        self.attempts.clear();
        self.order.clear();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use holdfast_locktable::{ids::SessionId, name::Name};
    use holdfast_partitioner::Part;

    use super::{super::waits::RequestKey, *};

    pub(in super::super) fn key(sequence: u64) -> WaitKey {
        WaitKey {
            name: Name::lock("job").unwrap(),
            session: SessionId::new(1).unwrap(),
            request: RequestKey::Sequence(sequence),
        }
    }

    #[test]
    fn a_grant_is_nobodys_once_all_who_were_told_have_gone() {
        let mut told = Told::default();
        told.add(&key(1), AttemptId(1));
        told.add(&key(1), AttemptId(2));
        told.add(&key(1), AttemptId(2));
        assert_eq!(told.gone(&key(1), AttemptId(3)), Others::Some);
        assert_eq!(told.gone(&key(1), AttemptId(1)), Others::Some);
        assert_eq!(told.gone(&key(1), AttemptId(2)), Others::None);
        assert_eq!(told.gone(&key(2), AttemptId(2)), Others::Unknown);
    }

    #[test]
    fn what_another_group_tells_of_is_forgotten() {
        let mut told = Told::default();
        told.add(&key(1), AttemptId(1));
        told.forget(&Range::new("other", [], Part::All));
        assert_eq!(told.gone(&key(1), AttemptId(2)), Others::Some);
        told.forget(&Range::everything());
        assert_eq!(told.gone(&key(1), AttemptId(2)), Others::Unknown);
        assert_eq!((told.attempts.len(), told.order.len()), (0, 0));
    }

    #[test]
    fn the_oldest_grant_is_forgotten_and_counts_as_told_to_somebody() {
        let mut told = Told::default();
        for sequence in 0..=REMEMBERED as u64 {
            told.add(&key(sequence), AttemptId(1));
        }
        assert_eq!(told.gone(&key(0), AttemptId(1)), Others::Unknown);
        assert_eq!(told.gone(&key(1), AttemptId(1)), Others::None);
        assert_eq!((told.attempts.len(), told.order.len()), (REMEMBERED, REMEMBERED));
    }
}
