//! `holdfast partitions`: which group owns which names.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use holdfast_client::{PartitionMap, PartitionTable};

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended},
    output::{self, Table},
};

/// Show the partition map
#[derive(Debug, Args)]
pub(crate) struct PartitionsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show how names are spread over groups; the rule with the longest matching prefix counts
    Show,
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: PartitionsArgs) -> Ended {
    let client = cluster::client(global)?;
    cluster::block_on(async {
        match args.verb {
            Verb::Show => {
                let map = client.admin().partitions().await.map_err(|e| failed(&e))?;
                output::print(global.output, &map, in_words)?;
            }
        }
        Ok(failure::OK)
    })
}

fn in_words(map: &PartitionMap) -> String {
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
