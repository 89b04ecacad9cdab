//! The rule that a prefix shall have so that a request is fulfilled, and all the reasons why it cannot.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::error::ChangeError;
use super::place::{covering, rule_in_place, rule_without};
use super::request::{Given, Request};
use crate::hash::slot_of_key;
use crate::ids::GroupId;
use crate::map::Rule;
use crate::name::{NameFault, check_name, check_start, partition_key, routed_name};
use crate::strategy::{Load, Pinned, SplitKeys, StrategyRecord};
use crate::table::Table;

/// Prefixes that an error lists at most.
const LISTED: usize = 8;

/// The lowest character a name may contain: right above a name come those that have this one next.
const LOWEST: char = ' ';

/// Where a change leads.
pub(super) struct Target {
    /// The prefix whose rule changes.
    pub prefix: String,
    /// What was asked for, for errors.
    pub asked: String,
    /// The rule to get to.
    pub rule: Rule,
    /// What stands in the map afterwards: that rule, or none where the next shorter prefix routes alike.
    pub keep: Option<Rule>,
    /// What to say where it is so already.
    pub already: &'static str,
}

impl Target {
    fn new(prefix: &str, rule: Rule, already: &'static str) -> Self {
        let keep = Some(rule.clone());
        Self { prefix: prefix.to_owned(), asked: prefix.to_owned(), rule, keep, already }
    }
}

/// What a request comes to.
pub(super) fn of(given: &Given<'_>, request: &Request) -> Result<Target, ChangeError> {
    match request {
        Request::Split { prefix, into, depth, strategy } => given.split(prefix, into, *depth, strategy),
        Request::Move { prefix, to } => given.brought(prefix, *to),
        Request::Merge { prefix, to } => given.merged(prefix, *to),
        Request::Pin { prefix, to } => given.pinned(prefix, *to),
        Request::Unpin { prefix } => given.unpinned(prefix),
        Request::Isolate { name, to } => given.isolated(name, *to),
        Request::Spread { prefix, over } => given.spread(prefix, over),
    }
}

