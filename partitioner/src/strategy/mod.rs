//! Strategies: plugins that compute tables and propose better ones. Only the member that plans runs them; routing and
//! apply read the tables they leave behind. They know no map, no member and no clock.

mod hash;
pub mod params;
mod pinned;
mod range;
mod registry;
mod rendezvous;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::GroupId;
use crate::table::Table;

pub use hash::Hash;
pub(crate) use hash::even_slots;
pub use pinned::Pinned;
pub use range::SplitKeys;
pub use registry::{Registry, RegistryError};
pub use rendezvous::Rendezvous;

/// Settings of a strategy for one rule, by name.
pub type Params = BTreeMap<String, String>;

/// What a rule remembers of the strategy that computed its table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyRecord {
    /// Name in the [`Registry`].
    pub name: String,
    /// The settings it was given.
    pub params: Params,
}

impl StrategyRecord {
    /// The record of [`Hash`] over so many slots.
    #[must_use]
    pub fn hash(slots: u16) -> Self {
        let params = Params::from([(Hash::SLOTS.to_string(), slots.to_string())]);
        Self { name: Hash::NAME.to_string(), params }
    }

    /// The record of [`Pinned`] to a group.
    #[must_use]
    pub fn pinned(group: GroupId) -> Self {
        let params = Params::from([(Pinned::GROUP.to_string(), group.to_string())]);
        Self { name: Pinned::NAME.to_string(), params }
    }
}

/// Where a strategy is asked to act: one rule, its settings, and the groups it may use.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'s> {
    /// The prefix of the rule. Split keys must extend it.
    pub prefix: &'s str,
    /// Segments after the prefix that belong to the partition key.
    pub depth: u16,
    /// The rule's settings for the strategy.
    pub params: &'s Params,
    /// Lock groups that may own something. Groups that are to be emptied are not among them.
    pub groups: &'s BTreeSet<GroupId>,
}

/// What one partition key costs its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The partition key.
    pub key: String,
    /// Its cost, in any unit that is the same for all keys of one call.
    pub cost: u64,
}

/// A way to spread the partition keys of one prefix over groups.
///
/// Implementations are pure: the same arguments give the same table, on every member and in every process.
pub trait Strategy: fmt::Debug + Send + Sync {
    /// The name rules record, in lower case.
    fn name(&self) -> &str;

    /// Checks settings without knowing the groups: what a client typed is refused before anything is planned.
    ///
    /// # Errors
    /// The first setting that is unknown, missing or malformed.
    fn check_params(&self, params: &Params) -> Result<(), StrategyError>;

    /// The table of a new rule.
    ///
    /// # Errors
    /// Settings that are not valid or do not fit the groups.
    fn initial_table(&self, scope: &Scope<'_>) -> Result<Table, StrategyError>;

    /// A better table than `current`, or `None` where it is good as it is.
    ///
    /// Every key whose group differs is a move that the planner has to carry out, so a proposal moves no more than it
    /// must. `loads` may be empty, partial or stale; keys that are missing cost nothing.
    ///
    /// # Errors
    /// Settings that are not valid or do not fit the groups.
    fn plan(
        &self,
        scope: &Scope<'_>,
        current: &Table,
        loads: &[Load],
    ) -> Result<Option<Table>, StrategyError>;
}

/// Why a strategy cannot compute a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// The strategy has no such setting.
    #[error("strategy `{strategy}` has no setting `{param}`; it knows {known}")]
    UnknownParam {
        /// Name of the strategy.
        strategy: String,
        /// The setting given.
        param: String,
        /// The settings there are.
        known: String,
    },
    /// A setting that has no default is not there.
    #[error("strategy `{strategy}` needs the setting `{param}`: {expected}")]
    MissingParam {
        /// Name of the strategy.
        strategy: String,
        /// The setting.
        param: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A setting is malformed or out of bounds.
    #[error("setting `{param}` of strategy `{strategy}` is {value:?}; it must be {expected}")]
    BadParam {
        /// Name of the strategy.
        strategy: String,
        /// The setting.
        param: &'static str,
        /// The value given.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// There is nothing to spread over.
    #[error("there is no lock group to use; create one first")]
    NoGroups,
    /// The meta group holds no locks.
    #[error("group 0 is the meta group and holds no locks; use groups from 1")]
    MetaGroup,
    /// Some groups would get nothing.
    #[error("{groups} groups do not fit into {slots} slots; use more slots or fewer groups")]
    TooManyGroups {
        /// Groups given.
        groups: usize,
        /// Slots to spread over them.
        slots: u16,
    },
    /// The strategy cannot work with keys of so many segments.
    #[error("strategy `{strategy}` cannot use depth {depth}; it must be {expected}")]
    BadDepth {
        /// Name of the strategy.
        strategy: String,
        /// The depth given.
        depth: u16,
        /// What it must be.
        expected: &'static str,
    },
    /// The wanted group is not among those that may own something.
    #[error("group {group} cannot be used: it does not exist or is being emptied")]
    GroupNotUsable {
        /// The group wanted.
        group: GroupId,
    },
}
