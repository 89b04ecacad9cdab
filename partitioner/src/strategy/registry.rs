//! Strategies by name. A crate outside adds its own; which ones a member knows matters only where it plans.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Hash, Load, Pinned, Rendezvous, Scope, SplitKeys, Strategy, StrategyError, StrategyRecord};
use crate::ids::GroupId;
use crate::map::Rule;
use crate::table::Table;

/// The strategies this process can plan with.
#[derive(Clone, Debug)]
pub struct Registry {
    strategies: BTreeMap<String, Arc<dyn Strategy>>,
}

/// Why the registry refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// No strategy has this name.
    #[error("there is no partition strategy `{name}` here; known are {}", .known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are, sorted.
        known: Vec<String>,
    },
    /// The name is taken.
    #[error("a partition strategy `{name}` is registered already; give yours another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// A name must be one lower-case word, so that it can be typed and recorded.
    #[error("{name:?} cannot name a partition strategy: use lower-case letters, digits and `-`")]
    BadName {
        /// The name.
        name: String,
    },
    /// The strategy itself refuses.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
}

impl Registry {
    /// The built-in strategies: [`Hash`], [`Pinned`], [`SplitKeys`] and [`Rendezvous`].
    #[must_use]
    pub fn built_in() -> Self {
        let built_in: [Arc<dyn Strategy>; 4] =
            [Arc::new(Hash), Arc::new(Pinned), Arc::new(SplitKeys), Arc::new(Rendezvous)];
        let by_name = built_in.into_iter().map(|strategy| (strategy.name().to_string(), strategy));
        Self { strategies: by_name.collect() }
    }

    /// Adds a strategy under its own name.
    ///
    /// # Errors
    /// The name is taken or not a lower-case word; nothing changes.
    pub fn register(&mut self, strategy: Arc<dyn Strategy>) -> Result<(), RegistryError> {
        let name = strategy.name().to_string();
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || !name.bytes().all(allowed) {
            return Err(RegistryError::BadName { name });
        }
        if self.strategies.contains_key(&name) {
            return Err(RegistryError::Taken { name });
        }
        self.strategies.insert(name, strategy);
        Ok(())
    }

    /// The strategy of that name.
    ///
    /// # Errors
    /// There is none; the error lists those there are.
    pub fn get(&self, name: &str) -> Result<&dyn Strategy, RegistryError> {
        match self.strategies.get(name) {
            Some(strategy) => Ok(strategy.as_ref()),
            None => Err(RegistryError::Unknown { name: name.to_string(), known: self.names() }),
        }
    }

    /// All names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.strategies.keys().cloned().collect()
    }

    /// Computes a new rule: its table by the recorded strategy over `groups`, and the record itself.
    ///
    /// # Errors
    /// The strategy is not known, or refuses its settings or the groups.
    pub fn rule(
        &self,
        prefix: &str,
        depth: u16,
        strategy: StrategyRecord,
        groups: &BTreeSet<GroupId>,
    ) -> Result<Rule, RegistryError> {
        let scope = Scope { prefix, depth, params: &strategy.params, groups };
        let table = self.get(&strategy.name)?.initial_table(&scope)?;
        Ok(Rule { depth, strategy, table })
    }

    /// A better table for a rule by its own strategy, or `None` where it is good as it is.
    ///
    /// # Errors
    /// The strategy is not known, or refuses its settings or the groups.
    pub fn plan(
        &self,
        prefix: &str,
        rule: &Rule,
        groups: &BTreeSet<GroupId>,
        loads: &[Load],
    ) -> Result<Option<Table>, RegistryError> {
        let scope = Scope { prefix, depth: rule.depth, params: &rule.strategy.params, groups };
        Ok(self.get(&rule.strategy.name)?.plan(&scope, &rule.table, loads)?)
    }
}
