//! What one group owns, decidable from a list of ranges alone. Knows no map: a group keeps its ranges in its
//! replicated state, and apply asks them (rule R16).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::hash::slot_of_key;
use crate::name::{is_within_marker, key_is_decided, partition_key, routed_name};
use crate::slots::SlotSet;

pub(crate) mod difference;

pub use difference::{covers, same_names, without};

/// A set of lock names: those below a prefix and outside its excluded longer prefixes whose partition key is in the
/// part.
///
/// Ranges of one valid map are disjoint over all groups and together hold every name. Two ranges built from the same
/// ingredients, in any order, are equal and have equal bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Range {
    prefix: String,
    excluded: Vec<String>,
    part: Part,
}

/// Which partition keys below the prefix belong to a [`Range`]. Variants are encoded by position: append only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// All of them.
    All,
    /// Those whose hash falls into a slot of `owned`.
    Slots {
        /// Segments after the prefix that belong to the partition key.
        depth: u16,
        /// Number of slots of the whole table, at least 1.
        slots: u16,
        /// The slots that belong to the range.
        owned: SlotSet,
    },
    /// Those from `from` up to, not including, `to`, compared byte by byte.
    Keys {
        /// Segments after the prefix that belong to the partition key.
        depth: u16,
        /// Lowest key of the interval; the empty string is below all keys.
        from: String,
        /// First key after the interval; `None` means that it is open above.
        to: Option<String>,
    },
}

impl Range {
    /// A range in canonical form.
    ///
    /// `excluded` is sorted and reduced to those entries that take something away: longer than `prefix`, not below
    /// another entry, and of keys that `part` may hold. A part that holds every key becomes [`Part::All`].
    #[must_use]
    pub fn new(prefix: impl Into<String>, excluded: impl IntoIterator<Item = String>, part: Part) -> Self {
        let prefix = prefix.into();
        let part = part.canonical(&prefix);
        let mut candidates: Vec<String> = excluded
            .into_iter()
            .filter(|longer| longer.len() > prefix.len() && longer.starts_with(&prefix))
            .filter(|longer| part.touches(&prefix, longer))
            .collect();
        candidates.sort();
        let mut excluded: Vec<String> = Vec::new();
        for longer in candidates {
            if !excluded.last().is_some_and(|kept| longer.starts_with(kept)) {
                excluded.push(longer);
            }
        }
        Self { prefix, excluded, part }
    }

    /// The range that holds every name: what the only lock group of a cluster owns.
    #[must_use]
    pub const fn everything() -> Self {
        Self { prefix: String::new(), excluded: Vec::new(), part: Part::All }
    }

    /// The prefix that all names of the range share.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Longer prefixes below [`prefix`](Self::prefix) whose names do not belong to the range, sorted.
    #[must_use]
    pub fn excluded(&self) -> &[String] {
        &self.excluded
    }

    /// Which partition keys belong to the range.
    #[must_use]
    pub const fn part(&self) -> &Part {
        &self.part
    }

    /// Whether the lock or election queue `name` belongs to the range. Takes the **lock name**, not one of its keys.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        let name = routed_name(name);
        name.starts_with(&self.prefix)
            && !self.excluded.iter().any(|longer| name.starts_with(longer.as_str()))
            && self.part.contains(&self.prefix, name)
    }

    /// Whether some name that begins with `start` may belong to the range: whom to ask when listing or watching a
    /// prefix. May say yes where no such name exists, never no where one does.
    #[must_use]
    pub fn touches(&self, start: &str) -> bool {
        if is_within_marker(start) {
            return true;
        }
        let start = routed_name(start);
        if self.prefix.starts_with(start) {
            return true;
        }
        start.starts_with(&self.prefix)
            && !self.excluded.iter().any(|longer| start.starts_with(longer.as_str()))
            && self.part.touches(&self.prefix, start)
    }
}

/// Whether any of `ranges` contains the lock or election queue `name`: the ownership check of apply.
#[must_use]
pub fn owns(ranges: &[Range], name: &str) -> bool {
    ranges.iter().any(|range| range.contains(name))
}

impl Part {
    /// Whether the part holds the partition key of `name`, a routed name below `prefix`.
    fn contains(&self, prefix: &str, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Slots { depth, slots, owned } => {
                owned.contains(slot_of_key(partition_key(name, prefix, *depth), *slots))
            }
            Self::Keys { depth, from, to } => {
                let key = partition_key(name, prefix, *depth);
                from.as_str() <= key && to.as_ref().is_none_or(|to| key < to.as_str())
            }
        }
    }

    /// Whether the part may hold the key of some name beginning with `start`, which itself is below `prefix`.
    fn touches(&self, prefix: &str, start: &str) -> bool {
        match self {
            Self::All => true,
            Self::Slots { depth, .. } => {
                !key_is_decided(start, prefix, *depth) || self.contains(prefix, start)
            }
            Self::Keys { depth, from, to } => {
                if key_is_decided(start, prefix, *depth) {
                    return self.contains(prefix, start);
                }
                // The keys in question are all those that begin with `start`.
                let begins_in_time = from.as_str() <= start || from.starts_with(start);
                begins_in_time && to.as_ref().is_none_or(|to| start < to.as_str())
            }
        }
    }

    fn canonical(self, prefix: &str) -> Self {
        match self {
            Self::All => Self::All,
            Self::Slots { depth, slots, owned } => {
                if slots > 0 && owned.runs() == [(0, slots - 1)] {
                    return Self::All;
                }
                Self::Slots { depth, slots, owned }
            }
            Self::Keys { depth, from, to } => {
                // Every key begins with the prefix, so an interval that starts at or below it has no lower end.
                let from = if from.as_str() <= prefix { String::new() } else { from };
                match to {
                    None if from.is_empty() => Self::All,
                    to => Self::Keys { depth, from, to },
                }
            }
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.prefix)?;
        match &self.part {
            Part::All => {}
            Part::Slots { depth, slots, owned } => write!(f, " depth {depth} slots {owned} of {slots}")?,
            Part::Keys { depth, from, to: Some(to) } => write!(f, " depth {depth} keys {from:?}..{to:?}")?,
            Part::Keys { depth, from, to: None } => write!(f, " depth {depth} keys {from:?}..")?,
        }
        for (index, longer) in self.excluded.iter().enumerate() {
            write!(f, "{}{longer:?}", if index == 0 { " except " } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
