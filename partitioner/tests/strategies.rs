//! Strategies from outside: what they compute, what they refuse, and that another crate can bring its own.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_partitioner::hash::{hash64, slot_of_key};
use holdfast_partitioner::{
    GroupId, Load, MapParts, Params, PartitionMap, Registry, RegistryError, Rule, Scope, Strategy,
    StrategyError, StrategyRecord, Table,
};
use proptest::prelude::*;

fn groups(ids: impl IntoIterator<Item = u32>) -> BTreeSet<GroupId> {
    ids.into_iter().map(GroupId).collect()
}

fn hash_rule(slots: u16, over: &BTreeSet<GroupId>) -> Result<Rule, RegistryError> {
    Registry::built_in().rule("jobs/", 1, StrategyRecord::hash(slots), over)
}

fn owners(table: &Table) -> &[GroupId] {
    match table {
        Table::Slots(owners) => owners,
        Table::Splits(_) => panic!("slots expected"),
    }
}

fn sizes(table: &Table) -> BTreeMap<GroupId, usize> {
    let mut sizes = BTreeMap::new();
    for owner in owners(table) {
        *sizes.entry(*owner).or_default() += 1;
    }
    sizes
}

fn is_even(table: &Table, over: &BTreeSet<GroupId>) -> bool {
    let share = table.len() / over.len();
    let allowed = share..=share + usize::from(!table.len().is_multiple_of(over.len()));
    let sizes = sizes(table);
    sizes.keys().copied().collect::<BTreeSet<_>>() == *over
        && sizes.values().all(|size| allowed.contains(size))
}

proptest! {
    #[test]
    fn hash_gives_each_group_its_share_or_one_more(count in 1u32..80, slots in 80u16..400) {
        let over = groups(1..=count);
        prop_assert!(is_even(&hash_rule(slots, &over).unwrap().table, &over));
    }

    #[test]
    fn hash_plans_are_even_minimal_and_final(
        current in prop::collection::vec(1u32..8, 16),
        ids in prop::collection::btree_set(1u32..10, 1..9),
        costs in prop::collection::vec(0u64..100, 12),
    ) {
        let current: Vec<GroupId> = current.into_iter().map(GroupId).collect();
        let over = groups(ids);
        let loads: Vec<Load> =
            costs.into_iter().enumerate().map(|(n, cost)| Load { key: format!("jobs/{n}"), cost }).collect();
        let rule = Rule { depth: 1, strategy: StrategyRecord::hash(16), table: Table::Slots(current.clone()) };
        let registry = Registry::built_in();
        let planned = registry.plan("jobs/", &rule, &over, &loads).unwrap().unwrap_or(rule.table.clone());
        prop_assert!(is_even(&planned, &over));

        // No table that is even over the same groups differs in fewer slots.
        let moved = owners(&planned).iter().zip(&current).filter(|(new, old)| new != old).count();
        let mut held: Vec<usize> =
            over.iter().map(|group| current.iter().filter(|owner| *owner == group).count()).collect();
        held.sort_unstable_by(|a, b| b.cmp(a));
        let (share, odd) = (16 / over.len(), 16 % over.len());
        let kept: usize =
            held.iter().enumerate().map(|(rank, held)| (*held).min(share + usize::from(rank < odd))).sum();
        prop_assert_eq!(moved, 16 - kept);

        let again = Rule { table: planned, ..rule };
        prop_assert_eq!(registry.plan("jobs/", &again, &over, &loads).unwrap(), None);
    }
}

#[test]
fn hash_moves_the_cheapest_slots_to_a_new_group() {
    let rule = hash_rule(8, &groups([1])).unwrap();
    let key_of = |slot| (0..).map(|n| format!("jobs/{n}")).find(|key| slot_of_key(key, 8) == slot).unwrap();
    let loads: Vec<Load> = [(0, 9), (1, 1), (2, 8), (3, 7), (4, 0), (5, 6), (6, 2), (7, 3)]
        .map(|(slot, cost)| Load { key: key_of(slot), cost })
        .into();
    let planned = Registry::built_in().plan("jobs/", &rule, &groups([1, 2]), &loads).unwrap().unwrap();
    let given: Vec<usize> = (0..8).filter(|slot| owners(&planned)[*slot] == GroupId(2)).collect();
    assert_eq!(given, [1, 4, 6, 7]);
}

#[test]
fn hash_empties_a_group_that_may_own_nothing_any_more() {
    let rule = hash_rule(9, &groups([1, 2, 3])).unwrap();
    let planned = Registry::built_in().plan("jobs/", &rule, &groups([1, 3]), &[]).unwrap().unwrap();
    assert_eq!(planned.groups(), groups([1, 3]));
    let kept = owners(&rule.table).iter().zip(owners(&planned)).filter(|(old, new)| old == new).count();
    assert_eq!(kept, 6);
}

#[test]
fn hash_starts_over_where_another_shape_was_recorded() {
    let table = Table::Splits([(String::new(), GroupId(1))].into());
    let rule = Rule { depth: 1, strategy: StrategyRecord::hash(4), table };
    let planned = Registry::built_in().plan("jobs/", &rule, &groups([1, 2]), &[]).unwrap();
    assert_eq!(planned, Some(hash_rule(4, &groups([1, 2])).unwrap().table));
}

