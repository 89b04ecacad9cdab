//! `rendezvous`: a fixed number of hash slots, each with the group that weighs most for it. A group that joins takes
//! its share, one that leaves gives its own away, and nothing else moves. Knows no load.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::hash::{check_groups, slots};
use super::{Load, Params, Scope, Strategy, StrategyError};
use crate::hash::hash64;
use crate::ids::GroupId;
use crate::table::Table;

/// Setting `slots`: how many, fixed for the life of the rule.
///
/// Which slots a group gets depends on no other group, so shares are even only on average: with few slots for each
/// group [`Hash`](super::Hash) is more even, and moves more when groups come and go often.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rendezvous;

impl Rendezvous {
    /// Name of the strategy.
    pub const NAME: &'static str = "rendezvous";
    /// Name of its only setting.
    pub const SLOTS: &'static str = "slots";

    fn slots(params: &Params) -> Result<u16, StrategyError> {
        slots(Self::NAME, Self::SLOTS, params)
    }
}

impl Strategy for Rendezvous {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn check_params(&self, params: &Params) -> Result<(), StrategyError> {
        Self::slots(params).map(|_| ())
    }

    fn initial_table(&self, scope: &Scope<'_>) -> Result<Table, StrategyError> {
        let slots = Self::slots(scope.params)?;
        check_groups(scope.groups, slots)?;
        let owners: Vec<GroupId> = (0..slots).filter_map(|slot| heaviest(slot, scope.groups)).collect();
        Ok(Table::Slots(owners))
    }

    fn plan(&self, scope: &Scope<'_>, current: &Table, _: &[Load]) -> Result<Option<Table>, StrategyError> {
        let wanted = self.initial_table(scope)?;
        Ok(if wanted == *current { None } else { Some(wanted) })
    }
}

/// The group that weighs most for a slot; the lower one where two weigh the same.
fn heaviest(slot: u16, groups: &BTreeSet<GroupId>) -> Option<GroupId> {
    groups.iter().copied().max_by_key(|group| (weight(slot, *group), Reverse(*group)))
}

/// Frozen like the hash function itself: another weight would move locks when a member is upgraded.
fn weight(slot: u16, group: GroupId) -> u64 {
    let [high, low] = slot.to_be_bytes();
    let [a, b, c, d] = group.0.to_be_bytes();
    hash64(&[high, low, a, b, c, d])
}
