//! An example of a partition strategy in a crate of its own: `tenants` keeps what belongs to one tenant together and
//! spreads tenants over groups by weight. Knows nothing of measured load.
//!
//! A tenant is the first segment after the rule's prefix: below `apps/` the locks `apps/acme/db` and `apps/acme/cron`
//! belong to `acme`. Tenants that are not listed share one group.
//!
//! ```
//! use std::sync::Arc;
//! use holdfast_example_tenants::Tenants;
//! use holdfast_partitioner::Registry;
//!
//! let mut registry = Registry::built_in();
//! registry.register(Arc::new(Tenants))?;
//! assert!(registry.names().contains(&"tenants".to_owned()));
//! # Ok::<(), holdfast_partitioner::RegistryError>(())
//! ```
//!
//! Only the member that plans needs the strategy. What it leaves in the map is a table of split keys, which every
//! member and client reads without it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use holdfast_partitioner::strategy::params::{bad, number, only_known, required};
use holdfast_partitioner::{GroupId, Load, Params, Scope, Strategy, StrategyError, Table};

/// Settings `weights`, such as `acme=5,globex=2`, and `rest`, the weight of all other tenants together (1 unless given).
#[derive(Clone, Copy, Debug, Default)]
pub struct Tenants;

impl Tenants {
    /// Name of the strategy.
    pub const NAME: &'static str = "tenants";
    /// Setting: the tenants and their weights.
    pub const WEIGHTS: &'static str = "weights";
    /// Setting: the weight of all tenants that are not listed.
    pub const REST: &'static str = "rest";
}

impl Strategy for Tenants {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn check_params(&self, params: &Params) -> Result<(), StrategyError> {
        Weights::read(params).map(|_| ())
    }

    fn initial_table(&self, scope: &Scope<'_>) -> Result<Table, StrategyError> {
        table(scope, None)
    }

    fn plan(&self, scope: &Scope<'_>, current: &Table, _: &[Load]) -> Result<Option<Table>, StrategyError> {
        let wanted = table(scope, Some(current))?;
        Ok(if wanted == *current { None } else { Some(wanted) })
    }
}

/// What the settings say.
struct Weights {
    tenants: BTreeMap<String, u64>,
    rest: u64,
}

impl Weights {
    fn read(params: &Params) -> Result<Self, StrategyError> {
        const LIST: &str = "tenants with weights from 1 to 1000, such as `acme=5,globex=2`";
        const WEIGHT: &str = "a number from 1 to 1000";
        only_known(Tenants::NAME, params, &[Tenants::REST, Tenants::WEIGHTS])?;
        let list = required(Tenants::NAME, params, Tenants::WEIGHTS, LIST)?;
        let refused = || bad(Tenants::NAME, Tenants::WEIGHTS, list, LIST);
        let mut tenants = BTreeMap::new();
        for entry in list.split(',') {
            let (tenant, weight) = entry.split_once('=').ok_or_else(refused)?;
            let weight =
                number(Tenants::NAME, Tenants::WEIGHTS, weight, 1..=1000, LIST).map_err(|_| refused())?;
            let known = tenants.insert(tenant.to_owned(), u64::from(weight));
            if tenant.is_empty() || tenant.contains('/') || known.is_some() {
                return Err(refused());
            }
        }
        let rest = match params.get(Tenants::REST) {
            None => 1,
            Some(value) => number(Tenants::NAME, Tenants::REST, value, 1..=1000, WEIGHT)?,
        };
        Ok(Self { tenants, rest: u64::from(rest) })
    }
}

/// The table for a scope. With a current one, a tenant stays where it is unless its group is not to be used or would get
/// more than its share.
fn table(scope: &Scope<'_>, current: Option<&Table>) -> Result<Table, StrategyError> {
    let weights = Weights::read(scope.params)?;
    if scope.depth != 1 {
        let expected = "1, so that the first segment after the prefix stands together";
        return Err(StrategyError::BadDepth { strategy: Tenants::NAME.into(), depth: scope.depth, expected });
    }
    if scope.groups.contains(&GroupId::META) {
        return Err(StrategyError::MetaGroup);
    }
    let mut bins = Bins::new(scope, &weights)?;
    // Heaviest first; the empty key stands for all tenants that are not listed.
    let key_of = |tenant: &String| format!("{}{tenant}", scope.prefix);
    let mut items: Vec<(String, u64)> =
        weights.tenants.iter().map(|(tenant, weight)| (key_of(tenant), *weight)).collect();
    items.push((String::new(), weights.rest));
    items.sort_by_key(|(_, weight)| Reverse(*weight));
    let now = |key: &str| current.and_then(|table| table.owner(key));
    let (kept, others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|(key, weight)| now(key).is_some_and(|group| bins.keep(*weight, group)));
    let mut owners: BTreeMap<String, GroupId> =
        kept.into_iter().filter_map(|(key, _)| now(&key).map(|group| (key, group))).collect();
    for (key, weight) in others {
        let group = bins.put(weight, now(&key));
        owners.insert(key, group);
    }
    Ok(Table::Splits(splits(&owners)))
}

/// One interval for each listed tenant, from its key to the next text above it, and what lies between for the rest.
fn splits(owners: &BTreeMap<String, GroupId>) -> BTreeMap<String, GroupId> {
    let rest = owners.get("").copied();
    let mut splits = owners.clone();
    for key in owners.keys().filter(|key| !key.is_empty()) {
        if let Some(rest) = rest {
            // No name has a character below the space.
            splits.entry(format!("{key} ")).or_insert(rest);
        }
    }
    splits
}

/// Groups with the weight that each has got so far.
struct Bins {
    filled: BTreeMap<GroupId, u64>,
    share: u64,
    first: GroupId,
}

impl Bins {
    fn new(scope: &Scope<'_>, weights: &Weights) -> Result<Self, StrategyError> {
        let first = scope.groups.first().copied().ok_or(StrategyError::NoGroups)?;
        let total = weights.tenants.values().sum::<u64>() + weights.rest;
        let filled: BTreeMap<GroupId, u64> = scope.groups.iter().map(|group| (*group, 0)).collect();
        Ok(Self { share: total.div_ceil(filled.len() as u64), filled, first })
    }

    /// Leaves a weight in a group, if that may be used and has room.
    fn keep(&mut self, weight: u64, group: GroupId) -> bool {
        match self.filled.get_mut(&group) {
            Some(got) if *got + weight <= self.share => {
                *got += weight;
                true
            }
            Some(_) | None => false,
        }
    }

    /// The group with least; of several the present one.
    fn put(&mut self, weight: u64, now: Option<GroupId>) -> GroupId {
        let least = self.filled.iter().min_by_key(|(group, got)| (**got, Some(**group) != now, **group));
        let group = least.map_or(self.first, |(group, _)| *group);
        *self.filled.entry(group).or_default() += weight;
        group
    }
}