#[test]
fn pinned_gives_everything_to_its_group_and_keeps_it_there() {
    let registry = Registry::built_in();
    let over = groups([1, 2, 3]);
    let rule = registry.rule("jobs/", 0, StrategyRecord::pinned(GroupId(2)), &over).unwrap();
    assert_eq!(rule.table, Table::Slots(vec![GroupId(2)]));
    assert_eq!(registry.plan("jobs/", &rule, &over, &[]).unwrap(), None);
    let repinned = Rule { strategy: StrategyRecord::pinned(GroupId(3)), ..rule };
    assert_eq!(registry.plan("jobs/", &repinned, &over, &[]).unwrap(), Some(Table::Slots(vec![GroupId(3)])));
}

fn refusal(name: &str, settings: &[(&str, &str)]) -> String {
    let params: Params = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let registry = Registry::built_in();
    registry.get(name).unwrap().check_params(&params).unwrap_err().to_string()
}

#[test]
fn settings_are_refused_with_what_to_do() {
    assert_eq!(
        refusal("hash", &[("slots", "0")]),
        "setting `slots` of strategy `hash` is \"0\"; it must be a number from 1 to 4096"
    );
    assert_eq!(
        refusal("hash", &[("slots", "8"), ("seed", "1")]),
        "strategy `hash` has no setting `seed`; it knows slots"
    );
    assert_eq!(
        refusal("pinned", &[]),
        "strategy `pinned` needs the setting `group`: the number of a lock group, 1 or higher"
    );
    assert!(refusal("pinned", &[("group", "0")]).contains("1 or higher"));
    assert!(refusal("hash", &[("slots", "-1")]).contains("from 1 to 4096"));
    assert!(refusal("hash", &[("slots", "4097")]).contains("from 1 to 4096"));
}

#[test]
fn groups_are_refused_with_what_to_do() {
    let refused = |over| match hash_rule(4, &over) {
        Err(RegistryError::Strategy(error)) => error,
        other => panic!("refusal expected, got {other:?}"),
    };
    assert_eq!(refused(groups([])), StrategyError::NoGroups);
    assert_eq!(refused(groups([0, 1])), StrategyError::MetaGroup);
    assert_eq!(refused(groups(1..=5)), StrategyError::TooManyGroups { groups: 5, slots: 4 });
    let pin = Registry::built_in().rule("", 0, StrategyRecord::pinned(GroupId(7)), &groups([1]));
    assert_eq!(pin, Err(RegistryError::Strategy(StrategyError::GroupNotUsable { group: GroupId(7) })));
}

/// A strategy of another crate: each slot goes to the group that scores highest for it.
#[derive(Debug)]
struct HighestScore(&'static str);

impl Strategy for HighestScore {
    fn name(&self) -> &str {
        self.0
    }

    fn check_params(&self, _: &Params) -> Result<(), StrategyError> {
        Ok(())
    }

    fn initial_table(&self, scope: &Scope<'_>) -> Result<Table, StrategyError> {
        let score = |slot: u32, group: &GroupId| hash64(format!("{slot}/{group}").as_bytes());
        let best = |slot| scope.groups.iter().max_by_key(|group| score(slot, group)).copied();
        (0..64).map(best).collect::<Option<_>>().map(Table::Slots).ok_or(StrategyError::NoGroups)
    }

    fn plan(&self, scope: &Scope<'_>, current: &Table, _: &[Load]) -> Result<Option<Table>, StrategyError> {
        self.initial_table(scope).map(|table| (table != *current).then_some(table))
    }
}

#[test]
fn a_strategy_from_outside_makes_a_map_that_routes_without_it() {
    let mut registry = Registry::built_in();
    registry.register(Arc::new(HighestScore("highest-score"))).unwrap();
    assert_eq!(registry.names(), ["hash", "highest-score", "pinned", "range", "rendezvous"]);
    let record = StrategyRecord { name: "highest-score".into(), params: Params::new() };
    let rule = registry.rule("jobs/", 1, record, &groups([1, 2, 3])).unwrap();

    let mut parts: MapParts = PartitionMap::initial(&[GroupId(4)]).unwrap().into_parts();
    parts.rules.insert("jobs/".into(), rule.clone());
    let bytes = postcard::to_allocvec(&PartitionMap::try_from(parts).unwrap()).unwrap();
    let elsewhere: PartitionMap = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(elsewhere.locate("jobs/a/b"), rule.table.owner("jobs/a").unwrap());
    assert_eq!(elsewhere.locate("jobs"), GroupId(4));

    let unknown = Registry::built_in().plan("jobs/", &rule, &groups([1]), &[]).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no partition strategy `highest-score` here; known are hash, pinned, range, rendezvous"
    );
}

#[test]
fn a_taken_or_unusable_strategy_name_is_refused() {
    let mut registry = Registry::built_in();
    let taken = registry.register(Arc::new(HighestScore("hash")));
    assert_eq!(taken, Err(RegistryError::Taken { name: "hash".into() }));
    for name in ["", "Hash", "a b", "ü"] {
        let bad = registry.register(Arc::new(HighestScore(name)));
        assert_eq!(bad, Err(RegistryError::BadName { name: name.into() }));
    }
    assert_eq!(registry.names(), ["hash", "pinned", "range", "rendezvous"]);
}
