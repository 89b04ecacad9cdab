//! What can be derived from the keys: queues by name, keys by session, lengths of queues. Never in a snapshot.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
};
use core::mem;

use bytes::Bytes;
use holdfast_partitioner::Range;

use super::{
    queue::{Queue, Slot},
    state::Key,
};
use crate::{
    ids::{Revision, SessionId},
    name::Name,
    route,
};

/// A map that is so many times larger than what comes into it is not built anew.
const FEW: usize = 16;

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

    /// Keeps only some keys, at least one.
    fn retain(&mut self, keep: impl Fn(&Bytes) -> bool) {
        let Self::Many(keys) = self else { return };
        keys.retain(keep);
        if keys.len() == 1
            && let Some(last) = keys.pop_first()
        {
            *self = Self::One(last);
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(keys) => keys.len(),
        }
    }

    /// Takes other keys in.
    fn append(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::One(key)) => self.insert(&key),
            (Self::One(first), Self::Many(mut keys)) => {
                keys.insert(mem::take(first));
                *self = Self::Many(keys);
            }
            (Self::Many(keys), Self::Many(mut others)) => keys.append(&mut others),
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
        resize(&mut self.lengths, length - 1, length);
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
        resize(&mut self.lengths, length + 1, length);
    }

    /// Takes all keys of a range out, in a step for each queue and session and not for each key: `gone` are those keys.
    pub(crate) fn remove_range(&mut self, range: &Range, gone: &[(Bytes, Box<Key>)]) {
        for (_, queue) in self.queues.extract_if(.., |name, _| range.contains(name.internal())) {
            self.places -= queue.len();
            resize(&mut self.lengths, queue.len(), 0);
        }
        let mut leave: BTreeMap<SessionId, usize> = BTreeMap::new();
        for session in gone.iter().filter_map(|(_, record)| record.lease) {
            *leave.entry(session).or_insert(0) += 1;
        }
        let stays = |key: &Bytes| !range.contains(&route::of_key(key));
        for (session, leave) in leave {
            let Entry::Occupied(mut keys) = self.by_session.entry(session) else { continue };
            if keys.get().len() == leave {
                keys.remove();
            } else {
                keys.get_mut().retain(stays);
            }
        }
    }

    /// Takes in what another index has, of keys and queues that this one does not have.
    pub(crate) fn append(&mut self, other: Self) {
        for (session, keys) in other.by_session {
            match self.by_session.entry(session) {
                Entry::Vacant(vacant) => {
                    vacant.insert(keys);
                }
                Entry::Occupied(mut known) => known.get_mut().append(keys),
            }
        }
        merge(&mut self.queues, other.queues);
        for (length, count) in other.lengths {
            *self.lengths.entry(length).or_insert(0) += count;
        }
        self.places += other.places;
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

/// One queue has another length.
fn resize(lengths: &mut BTreeMap<usize, usize>, from: usize, to: usize) {
    if let Some(count) = lengths.get_mut(&from) {
        *count -= 1;
        if *count == 0 {
            lengths.remove(&from);
        }
    }
    if to > 0 {
        *lengths.entry(to).or_insert(0) += 1;
    }
}

/// Puts a map into another one: one by one where there are few, and else by building it anew, which costs as much as its size.
pub(super) fn merge<K: Ord, V>(all: &mut BTreeMap<K, V>, mut more: BTreeMap<K, V>) {
    if more.len() < all.len() / FEW {
        all.extend(more);
    } else {
        all.append(&mut more);
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec::Vec};

    use holdfast_partitioner::Part;

    use super::*;
    use crate::sample::*;

    /// The keys of a table with a queue of each of these lengths.
    fn keys(prefix: &str, lengths: &[u64]) -> BTreeMap<Bytes, Box<Key>> {
        let mut table = with_sessions(4);
        for (number, length) in lengths.iter().enumerate() {
            for session in 1..=*length {
                let name = format!("{prefix}{number}");
                ask(&mut table, session, &name, text(&name)).unwrap();
            }
        }
        table.state.keys
    }

    #[test]
    fn what_is_appended_or_removed_at_once_is_as_if_it_were_one_by_one() {
        for (there, comes) in
            [(&[1, 3, 2][..], &[1, 1, 2][..]), (&[], &[4]), (&[2], &[]), (&[1; 40], &[1]), (&[1], &[1; 40])]
        {
            let (there, comes) = (keys("there/", there), keys("comes/", comes));
            let mut index = Index::of(&there);
            index.append(Index::of(&comes));
            let mut all = there.clone();
            merge(&mut all, comes.clone());
            assert_eq!(index, Index::of(&all));
            let range = Range::new(lock("comes/").internal(), [], Part::All);
            let gone: Vec<_> = comes.into_iter().collect();
            index.remove_range(&range, &gone);
            assert_eq!(index, Index::of(&there));
        }
    }
}
