//! What can be derived from the keys: queues by name, keys by session, lengths of queues. Never in a snapshot.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
};
use core::mem;

use bytes::Bytes;

use super::{
    queue::{Queue, Slot},
    state::Key,
};
use crate::{
    ids::{Revision, SessionId},
    name::Name,
};

/// The indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    queues: BTreeMap<Name, Queue>,
    by_session: BTreeMap<SessionId, Keys>,
    /// Length of queue → how many have it.
    lengths: BTreeMap<usize, usize>,
    /// Keys in all queues.
    places: usize,
}

/// The keys of a session. `Many` has at least two, so that equal indexes are equal values.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Keys {
    /// One alone, as most sessions have.
    One(Bytes),
    /// Several.
    Many(BTreeSet<Bytes>),
}

impl Keys {
    fn insert(&mut self, key: &Bytes) {
        match self {
            Self::Many(keys) => {
                keys.insert(key.clone());
            }
            Self::One(first) if first == key => {}
            Self::One(first) => *self = Self::Many(BTreeSet::from([mem::take(first), key.clone()])),
        }
    }

    /// Takes a key out. Whether none is left.
    fn remove(&mut self, key: &[u8]) -> bool {
        match self {
            Self::One(first) => first == key,
            Self::Many(keys) => {
                keys.remove(key);
                if keys.len() == 1
                    && let Some(last) = keys.pop_first()
                {
                    *self = Self::One(last);
                }
                false
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Bytes> {
        let (one, many) = match self {
            Self::One(key) => (Some(key), None),
            Self::Many(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl Index {
    /// Builds the indexes from all keys.
    pub(crate) fn of(keys: &BTreeMap<Bytes, Box<Key>>) -> Self {
        let mut index = Self::default();
        for (key, record) in keys {
            index.add(key, record);
        }
        index
    }

    /// Takes a key in.
    pub(crate) fn add(&mut self, key: &Bytes, record: &Key) {
        let Some(session) = record.lease else { return };
        match self.by_session.entry(session) {
            Entry::Vacant(vacant) => {
                vacant.insert(Keys::One(key.clone()));
            }
            Entry::Occupied(mut keys) => keys.get_mut().insert(key),
        }
        let Some(place) = &record.place else { return };
        let slot = Slot { revision: record.create, session };
        let length = match self.queues.entry(place.name.clone()) {
            Entry::Vacant(vacant) => vacant.insert(Queue::One(slot)).len(),
            Entry::Occupied(mut queue) => {
                queue.get_mut().insert(slot);
                queue.get().len()
            }
        };
        self.places += 1;
        self.resize(length - 1, length);
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, key: &[u8], record: &Key) {
        let Some(session) = record.lease else { return };
        if self.by_session.get_mut(&session).is_some_and(|keys| keys.remove(key)) {
            self.by_session.remove(&session);
        }
        let Some(place) = &record.place else { return };
        let Some(queue) = self.queues.get_mut(&place.name) else { return };
        let length = queue.len() - 1;
        if length == 0 {
            self.queues.remove(&place.name);
        } else {
            queue.remove(record.create);
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
    pub(crate) fn queues(&self) -> &BTreeMap<Name, Queue> {
        &self.queues
    }

    /// One queue.
    pub(crate) fn queue(&self, name: &Name) -> Option<&Queue> {
        self.queues.get(name)
    }

    /// The holder's key.
    pub(crate) fn head(&self, name: &Name) -> Option<&Slot> {
        self.queues.get(name)?.head()
    }

    /// How many stand before the key with this create revision.
    pub(crate) fn ahead(&self, name: &Name, revision: Revision) -> u32 {
        let before = self.queues.get(name).map_or(0, |queue| queue.ahead(revision));
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// The keys that hang on a session, in key order.
    pub(crate) fn keys_of(&self, session: SessionId) -> impl Iterator<Item = &Bytes> {
        self.by_session.get(&session).into_iter().flat_map(Keys::iter)
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
