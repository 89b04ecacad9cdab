//! One queue: its keys in order of create revisions. Never empty; most have one key only, and cost no tree.

use alloc::collections::BTreeMap;
use core::mem;

use crate::ids::{Revision, SessionId};

/// One key in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Its create revision, by which the queue is ordered.
    pub(crate) revision: Revision,
    /// Whose key it is: with the queue's name that makes the key.
    pub(crate) session: SessionId,
}

/// The keys of a queue. `Many` has at least two, so that equal queues are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// A holder alone.
    One(Slot),
    /// A holder and its waiters.
    Many(BTreeMap<Revision, Slot>),
}

impl Queue {
    /// Takes a key in.
    pub(crate) fn insert(&mut self, slot: Slot) {
        match self {
            Self::Many(slots) => {
                slots.insert(slot.revision, slot);
            }
            Self::One(first) if first.revision == slot.revision => *first = slot,
            Self::One(first) => {
                *self = Self::Many(BTreeMap::from([(first.revision, *first), (slot.revision, slot)]));
            }
        }
    }

    /// Takes a key out, if it is not the only one.
    pub(crate) fn remove(&mut self, revision: Revision) {
        let Self::Many(slots) = self else { return };
        slots.remove(&revision);
        if slots.len() > 1 {
            return;
        }
        if let Some((_, last)) = mem::take(slots).pop_first() {
            *self = Self::One(last);
        }
    }

    /// How many keys it has; at least 1.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(slots) => slots.len(),
        }
    }

    /// The holder's key.
    pub(crate) fn head(&self) -> Option<&Slot> {
        match self {
            Self::One(slot) => Some(slot),
            Self::Many(slots) => slots.first_key_value().map(|(_, slot)| slot),
        }
    }

    /// The key with this create revision.
    pub(crate) fn get(&self, revision: Revision) -> Option<&Slot> {
        match self {
            Self::One(slot) => Some(slot).filter(|slot| slot.revision == revision),
            Self::Many(slots) => slots.get(&revision),
        }
    }

    /// How many keys stand before this create revision. At the end of the queue, where new keys stand, it is only looked
    /// up; in the middle it is counted.
    pub(crate) fn ahead(&self, revision: Revision) -> usize {
        match self {
            Self::One(slot) => usize::from(slot.revision < revision),
            Self::Many(slots) => match slots.last_key_value() {
                Some((last, _)) if *last == revision => slots.len() - 1,
                Some(_) | None => slots.range(..revision).count(),
            },
        }
    }

    /// All keys, the holder's first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        let (one, many) = match self {
            Self::One(slot) => (Some(slot), None),
            Self::Many(slots) => (None, Some(slots.values())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::sample::id;

    fn slot(revision: u64) -> Slot {
        Slot { revision: Revision(revision), session: id(revision) }
    }

    fn revisions(queue: &Queue) -> Vec<u64> {
        queue.iter().map(|slot| slot.revision.0).collect()
    }

    #[test]
    fn keys_come_in_order_and_the_last_one_left_stands_alone() {
        let mut queue = Queue::One(slot(5));
        for revision in [9, 2, 7] {
            queue.insert(slot(revision));
        }
        assert_eq!((revisions(&queue), queue.len()), (Vec::from([2, 5, 7, 9]), 4));
        assert_eq!(queue.head(), Some(&slot(2)));
        for (revision, ahead) in [(2, 0), (5, 1), (7, 2), (9, 3), (10, 4)] {
            assert_eq!(queue.ahead(Revision(revision)), ahead);
        }
        assert_eq!((queue.get(Revision(7)), queue.get(Revision(8))), (Some(&slot(7)), None));
        for revision in [2, 9, 5, 4] {
            queue.remove(Revision(revision));
        }
        assert_eq!(queue, Queue::One(slot(7)));
        assert_eq!((queue.ahead(Revision(7)), queue.ahead(Revision(8))), (0, 1));
    }
}
