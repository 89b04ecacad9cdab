//! `range`: sorted split keys, put where the measured load halves. For prefixes whose keys cost very different amounts.
//! Without measured load it cannot know where to split, and leaves everything where it is.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::params::{number, only_known};
use super::{Load, Params, Scope, Strategy, StrategyError, StrategyRecord};
use crate::ids::GroupId;
use crate::table::{MAX_TABLE_ENTRIES, Table};

/// Setting `intervals`: the most that the table may have; 256 unless given.
///
/// A plan takes from the group that costs most and gives to the one that costs least, each time as much as brings one
/// of them to the mean, until the two differ by less than a quarter of it. Between two groups, one of them empty, that
/// splits where the load halves.
#[derive(Clone, Copy, Debug, Default)]
pub struct SplitKeys;

/// Most intervals where the setting does not say.
const DEFAULT_INTERVALS: u16 = 256;

impl SplitKeys {
    /// Name of the strategy.
    pub const NAME: &'static str = "range";
    /// Name of its only setting.
    pub const INTERVALS: &'static str = "intervals";

    /// The record of the strategy without settings.
    #[must_use]
    pub fn record() -> StrategyRecord {
        StrategyRecord { name: Self::NAME.into(), params: Params::new() }
    }

    fn intervals(params: &Params) -> Result<u16, StrategyError> {
        const EXPECTED: &str = "a number from 1 to 4096";
        only_known(Self::NAME, params, &[Self::INTERVALS])?;
        match params.get(Self::INTERVALS) {
            None => Ok(DEFAULT_INTERVALS),
            Some(value) => number(Self::NAME, Self::INTERVALS, value, 1..=MAX_TABLE_ENTRIES, EXPECTED),
        }
    }
}

impl Strategy for SplitKeys {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn check_params(&self, params: &Params) -> Result<(), StrategyError> {
        Self::intervals(params).map(|_| ())
    }

    fn initial_table(&self, scope: &Scope<'_>) -> Result<Table, StrategyError> {
        Self::intervals(scope.params)?;
        Ok(Table::Splits(BTreeMap::from([(String::new(), first_group(scope.groups)?)])))
    }

    fn plan(
        &self,
        scope: &Scope<'_>,
        current: &Table,
        loads: &[Load],
    ) -> Result<Option<Table>, StrategyError> {
        let limit = usize::from(Self::intervals(scope.params)?);
        let first = first_group(scope.groups)?;
        let splits = match current {
            Table::Splits(splits) if splits.contains_key("") => splits.clone(),
            Table::Splits(_) => BTreeMap::from([(String::new(), first)]),
            Table::Slots(owners) => {
                // Another shape was recorded before: only where one group owns everything is there something to keep.
                let owner = owners.first().filter(|owner| owners.iter().all(|other| other == *owner));
                BTreeMap::from([(String::new(), owner.copied().unwrap_or(first))])
            }
        };
        let mut intervals = Intervals::new(splits, scope, loads);
        let before = intervals.joined();
        intervals.empty_others(scope.groups);
        intervals.balance(limit);
        let after = intervals.joined();
        let unchanged = after == before && matches!(current, Table::Splits(_));
        Ok(if unchanged { None } else { Some(Table::Splits(after)) })
    }
}

fn first_group(groups: &BTreeSet<GroupId>) -> Result<GroupId, StrategyError> {
    if groups.contains(&GroupId::META) {
        return Err(StrategyError::MetaGroup);
    }
    groups.first().copied().ok_or(StrategyError::NoGroups)
}

/// One interval of keys.
struct Interval {
    from: String,
    owner: GroupId,
    /// The keys with load in it, in order.
    keys: Vec<(String, u64)>,
}

impl Interval {
    fn cost(&self) -> u64 {
        sum(&self.keys)
    }
}

fn sum(keys: &[(String, u64)]) -> u64 {
    keys.iter().fold(0, |sum, (_, cost)| sum.saturating_add(*cost))
}

/// A table of splits with the load of each interval, and what each group that may own something costs.
struct Intervals {
    intervals: Vec<Interval>,
    costs: BTreeMap<GroupId, u64>,
}

/// A cut that takes the keys from `key` on out of an interval; all of them at 0.
struct Cut {
    interval: usize,
    key: usize,
    cost: u64,
}

