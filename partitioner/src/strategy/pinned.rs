//! `pinned`: everything below a prefix in one named group. For locks that must stand together, and for a hot prefix
//! that gets a group of its own.

use alloc::vec::Vec;

use super::params::{bad, only_known, required};
use super::{Load, Params, Scope, Strategy, StrategyError};
use crate::ids::GroupId;
use crate::table::Table;

/// Setting `group`: the group, by its number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pinned;

impl Pinned {
    /// Name of the strategy.
    pub const NAME: &'static str = "pinned";
    /// Name of its only setting.
    pub const GROUP: &'static str = "group";

    fn group(params: &Params) -> Result<GroupId, StrategyError> {
        const EXPECTED: &str = "the number of a lock group, 1 or higher";
        only_known(Self::NAME, params, &[Self::GROUP])?;
        let value = required(Self::NAME, params, Self::GROUP, EXPECTED)?;
        match value.parse() {
            Ok(number) if number != GroupId::META.0 => Ok(GroupId(number)),
            Ok(_) | Err(_) => Err(bad(Self::NAME, Self::GROUP, value, EXPECTED)),
        }
    }
}

impl Strategy for Pinned {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn check_params(&self, params: &Params) -> Result<(), StrategyError> {
        Self::group(params).map(|_| ())
    }

    fn initial_table(&self, scope: &Scope<'_>) -> Result<Table, StrategyError> {
        let group = Self::group(scope.params)?;
        if !scope.groups.contains(&group) {
            return Err(StrategyError::GroupNotUsable { group });
        }
        Ok(Table::Slots(Vec::from([group])))
    }

    fn plan(&self, scope: &Scope<'_>, current: &Table, _: &[Load]) -> Result<Option<Table>, StrategyError> {
        let wanted = self.initial_table(scope)?;
        // Any table that names only this group routes alike; rewriting it would cost an epoch and change nothing.
        Ok(if current.groups() == wanted.groups() { None } else { Some(wanted) })
    }
}
