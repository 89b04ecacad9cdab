//! The rule of a prefix as it is, or as it would have to be so that every name stays where it is.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::map::{PartitionMap, Rule};
use crate::name::{key_is_decided, partition_key};
use crate::strategy::SplitKeys;
use crate::table::Table;

/// The rule that decides for names that begin with `prefix` and with no longer prefix of a rule.
pub(crate) fn rule_in_place(map: &PartitionMap, prefix: &str) -> Option<Rule> {
    match map.rules().get(prefix) {
        Some(rule) => Some(rule.clone()),
        None => rule_without(map, prefix),
    }
}

/// The rule that `prefix` would need if it had none, so that its names go where the next shorter prefix puts them.
///
/// Keys stay cut at the same place: the depth is what is left of it after the segments that have ended in `prefix`.
pub(crate) fn rule_without(map: &PartitionMap, prefix: &str) -> Option<Rule> {
    let (covering, rule) = covering(map, prefix)?;
    if key_is_decided(prefix, covering, rule.depth) {
        let owner = rule.table.owner(partition_key(prefix, covering, rule.depth))?;
        let table = Table::Splits(BTreeMap::from([(String::new(), owner)]));
        return Some(Rule { depth: 1, strategy: SplitKeys::record(), table });
    }
    let ended = prefix.strip_prefix(covering)?.matches('/').count();
    let depth = rule.depth.saturating_sub(u16::try_from(ended).unwrap_or(u16::MAX));
    let table = match &rule.table {
        Table::Slots(owners) => Table::Slots(owners.clone()),
        Table::Splits(splits) => {
            let above = splits.iter().filter(|(key, _)| key.as_str() > prefix && key.starts_with(prefix));
            let mut below: BTreeMap<String, _> = above.map(|(key, group)| (key.clone(), *group)).collect();
            below.insert(String::new(), rule.table.owner(prefix)?);
            Table::Splits(below)
        }
    };
    Some(Rule { depth, strategy: rule.strategy.clone(), table })
}

/// The next shorter prefix that has a rule, and the rule.
pub(crate) fn covering<'m>(map: &'m PartitionMap, prefix: &str) -> Option<(&'m str, &'m Rule)> {
    let shorter = map.rules().iter().filter(|(other, _)| other.len() < prefix.len());
    let above = shorter.filter(|(other, _)| prefix.starts_with(other.as_str()));
    above.max_by_key(|(other, _)| other.len()).map(|(other, rule)| (other.as_str(), rule))
}

/// Prefixes of other rules that begin with `prefix`.
pub(crate) fn longer_prefixes(map: &PartitionMap, prefix: &str) -> impl Iterator<Item = String> {
    let longer =
        map.rules().keys().filter(move |other| other.len() > prefix.len() && other.starts_with(prefix));
    longer.cloned()
}
