//! Random valid maps and names that hit them. Knows how maps are built, not how they route.

use std::collections::BTreeMap;

use holdfast_partitioner::map::HOME_SLOTS;
use holdfast_partitioner::{
    GroupId, MapEpoch, MapParts, Params, PartitionMap, Rule, StrategyRecord, Table, name::check_start,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

/// Property cases: few in a usual run, many with `HOLDFAST_SOAK=1`.
pub(crate) fn config() -> ProptestConfig {
    let soak = std::env::var("HOLDFAST_SOAK").is_ok_and(|value| value == "1");
    ProptestConfig::with_cases(if soak { 5_000 } else { 500 })
}

/// Text a name may begin with: slashes anywhere, few segments so that names collide, and any unicode.
pub(crate) fn start() -> impl Strategy<Value = String> {
    let segment =
        select(vec!["", "", "a", "b", "ab", "jobs", "é", "日本", "\u{202e}rtl", ".", " ", "\u{10ffff}"]);
    prop_oneof![
        4 => vec(segment, 0..5).prop_map(|segments| segments.join("/")),
        1 => any::<String>().prop_filter("no control characters", |text| check_start(text).is_ok()),
    ]
}

/// A lock group out of a few.
pub(crate) fn group() -> impl Strategy<Value = GroupId> {
    (1u32..=5).prop_map(GroupId)
}

/// A table of slots, or of splits below `prefix`.
fn table(prefix: String) -> impl Strategy<Value = Table> {
    let slots = vec(group(), 1..20).prop_map(Table::Slots);
    let splits = (group(), btree_map(start(), group(), 0..6)).prop_map(move |(lowest, above)| {
        let extended = above.into_iter().filter(|(key, _)| !key.is_empty());
        let mut splits: BTreeMap<String, GroupId> =
            extended.map(|(key, group)| (format!("{prefix}{key}"), group)).collect();
        splits.insert(String::new(), lowest);
        Table::Splits(splits)
    });
    prop_oneof![slots, splits]
}

fn rule(prefix: String) -> impl Strategy<Value = Rule> {
    let strategy = StrategyRecord { name: "drawn".into(), params: Params::new() };
    (0u16..4, table(prefix)).prop_map(move |(depth, table)| Rule { depth, strategy: strategy.clone(), table })
}

/// Prefixes that nest: each new one extends one before it, or starts over.
fn prefixes() -> impl Strategy<Value = Vec<String>> {
    vec((any::<prop::sample::Index>(), start()), 0..7).prop_map(|steps| {
        let mut prefixes = vec![String::new()];
        for (parent, more) in steps {
            let longer = format!("{}{more}", parent.get(&prefixes));
            if !prefixes.contains(&longer) {
                prefixes.push(longer);
            }
        }
        prefixes
    })
}

/// Any valid map over a few groups.
pub(crate) fn map() -> impl Strategy<Value = PartitionMap> {
    prefixes().prop_flat_map(|prefixes| {
        let rules: Vec<_> = prefixes.into_iter().map(|prefix| (Just(prefix.clone()), rule(prefix))).collect();
        let homes = vec(group(), usize::from(HOME_SLOTS));
        (rules, homes).prop_map(|(rules, home_slots)| {
            let parts = MapParts { epoch: MapEpoch(7), rules: rules.into_iter().collect(), home_slots };
            PartitionMap::try_from(parts).expect("drawn maps are valid")
        })
    })
}

/// Every text that the map treats specially: its prefixes and split keys.
fn edges(map: &PartitionMap) -> Vec<String> {
    let mut edges: Vec<String> = map.rules().keys().cloned().collect();
    for rule in map.rules().values() {
        match &rule.table {
            Table::Slots(_) => {}
            Table::Splits(splits) => edges.extend(splits.keys().cloned()),
        }
    }
    edges
}

/// A map, and names that begin at, just before or beyond its edges.
pub(crate) fn map_and_names() -> impl Strategy<Value = (PartitionMap, Vec<String>)> {
    map().prop_flat_map(|map| {
        let near = (select(edges(&map)), any::<bool>(), start()).prop_map(|(edge, shorten, more)| {
            let mut name = edge;
            if shorten {
                name.pop();
            }
            name.push_str(&more);
            name
        });
        let name = prop_oneof![3 => near, 1 => start()].prop_filter("not empty", |name| !name.is_empty());
        (Just(map), vec(name, 1..8))
    })
}