impl Given<'_> {
    fn split(
        &self,
        prefix: &str,
        into: &BTreeSet<GroupId>,
        depth: u16,
        strategy: &StrategyRecord,
    ) -> Result<Target, ChangeError> {
        self.check(prefix, check_start(prefix), into)?;
        if into.len() < 2 {
            return Err(ChangeError::SplitIntoOne { prefix: prefix.to_owned(), given: into.len() });
        }
        if depth == 0 {
            return Err(ChangeError::SplitAtDepthZero { prefix: prefix.to_owned() });
        }
        if strategy.name == Pinned::NAME {
            return Err(ChangeError::SplitByPin);
        }
        let current = self.current(prefix)?;
        // A table at another depth holds other keys: only where one group owns them all does it say where they are.
        let comparable = current.depth == depth || current.table.groups().len() == 1;
        let start = Rule { depth, strategy: strategy.clone(), table: current.table };
        let rule =
            if comparable { start } else { self.registry.rule(prefix, depth, strategy.clone(), into)? };
        let rule = self.planned(prefix, rule, into)?;
        if rule.table.groups().len() < 2 {
            let why = "the strategy finds nothing to divide; there is no measured load yet, or all of it is one key's";
            return Err(ChangeError::NothingToDo { prefix: prefix.to_owned(), why });
        }
        Ok(Target::new(prefix, rule, "it is split so already"))
    }

    fn brought(&self, prefix: &str, to: GroupId) -> Result<Target, ChangeError> {
        self.check(prefix, check_start(prefix), &BTreeSet::from([to]))?;
        let current = self.current(prefix)?;
        let already = "it is in that group already";
        if current.table.groups() == BTreeSet::from([to]) {
            return Err(ChangeError::NothingToDo { prefix: prefix.to_owned(), why: already });
        }
        let table = match &current.table {
            Table::Slots(owners) => Table::Slots(owners.iter().map(|_| to).collect()),
            Table::Splits(_) => one_interval(to),
        };
        Ok(Target::new(prefix, Rule { table, ..current }, already))
    }

    fn merged(&self, prefix: &str, to: Option<GroupId>) -> Result<Target, ChangeError> {
        self.check(prefix, check_start(prefix), &to.into_iter().collect())?;
        let Some(current) = self.map.rules().get(prefix) else { return Err(self.no_rule(prefix)) };
        let above = rule_without(self.map, prefix);
        let already = "it is in that group already";
        match (above, to) {
            (Some(above), to) if to.is_none_or(|to| above.table.groups() == BTreeSet::from([to])) => {
                self.check_groups(&above.table.groups())?;
                Ok(Target { keep: None, ..Target::new(prefix, above, already) })
            }
            (_, Some(to)) if current.table.groups() == BTreeSet::from([to]) => {
                Err(ChangeError::NothingToDo { prefix: prefix.to_owned(), why: already })
            }
            (_, Some(to)) => {
                let depth = current.depth.max(1);
                let rule = Rule { depth, strategy: SplitKeys::record(), table: one_interval(to) };
                Ok(Target::new(prefix, rule, already))
            }
            (_, None) => Err(ChangeError::NothingAbove),
        }
    }

    fn pinned(&self, prefix: &str, to: Option<GroupId>) -> Result<Target, ChangeError> {
        self.check(prefix, check_start(prefix), &to.into_iter().collect())?;
        let groups = self.current(prefix)?.table.groups();
        let only = groups.first().copied().filter(|_| groups.len() == 1);
        let Some(group) = to.or(only) else {
            return Err(ChangeError::PinWhere { prefix: prefix.to_owned(), groups });
        };
        let table = Table::Slots(Vec::from([group]));
        let rule = Rule { depth: 0, strategy: StrategyRecord::pinned(group), table };
        Ok(Target::new(prefix, rule, "it is pinned to that group already"))
    }

    fn unpinned(&self, prefix: &str) -> Result<Target, ChangeError> {
        check_start(prefix).map_err(|fault| ChangeError::BadText { text: prefix.to_owned(), fault })?;
        let Some(rule) = self.map.rules().get(prefix) else { return Err(self.no_rule(prefix)) };
        let group = rule.table.groups().first().copied();
        match group {
            Some(group) if rule.strategy.name == Pinned::NAME => {
                let rule = Rule { depth: 1, strategy: SplitKeys::record(), table: one_interval(group) };
                Ok(Target::new(prefix, rule, "it is not pinned"))
            }
            Some(_) | None => Err(ChangeError::NotPinned {
                prefix: prefix.to_owned(),
                strategy: rule.strategy.name.clone(),
            }),
        }
    }

    fn isolated(&self, asked: &str, to: GroupId) -> Result<Target, ChangeError> {
        let name = routed_name(asked);
        self.check(name, check_name(name), &BTreeSet::from([to]))?;
        let already = "it is in that group already";
        if self.map.locate(name) == to {
            return Err(ChangeError::NothingToDo { prefix: asked.to_owned(), why: already });
        }
        let mut rule = self.current(name)?;
        let owner = rule.table.groups().first().copied().filter(|_| rule.table.groups().len() == 1);
        let above = right_above(name);
        match (&mut rule.table, owner) {
            // One group owns all that begins with the name, so the whole name can be the key.
            (_, Some(owner)) => {
                let mut splits = BTreeMap::from([(String::new(), to)]);
                splits.extend(above.map(|above| (above, owner)));
                rule = Rule { depth: u16::MAX, strategy: SplitKeys::record(), table: Table::Splits(splits) };
            }
            (Table::Splits(splits), None) => {
                let below = splits.insert(String::new(), to);
                if let (Some(above), Some(below)) = (above, below) {
                    splits.entry(above).or_insert(below);
                }
            }
            (Table::Slots(owners), None) => {
                let key = partition_key(name, name, rule.depth);
                let slot = slot_of_key(key, u16::try_from(owners.len()).unwrap_or(0));
                if let Some(owner) = owners.get_mut(usize::from(slot)) {
                    *owner = to;
                }
            }
        }
        Ok(Target { asked: asked.to_owned(), ..Target::new(name, rule, already) })
    }

    fn spread(&self, prefix: &str, over: &BTreeSet<GroupId>) -> Result<Target, ChangeError> {
        self.check(prefix, check_start(prefix), over)?;
        let Some(rule) = self.map.rules().get(prefix) else { return Err(self.no_rule(prefix)) };
        let rule = self.planned(prefix, rule.clone(), over)?;
        Ok(Target::new(prefix, rule, "its strategy finds nothing better"))
    }

    /// The rule with the table that its strategy makes of the present one.
    fn planned(&self, prefix: &str, rule: Rule, over: &BTreeSet<GroupId>) -> Result<Rule, ChangeError> {
        let loads = self.loads(prefix, rule.depth);
        let table = self.registry.plan(prefix, &rule, over, &loads)?.unwrap_or(rule.table);
        let found = table.groups();
        if !found.is_subset(over) {
            let strategy = rule.strategy.name;
            return Err(ChangeError::ForeignGroups { strategy, found, allowed: over.clone() });
        }
        Ok(Rule { table, ..rule })
    }

    /// What the keys of a prefix cost, without the names that longer prefixes decide for.
    fn loads(&self, prefix: &str, depth: u16) -> Vec<Load> {
        let mut keys: BTreeMap<&str, u64> = BTreeMap::new();
        for load in self.names {
            let name = routed_name(&load.name);
            let decided_longer = self.map.rule_of(name).is_some_and(|(other, _)| other.len() > prefix.len());
            if name.starts_with(prefix) && !decided_longer {
                let cost = keys.entry(partition_key(name, prefix, depth)).or_default();
                *cost = cost.saturating_add(load.entries_per_s);
            }
        }
        keys.into_iter().map(|(key, cost)| Load { key: key.to_owned(), cost }).collect()
    }

    fn check(
        &self,
        text: &str,
        checked: Result<(), NameFault>,
        groups: &BTreeSet<GroupId>,
    ) -> Result<(), ChangeError> {
        checked.map_err(|fault| ChangeError::BadText { text: text.to_owned(), fault })?;
        self.check_groups(groups)?;
        let own = self.map.rules().get_key_value(text).map(|(prefix, rule)| (prefix.as_str(), rule));
        for (pinned, rule) in own.into_iter().chain(covering(self.map, text)) {
            let group = rule.table.groups().first().copied();
            if let (true, Some(group)) = (rule.strategy.name == Pinned::NAME, group) {
                return Err(ChangeError::Pinned {
                    prefix: text.to_owned(),
                    pinned: pinned.to_owned(),
                    group,
                });
            }
        }
        Ok(())
    }

    fn check_groups(&self, groups: &BTreeSet<GroupId>) -> Result<(), ChangeError> {
        let usable = &self.groups.usable;
        for group in groups {
            if self.groups.retired.contains(group) {
                return Err(ChangeError::RetiredGroup { group: *group, usable: usable.clone() });
            }
            if !usable.contains(group) || group.is_meta() {
                return Err(ChangeError::UnknownGroup { group: *group, known: usable.clone() });
            }
        }
        Ok(())
    }

    fn current(&self, prefix: &str) -> Result<Rule, ChangeError> {
        rule_in_place(self.map, prefix).ok_or_else(|| self.no_rule(prefix))
    }

    fn no_rule(&self, prefix: &str) -> ChangeError {
        let covering =
            covering(self.map, prefix).map(|(covering, _)| covering.to_owned()).unwrap_or_default();
        let rules = self.map.rules().keys().take(LISTED).cloned().collect();
        ChangeError::NoRule { prefix: prefix.to_owned(), covering, rules }
    }
}

fn one_interval(group: GroupId) -> Table {
    Table::Splits(BTreeMap::from([(String::new(), group)]))
}

/// The text right above a name in byte order, or `None` where no name is longer.
fn right_above(name: &str) -> Option<String> {
    let mut above = name.to_owned();
    above.push(LOWEST);
    check_name(&above).is_ok().then_some(above)
}
