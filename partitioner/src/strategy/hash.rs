//! `hash`: a fixed number of hash slots, spread evenly. Needs no knowledge of the keys.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::params::{number, only_known};
use super::{Load, Params, Scope, Strategy, StrategyError};
use crate::hash::slot_of_key;
use crate::ids::GroupId;
use crate::table::{MAX_TABLE_ENTRIES, Table};

/// Setting `slots`: how many, fixed for the life of the rule.
///
/// Every group gets as many slots as the others, or one more. A plan keeps it so with the fewest moves, and lets the
/// slots that cost least move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hash;

/// Slots of a table where the setting does not say: enough for every sensible number of groups to have shares that differ
/// little.
pub(super) const DEFAULT_SLOTS: u16 = 256;

impl Hash {
    /// Name of the strategy.
    pub const NAME: &'static str = "hash";
    /// Name of its only setting: how many slots there are, 256 where it is missing.
    pub const SLOTS: &'static str = "slots";

    fn slots(params: &Params) -> Result<u16, StrategyError> {
        slots(Self::NAME, Self::SLOTS, params)
    }
}

impl Strategy for Hash {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn check_params(&self, params: &Params) -> Result<(), StrategyError> {
        Self::slots(params).map(|_| ())
    }

    fn initial_table(&self, scope: &Scope<'_>) -> Result<Table, StrategyError> {
        Ok(Table::Slots(even_slots(scope.groups, Self::slots(scope.params)?)?))
    }

    fn plan(
        &self,
        scope: &Scope<'_>,
        current: &Table,
        loads: &[Load],
    ) -> Result<Option<Table>, StrategyError> {
        let slots = Self::slots(scope.params)?;
        check_groups(scope.groups, slots)?;
        let proposed = match current {
            Table::Slots(owners) if owners.len() == usize::from(slots) => {
                Table::Slots(rebalanced(owners, scope.groups, &slot_costs(slots, loads)))
            }
            // Another shape was recorded before: there is no slot to keep.
            Table::Slots(_) | Table::Splits(_) => self.initial_table(scope)?,
        };
        Ok(if proposed == *current { None } else { Some(proposed) })
    }
}

/// The only setting of a strategy that fixes how many slots there are.
pub(super) fn slots(strategy: &str, setting: &'static str, params: &Params) -> Result<u16, StrategyError> {
    const EXPECTED: &str = "a number from 1 to 4096";
    only_known(strategy, params, &[setting])?;
    match params.get(setting) {
        Some(value) => number(strategy, setting, value, 1..=MAX_TABLE_ENTRIES, EXPECTED),
        None => Ok(DEFAULT_SLOTS),
    }
}

/// Slots in one block for each group, in the order of the groups; blocks differ by at most one slot.
pub(crate) fn even_slots(groups: &BTreeSet<GroupId>, slots: u16) -> Result<Vec<GroupId>, StrategyError> {
    check_groups(groups, slots)?;
    let mut owners = Vec::with_capacity(usize::from(slots));
    for (index, group) in groups.iter().enumerate() {
        let end = usize::from(slots) * (index + 1) / groups.len();
        owners.resize(end, *group);
    }
    Ok(owners)
}

/// Refuses what no table of slots can be spread over.
pub(super) fn check_groups(groups: &BTreeSet<GroupId>, slots: u16) -> Result<(), StrategyError> {
    if groups.is_empty() {
        return Err(StrategyError::NoGroups);
    }
    if groups.contains(&GroupId::META) {
        return Err(StrategyError::MetaGroup);
    }
    if groups.len() > usize::from(slots) {
        return Err(StrategyError::TooManyGroups { groups: groups.len(), slots });
    }
    Ok(())
}

/// The cost of each slot, as far as it was measured.
fn slot_costs(slots: u16, loads: &[Load]) -> BTreeMap<usize, u64> {
    let mut costs: BTreeMap<usize, u64> = BTreeMap::new();
    for load in loads {
        let cost = costs.entry(usize::from(slot_of_key(&load.key, slots))).or_default();
        *cost = cost.saturating_add(load.cost);
    }
    costs
}

/// `owners` with as few changes as make it even over `groups`, which are at least one and at most as many as slots.
fn rebalanced(owners: &[GroupId], groups: &BTreeSet<GroupId>, costs: &BTreeMap<usize, u64>) -> Vec<GroupId> {
    let mut held: BTreeMap<GroupId, Vec<usize>> = groups.iter().map(|group| (*group, Vec::new())).collect();
    let mut free: Vec<usize> = Vec::new();
    for (slot, owner) in owners.iter().enumerate() {
        match held.get_mut(owner) {
            Some(slots) => slots.push(slot),
            None => free.push(slot),
        }
    }
    // Where it does not divide, the odd slots stay with the groups that hold most.
    let mut by_size: Vec<(GroupId, usize)> =
        held.iter().map(|(group, slots)| (*group, slots.len())).collect();
    by_size.sort_by_key(|(group, size)| (core::cmp::Reverse(*size), *group));
    let (share, odd) = (owners.len() / groups.len(), owners.len() % groups.len());
    let target: BTreeMap<GroupId, usize> = by_size
        .iter()
        .enumerate()
        .map(|(rank, (group, _))| (*group, share + usize::from(rank < odd)))
        .collect();
    for (group, slots) in &mut held {
        slots.sort_by_key(|slot| (core::cmp::Reverse(costs.get(slot).copied().unwrap_or(0)), *slot));
        let keep = target.get(group).copied().unwrap_or(0).min(slots.len());
        free.extend(slots.drain(keep..));
    }
    free.sort_unstable();
    let mut next = owners.to_vec();
    let mut free = free.into_iter();
    for (group, slots) in &held {
        let wanted = target.get(group).copied().unwrap_or(0).saturating_sub(slots.len());
        for slot in free.by_ref().take(wanted) {
            if let Some(owner) = next.get_mut(slot) {
                *owner = *group;
            }
        }
    }
    next
}
