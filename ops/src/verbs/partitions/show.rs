//! The partition map for people.

use std::collections::BTreeMap;

use holdfast_client::{PartitionMap, PartitionTable};

use crate::output::Table;

/// The map, rule by rule.
pub(super) fn in_words(map: &PartitionMap) -> String {
    let mut table = Table::new(&["PREFIX", "SEGMENTS", "STRATEGY", "OWNERS"], "no rules");
    for rule in &map.rules {
        table.row([
            if rule.prefix.is_empty() { "(all)".into() } else { rule.prefix.clone() },
            rule.depth.to_string(),
            rule.strategy.clone(),
            owners(&rule.table),
        ]);
    }
    format!("map epoch {}\n\n{}", map.epoch, table.text())
}

fn owners(table: &PartitionTable) -> String {
    match table {
        PartitionTable::Slots(slots) => {
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            for group in slots {
                *counts.entry(*group).or_default() += 1;
            }
            let parts = counts.iter().map(|(group, slots)| format!("group {group}: {slots} slots"));
            parts.collect::<Vec<_>>().join(", ")
        }
        PartitionTable::Splits(splits) => {
            let parts = splits.iter().map(|(from, group)| format!("from {from:?}: group {group}"));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}
