//! What can be derived from the keys: queues by name, keys by session, lengths of queues. Never in a snapshot.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::state::Key;
use crate::{
    ids::{Revision, SessionId},
    name::Name,
};

/// One key in its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Its create revision, by which the queue is ordered.
    pub(crate) revision: Revision,
    pub(crate) session: SessionId,
    pub(crate) key: Bytes,
}

/// The indexes. A queue is never empty; new keys have the highest revision, so they go to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    queues: BTreeMap<Name, VecDeque<Slot>>,
    by_session: BTreeMap<SessionId, BTreeSet<Bytes>>,
    /// Length of queue → how many have it.
    lengths: BTreeMap<usize, usize>,
    /// Keys in all queues.
    places: usize,
}

impl Index {
    /// Builds the indexes from all keys.
    pub(crate) fn of(keys: &BTreeMap<Bytes, Key>) -> Self {
        let mut index = Self::default();
        for (key, record) in keys {
            index.add(key, record);
        }
        index
    }

    /// Takes a key in.
    pub(crate) fn add(&mut self, key: &Bytes, record: &Key) {
        let Some(session) = record.lease else { return };
        self.by_session.entry(session).or_default().insert(key.clone());
        let Some(place) = &record.place else { return };
        let queue = self.queues.entry(place.name.clone()).or_default();
        let at = queue.partition_point(|slot| slot.revision < record.create);
        queue.insert(at, Slot { revision: record.create, session, key: key.clone() });
        let length = queue.len();
        self.places += 1;
        self.resize(length - 1, length);
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, key: &[u8], record: &Key) {
        let Some(session) = record.lease else { return };
        if let Some(keys) = self.by_session.get_mut(&session) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_session.remove(&session);
            }
        }
        let Some(place) = &record.place else { return };
        let Some(queue) = self.queues.get_mut(&place.name) else { return };
        let Ok(at) = queue.binary_search_by_key(&record.create, |slot| slot.revision) else { return };
        queue.remove(at);
        let length = queue.len();
        if length == 0 {
            self.queues.remove(&place.name);
        }
        self.places -= 1;
        self.resize(length + 1, length);
    }

    fn resize(&mut self, from: usize, to: usize) {
        if let Some(count) = self.lengths.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&from);
            }
        }
        if to > 0 {
            *self.lengths.entry(to).or_insert(0) += 1;
        }
    }

    /// All queues in name order.
    pub(crate) fn queues(&self) -> &BTreeMap<Name, VecDeque<Slot>> {
        &self.queues
    }

    /// One queue.
    pub(crate) fn queue(&self, name: &Name) -> Option<&VecDeque<Slot>> {
        self.queues.get(name)
    }

    /// The holder's key.
    pub(crate) fn head(&self, name: &Name) -> Option<&Slot> {
        self.queues.get(name)?.front()
    }

    /// How many stand before the key with this create revision.
    pub(crate) fn ahead(&self, name: &Name, revision: Revision) -> u32 {
        let before = self.queues.get(name).map_or(0, |q| q.partition_point(|slot| slot.revision < revision));
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// The keys that hang on a session, in key order.
    pub(crate) fn keys_of(&self, session: SessionId) -> impl Iterator<Item = &Bytes> {
        self.by_session.get(&session).into_iter().flatten()
    }

    /// Length of queue → how many have it.
    pub(crate) fn lengths(&self) -> &BTreeMap<usize, usize> {
        &self.lengths
    }

    /// Keys in all queues.
    pub(crate) fn places(&self) -> usize {
        self.places
    }
}
