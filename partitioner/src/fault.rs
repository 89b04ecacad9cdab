//! All that can be wrong with a partition map, each fault told with its place. Changes nothing.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::ids::{GroupId, MapEpoch};
use crate::map::{HOME_SLOTS, MAX_RULES, MapParts, Rule};
use crate::name::{NameFault, check_start};
use crate::table::{MAX_TABLE_ENTRIES, Table};

/// One thing that keeps a map from being valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapFault {
    /// Epoch 0 means "no map".
    #[error("the map epoch is 0; the first map has epoch 1")]
    EpochZero,
    /// Some names would route nowhere.
    #[error(
        "there is no rule for the empty prefix; add one, it catches every name that no longer prefix matches"
    )]
    NoCatchAll,
    /// The map would grow without bound.
    #[error("there are {rules} rules; at most {MAX_RULES} are allowed, merge some")]
    TooManyRules {
        /// Rules in the map.
        rules: usize,
    },
    /// No name can begin with the prefix.
    #[error("nothing can match the prefix {prefix:?}: {fault}")]
    BadPrefix {
        /// The prefix of the rule.
        prefix: String,
        /// Why no name begins with it.
        fault: NameFault,
    },
    /// A rule must say which strategy computed its table.
    #[error("the rule for {prefix:?} names no strategy")]
    NoStrategy {
        /// The prefix of the rule.
        prefix: String,
    },
    /// The rule routes nowhere.
    #[error("the table for {prefix:?} is empty; give it at least one group")]
    EmptyTable {
        /// The prefix of the rule.
        prefix: String,
    },
    /// The table is too large.
    #[error("the table for {prefix:?} has {entries} entries; at most {MAX_TABLE_ENTRIES} are allowed")]
    TableTooLarge {
        /// The prefix of the rule.
        prefix: String,
        /// Slots or splits in the table.
        entries: usize,
    },
    /// The meta group holds no locks.
    #[error(
        "the table for {prefix:?} names group 0, the meta group, which holds no locks; use groups from 1"
    )]
    MetaOwnsLocks {
        /// The prefix of the rule.
        prefix: String,
    },
    /// Keys below the first split would route nowhere.
    #[error(
        "the first split of {prefix:?} is {first:?}; it must be the empty key, or lower keys have no group"
    )]
    FirstSplitNotEmpty {
        /// The prefix of the rule.
        prefix: String,
        /// The lowest split key found.
        first: String,
    },
    /// No key can reach the split.
    #[error("the split key {key:?} of {prefix:?} is no start of a name: {fault}")]
    BadSplitKey {
        /// The prefix of the rule.
        prefix: String,
        /// The split key.
        key: String,
        /// Why no name begins with it.
        fault: NameFault,
    },
    /// An interval between splits that no key can fall into, or that a key of another rule would.
    #[error("the split key {key:?} of {prefix:?} does not extend that prefix, so it divides nothing")]
    SplitOutsidePrefix {
        /// The prefix of the rule.
        prefix: String,
        /// The split key.
        key: String,
    },
    /// The number of home slots is part of the hash and fixed for ever.
    #[error("there are {found} home slots; there must be exactly {HOME_SLOTS}")]
    HomeSlotCount {
        /// Home slots in the map.
        found: usize,
    },
    /// The meta group is no home for sessions.
    #[error(
        "home slot {slot} belongs to group 0, the meta group, which keeps no sessions; use a group from 1"
    )]
    MetaIsHome {
        /// The slot.
        slot: usize,
    },
}

/// Every fault of one map, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFaults(pub Vec<MapFault>);

impl fmt::Display for MapFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the partition map is not valid: ")?;
        for (index, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl core::error::Error for MapFaults {}

/// All faults of a map, in the order of its parts.
pub(crate) fn faults_of(parts: &MapParts) -> Vec<MapFault> {
    let mut faults = Vec::new();
    if parts.epoch == MapEpoch::NONE {
        faults.push(MapFault::EpochZero);
    }
    if !parts.rules.contains_key("") {
        faults.push(MapFault::NoCatchAll);
    }
    if parts.rules.len() > MAX_RULES {
        faults.push(MapFault::TooManyRules { rules: parts.rules.len() });
    }
    for (prefix, rule) in &parts.rules {
        if let Err(fault) = check_start(prefix) {
            faults.push(MapFault::BadPrefix { prefix: prefix.clone(), fault });
        }
        check_rule(prefix, rule, &mut faults);
    }
    check_home_slots(&parts.home_slots, &mut faults);
    faults
}

fn check_rule(prefix: &str, rule: &Rule, faults: &mut Vec<MapFault>) {
    if rule.strategy.name.is_empty() {
        faults.push(MapFault::NoStrategy { prefix: prefix.into() });
    }
    let entries = rule.table.len();
    if entries == 0 {
        faults.push(MapFault::EmptyTable { prefix: prefix.into() });
    }
    if entries > usize::from(MAX_TABLE_ENTRIES) {
        faults.push(MapFault::TableTooLarge { prefix: prefix.into(), entries });
    }
    if rule.table.groups().contains(&GroupId::META) {
        faults.push(MapFault::MetaOwnsLocks { prefix: prefix.into() });
    }
    match &rule.table {
        Table::Slots(_) => {}
        Table::Splits(splits) => check_splits(prefix, splits, faults),
    }
}

fn check_splits(prefix: &str, splits: &BTreeMap<String, GroupId>, faults: &mut Vec<MapFault>) {
    if let Some(first) = splits.keys().next().filter(|first| !first.is_empty()) {
        faults.push(MapFault::FirstSplitNotEmpty { prefix: prefix.into(), first: first.clone() });
    }
    for key in splits.keys().filter(|key| !key.is_empty()) {
        if key == prefix || !key.starts_with(prefix) {
            faults.push(MapFault::SplitOutsidePrefix { prefix: prefix.into(), key: key.clone() });
        }
        if let Err(fault) = check_start(key) {
            faults.push(MapFault::BadSplitKey { prefix: prefix.into(), key: key.clone(), fault });
        }
    }
}

fn check_home_slots(home_slots: &[GroupId], faults: &mut Vec<MapFault>) {
    if home_slots.len() != usize::from(HOME_SLOTS) {
        faults.push(MapFault::HomeSlotCount { found: home_slots.len() });
    }
    for (slot, _) in home_slots.iter().enumerate().filter(|(_, group)| group.is_meta()) {
        faults.push(MapFault::MetaIsHome { slot });
    }
}
