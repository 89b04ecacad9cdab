//! Partition key → group. A table is plain data: no strategy is needed to read it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::hash::slot_of_key;
use crate::ids::GroupId;
use crate::name::{key_is_decided, partition_key};
use crate::range::Part;
use crate::slots::SlotSet;

/// Most slots, and most split keys, of one table.
pub const MAX_TABLE_ENTRIES: u16 = 4096;

/// Which group owns which partition key. Variants are encoded by position: append only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// The owner of each hash slot; the slot of a key is its hash modulo their number. One slot pins everything.
    Slots(Vec<GroupId>),
    /// The owner of each key interval, by its lowest key. The first interval starts at the empty key, each ends where
    /// the next starts.
    Splits(BTreeMap<String, GroupId>),
}

impl Table {
    /// The group that owns a partition key, or `None` where the table is not valid and has no entry for it.
    #[must_use]
    pub fn owner(&self, key: &str) -> Option<GroupId> {
        match self {
            Self::Slots(owners) => {
                let slots = u16::try_from(owners.len()).ok()?;
                owners.get(usize::from(slot_of_key(key, slots))).copied()
            }
            Self::Splits(splits) => splits
                .range::<str, _>((core::ops::Bound::Unbounded, core::ops::Bound::Included(key)))
                .next_back()
                .map(|(_, group)| *group),
        }
    }

    /// Every group that owns a part of the table.
    #[must_use]
    pub fn groups(&self) -> BTreeSet<GroupId> {
        match self {
            Self::Slots(owners) => owners.iter().copied().collect(),
            Self::Splits(splits) => splits.values().copied().collect(),
        }
    }

    /// Groups that may own the key of a name beginning with `start`, which itself is below `prefix`.
    pub(crate) fn groups_under(&self, start: &str, prefix: &str, depth: u16) -> BTreeSet<GroupId> {
        if key_is_decided(start, prefix, depth) {
            return self.owner(partition_key(start, prefix, depth)).into_iter().collect();
        }
        match self {
            Self::Slots(_) => self.groups(),
            // The keys in question are all those that begin with `start`.
            Self::Splits(splits) => {
                let above = splits.range::<str, _>((Bound::Excluded(start), Bound::Unbounded));
                let within = above.take_while(|(key, _)| key.starts_with(start)).map(|(_, group)| *group);
                within.chain(self.owner(start)).collect()
            }
        }
    }

    /// Number of slots or intervals.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Slots(owners) => owners.len(),
            Self::Splits(splits) => splits.len(),
        }
    }

    /// Whether the table has no entry; no valid table has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parts that `group` owns: at most one of slots, or one for each interval that has no equal neighbour.
    pub(crate) fn parts_of(&self, group: GroupId, depth: u16) -> Vec<Part> {
        match self {
            Self::Slots(owners) => {
                let owned: SlotSet =
                    (0..).zip(owners).filter(|(_, owner)| **owner == group).map(|(slot, _)| slot).collect();
                match u16::try_from(owners.len()) {
                    Ok(slots) if !owned.is_empty() => Vec::from([Part::Slots { depth, slots, owned }]),
                    Ok(_) | Err(_) => Vec::new(),
                }
            }
            Self::Splits(splits) => intervals_of(splits, group, depth),
        }
    }
}

fn intervals_of(splits: &BTreeMap<String, GroupId>, group: GroupId, depth: u16) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut open: Option<&String> = None;
    for (key, owner) in splits {
        match open {
            None if *owner == group => open = Some(key),
            Some(from) if *owner != group => {
                parts.push(Part::Keys { depth, from: from.clone(), to: Some(key.clone()) });
                open = None;
            }
            None | Some(_) => {}
        }
    }
    if let Some(from) = open {
        parts.push(Part::Keys { depth, from: from.clone(), to: None });
    }
    parts
}
