//! The heaviest keys of a stream in bounded memory: Space-Saving (Metwally, Agrawal, El Abbadi 2005), with weights, and
//! mergeable (Agarwal and others 2012). The same stream gives the same counters everywhere.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// One key that is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heavy {
    /// The key.
    pub key: String,
    /// At most its weight in the stream and `error` more, and never less than its weight.
    pub count: u64,
    /// How much of `count` may belong to other keys.
    pub error: u64,
}

impl Heavy {
    /// What certainly is the key's own weight.
    #[must_use]
    pub const fn at_least(&self) -> u64 {
        self.count.saturating_sub(self.error)
    }
}

/// Counters for at most so many keys. Any key that weighs more than the whole stream divided by their number is among
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopK {
    capacity: usize,
    /// Where each key stands in `heavy`.
    places: BTreeMap<String, usize>,
    heavy: Vec<Heavy>,
    /// The most that a key without a counter may have weighed in a sketch that was merged in.
    unseen: u64,
    total: u64,
}

impl TopK {
    /// No counts, and room for `capacity` keys, at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), places: BTreeMap::new(), heavy: Vec::new(), unseen: 0, total: 0 }
    }

    /// Weight of the whole stream.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Counts `weight` for `key`. Takes the place of the lightest key where there is no room: the lowest of them where
    /// several are equally light.
    pub fn add(&mut self, key: &str, weight: u64) {
        self.total = self.total.saturating_add(weight);
        if let Some(heavy) = self.places.get(key).and_then(|place| self.heavy.get_mut(*place)) {
            heavy.count = heavy.count.saturating_add(weight);
            return;
        }
        if self.heavy.len() < self.capacity {
            self.places.insert(key.into(), self.heavy.len());
            let count = self.unseen.saturating_add(weight);
            self.heavy.push(Heavy { key: key.into(), count, error: self.unseen });
            return;
        }
        let lightest = self.heavy.iter().enumerate().min_by(|(_, a), (_, b)| lighter(a, b));
        let Some(place) = lightest.map(|(place, _)| place) else { return };
        let Some(heavy) = self.heavy.get_mut(place) else { return };
        self.places.remove(&heavy.key);
        self.places.insert(key.into(), place);
        *heavy = Heavy { key: key.into(), count: heavy.count.saturating_add(weight), error: heavy.count };
    }

    /// Puts the counts of another stream in: what is true of both is true of the result.
    pub fn merge(&mut self, other: &Self) {
        let (floor, other_floor) = (self.floor(), other.floor());
        let mut all: BTreeMap<String, Heavy> = BTreeMap::new();
        for heavy in &self.heavy {
            let missing = if other.places.contains_key(&heavy.key) { 0 } else { other_floor };
            let count = heavy.count.saturating_add(missing);
            let error = heavy.error.saturating_add(missing);
            all.insert(heavy.key.clone(), Heavy { key: heavy.key.clone(), count, error });
        }
        for heavy in &other.heavy {
            let mine = all.entry(heavy.key.clone()).or_insert_with(|| Heavy {
                key: heavy.key.clone(),
                count: floor,
                error: floor,
            });
            mine.count = mine.count.saturating_add(heavy.count);
            mine.error = mine.error.saturating_add(heavy.error);
        }
        self.total = self.total.saturating_add(other.total);
        self.unseen = floor.saturating_add(other_floor);
        self.heavy = all.into_values().collect();
        self.heavy.sort_by(|a, b| lighter(b, a));
        self.heavy.truncate(self.capacity);
        self.places =
            self.heavy.iter().enumerate().map(|(place, heavy)| (heavy.key.clone(), place)).collect();
    }

    /// The keys that are counted, heaviest first.
    #[must_use]
    pub fn heaviest(&self) -> Vec<Heavy> {
        let mut heavy = self.heavy.clone();
        heavy.sort_by(|a, b| lighter(b, a));
        heavy
    }

    /// The most that a key without a counter can weigh.
    #[must_use]
    pub fn floor(&self) -> u64 {
        if self.heavy.len() < self.capacity {
            return self.unseen;
        }
        self.heavy.iter().map(|heavy| heavy.count).min().unwrap_or(0)
    }
}

/// By count; of equal ones the key that comes first is the heavier.
fn lighter(a: &Heavy, b: &Heavy) -> core::cmp::Ordering {
    (a.count, Reverse(&a.key)).cmp(&(b.count, Reverse(&b.key)))
}