impl Intervals {
    fn new(splits: BTreeMap<String, GroupId>, scope: &Scope<'_>, loads: &[Load]) -> Self {
        let mut intervals: Vec<Interval> =
            splits.into_iter().map(|(from, owner)| Interval { from, owner, keys: Vec::new() }).collect();
        let mut by_key: BTreeMap<&str, u64> = BTreeMap::new();
        for load in loads.iter().filter(|load| load.cost > 0 && load.key.starts_with(scope.prefix)) {
            let cost = by_key.entry(&load.key).or_default();
            *cost = cost.saturating_add(load.cost);
        }
        for (key, cost) in by_key {
            let at = intervals.partition_point(|interval| interval.from.as_str() <= key);
            if let Some(interval) = at.checked_sub(1).and_then(|at| intervals.get_mut(at)) {
                interval.keys.push((key.into(), cost));
            }
        }
        let mut costs: BTreeMap<GroupId, u64> = scope.groups.iter().map(|group| (*group, 0)).collect();
        for interval in &intervals {
            if let Some(cost) = costs.get_mut(&interval.owner) {
                *cost = cost.saturating_add(interval.cost());
            }
        }
        Self { intervals, costs }
    }

    /// Gives what belongs to a group that may own nothing to the one that costs least.
    fn empty_others(&mut self, groups: &BTreeSet<GroupId>) {
        for interval in self.intervals.iter_mut().filter(|interval| !groups.contains(&interval.owner)) {
            let coldest = self.costs.iter().min_by_key(|(group, cost)| (**cost, **group));
            let Some(coldest) = coldest.map(|(group, _)| *group) else { continue };
            interval.owner = coldest;
            let cost = self.costs.entry(coldest).or_default();
            *cost = cost.saturating_add(interval.cost());
        }
    }

    /// Takes from the dearest group and gives to the cheapest, until they are near enough or nothing helps.
    fn balance(&mut self, limit: usize) {
        let total = self.costs.values().fold(0, |sum: u64, cost| sum.saturating_add(*cost));
        let mean = total / self.costs.len().max(1) as u64;
        // Every round makes the sum of squares smaller; the bound is for the time it may take.
        for _ in 0..usize::from(MAX_TABLE_ENTRIES) {
            let dearest = self.costs.iter().max_by_key(|(group, cost)| (**cost, core::cmp::Reverse(**group)));
            let cheapest = self.costs.iter().min_by_key(|(group, cost)| (**cost, **group));
            let (Some((from, high)), Some((to, low))) = (dearest, cheapest) else { return };
            let (from, high, to, low) = (*from, *high, *to, *low);
            if high - low <= mean / 4 {
                return;
            }
            let amount = high.saturating_sub(mean).min(mean.saturating_sub(low)).max(1);
            let may_cut = self.intervals.len() < limit;
            let Some(cut) = self.best_cut(from, amount, high - low, may_cut) else { return };
            self.carry_out(&cut, to);
            self.costs.insert(from, high.saturating_sub(cut.cost));
            self.costs.insert(to, low.saturating_add(cut.cost));
        }
    }

    /// The cut of the group's intervals whose cost is nearest to `amount` and below `below`.
    fn best_cut(&self, group: GroupId, amount: u64, below: u64, may_cut: bool) -> Option<Cut> {
        let mut best: Option<Cut> = None;
        for (interval, held) in self.intervals.iter().enumerate().filter(|(_, held)| held.owner == group) {
            let mut cost = held.cost();
            for (key, (_, next)) in held.keys.iter().enumerate() {
                let allowed = cost > 0 && cost < below && (may_cut || key == 0);
                let nearer =
                    best.as_ref().is_none_or(|best| cost.abs_diff(amount) < best.cost.abs_diff(amount));
                if allowed && nearer {
                    best = Some(Cut { interval, key, cost });
                }
                cost = cost.saturating_sub(*next);
            }
        }
        best
    }

    fn carry_out(&mut self, cut: &Cut, to: GroupId) {
        let Some(interval) = self.intervals.get_mut(cut.interval) else { return };
        if cut.key == 0 {
            interval.owner = to;
            return;
        }
        let keys = interval.keys.split_off(cut.key);
        if let Some((from, _)) = keys.first() {
            let upper = Interval { from: from.clone(), owner: to, keys };
            self.intervals.insert(cut.interval + 1, upper);
        }
    }

    /// The splits, without those that divide nothing.
    fn joined(&self) -> BTreeMap<String, GroupId> {
        let mut splits = BTreeMap::new();
        let mut last = None;
        for interval in self.intervals.iter().filter(|interval| {
            let other = last != Some(interval.owner);
            last = Some(interval.owner);
            other
        }) {
            splits.insert(interval.from.clone(), interval.owner);
        }
        splits
    }
}
