//! Where the load is: the records of all groups brought together, and which conditions they fulfil.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::history::{Condition, History};
use super::policy::Policy;
use crate::ids::GroupId;
use crate::load::{GroupLoad, Loads, NameLoad};
use crate::map::PartitionMap;
use crate::strategy::Pinned;

/// What holds already goes on to hold down to this percentage of its limit, so that load around the limit counts.
const STILL_PERCENT: u64 = 80;

/// The part of a prefix that one group has.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub prefix: String,
    pub group: GroupId,
    pub entries_per_s: u64,
    pub queue_ms: u64,
    pub waiters: u64,
    pub names: Vec<NameLoad>,
}

impl Spot {
    pub(super) fn hot(&self) -> Condition {
        Condition::Hot { prefix: self.prefix.clone(), group: self.group }
    }

    /// The name with most entries; the first of several.
    pub(super) fn heaviest(&self) -> Option<&NameLoad> {
        self.names
            .iter()
            .min_by(|a, b| b.entries_per_s.cmp(&a.entries_per_s).then_with(|| a.name.cmp(&b.name)))
    }

    /// Entries that are known by name.
    pub(super) fn known_entries_per_s(&self) -> u64 {
        self.names.iter().fold(0, |sum, name| sum.saturating_add(name.entries_per_s))
    }

    fn is_hot(&self, group: GroupLoad, policy: &Policy, percent: u64) -> bool {
        let at_least = |value: u64, limit: u64| value.saturating_mul(100) >= limit.saturating_mul(percent);
        let waits = at_least(group.queue_ms.max(self.queue_ms), policy.hot_queue_ms);
        let weighs = self.entries_per_s.saturating_mul(2) >= group.entries_per_s
            && at_least(self.entries_per_s.saturating_mul(4), policy.hot_entries_per_s);
        at_least(self.entries_per_s, policy.hot_entries_per_s) || (waits && weighs)
    }
}

/// Worst first: by entries, then waiters; of equals the longer prefix, which moves less.
///
/// A rule's spot holds all that is measured below it, each longer prefix is a spot of its own besides.
pub(super) fn spots(map: &PartitionMap, loads: &Loads) -> Vec<Spot> {
    let mut spots: BTreeMap<(&str, GroupId), Spot> = BTreeMap::new();
    for load in &loads.prefixes {
        let rule = map.rule_of(&load.prefix).map_or("", |(prefix, _)| prefix);
        for prefix in BTreeSet::from([rule, load.prefix.as_str()]) {
            let spot = spots.entry((prefix, load.group)).or_insert_with(|| Spot {
                prefix: prefix.into(),
                group: load.group,
                entries_per_s: 0,
                queue_ms: 0,
                waiters: 0,
                names: Vec::new(),
            });
            spot.entries_per_s = spot.entries_per_s.saturating_add(load.entries_per_s);
            spot.queue_ms = spot.queue_ms.max(load.queue_ms);
            spot.waiters = spot.waiters.saturating_add(load.waiters);
            spot.names.extend(load.names.iter().cloned());
        }
    }
    let mut spots: Vec<Spot> = spots.into_values().collect();
    spots.sort_by(|a, b| {
        let worse =
            (b.entries_per_s, b.waiters, b.prefix.len()).cmp(&(a.entries_per_s, a.waiters, a.prefix.len()));
        worse.then_with(|| (&a.prefix, a.group).cmp(&(&b.prefix, b.group)))
    });
    spots
}

/// All conditions that hold now. Groups that elect have none: their rates are of another leader.
pub(super) fn conditions(
    map: &PartitionMap,
    loads: &Loads,
    spots: &[Spot],
    policy: &Policy,
    history: &History,
) -> BTreeSet<Condition> {
    let percent = |condition: &Condition| {
        if history.held.iter().any(|held| held.condition == *condition) { STILL_PERCENT } else { 100 }
    };
    let mut found = BTreeSet::new();
    for spot in spots {
        let Some(group) = loads.groups.get(&spot.group).filter(|group| !group.electing) else { continue };
        let condition = spot.hot();
        if spot.is_hot(*group, policy, percent(&condition)) {
            found.insert(condition);
        }
    }
    for (id, group) in loads.groups.iter().filter(|(_, group)| !group.electing) {
        let condition = Condition::Overloaded { group: *id };
        let limit = policy.group_entries_per_s.saturating_mul(percent(&condition));
        if group.entries_per_s.saturating_mul(100) >= limit {
            found.insert(condition);
        }
    }
    let rules = map.rules().iter().filter(|(prefix, _)| !prefix.is_empty());
    for (prefix, _) in rules.filter(|(_, rule)| rule.strategy.name != Pinned::NAME) {
        let here = spots.iter().filter(|spot| spot.prefix == *prefix);
        let entries = here.fold(0, |sum: u64, spot| sum.saturating_add(spot.entries_per_s));
        if entries <= policy.quiet_entries_per_s {
            found.insert(Condition::Quiet { prefix: prefix.clone() });
        }
    }
    found
}
