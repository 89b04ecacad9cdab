//! `rendezvous` and `range`: what they move when groups come and go, where they split, what they refuse.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};

use holdfast_partitioner::{
    GroupId, Load, Params, Registry, RegistryError, Rule, SplitKeys, StrategyError, StrategyRecord, Table,
};
use proptest::prelude::*;

fn groups(ids: impl IntoIterator<Item = u32>) -> BTreeSet<GroupId> {
    ids.into_iter().map(GroupId).collect()
}

fn rendezvous(slots: u16) -> StrategyRecord {
    StrategyRecord { name: "rendezvous".into(), params: Params::from([("slots".into(), slots.to_string())]) }
}

fn rule(record: StrategyRecord, over: &BTreeSet<GroupId>) -> Rule {
    Registry::built_in().rule("jobs/", 1, record, over).unwrap()
}

fn planned(rule: &Rule, over: &BTreeSet<GroupId>, loads: &[Load]) -> Option<Table> {
    Registry::built_in().plan("jobs/", rule, over, loads).unwrap()
}

fn owners(table: &Table) -> &[GroupId] {
    match table {
        Table::Slots(owners) => owners,
        Table::Splits(_) => panic!("slots expected"),
    }
}

fn loads(costs: &[u64]) -> Vec<Load> {
    (0..).zip(costs).map(|(n, cost): (usize, _)| Load { key: format!("jobs/{n:03}"), cost: *cost }).collect()
}

fn costs(table: &Table, loads: &[Load]) -> BTreeMap<GroupId, u64> {
    let mut costs = BTreeMap::new();
    for load in loads {
        *costs.entry(table.owner(&load.key).unwrap()).or_default() += load.cost;
    }
    costs
}

fn one_interval(group: u32) -> Rule {
    let table = Table::Splits([(String::new(), GroupId(group))].into());
    Rule { depth: 1, strategy: SplitKeys::record(), table }
}

proptest! {
    #[test]
    fn a_group_that_joins_takes_slots_and_nothing_else_moves(
        ids in prop::collection::btree_set(1u32..40, 1..12), joins in 40u32..60, slots in 64u16..600,
    ) {
        let (before, mut after) = (groups(ids.clone()), groups(ids));
        after.insert(GroupId(joins));
        let (old, new) = (rule(rendezvous(slots), &before), rule(rendezvous(slots), &after));
        for (old, new) in owners(&old.table).iter().zip(owners(&new.table)) {
            prop_assert!(old == new || *new == GroupId(joins));
        }
        // And the other way round: one that leaves gives its slots away, and nothing else moves.
        let emptied = planned(&new, &before, &[]);
        prop_assert_eq!(emptied.unwrap_or(new.table.clone()), old.table);
        prop_assert_eq!(planned(&new, &after, &[]), None);
    }

    #[test]
    fn shares_are_fair_on_average(first in 1u32..1000, count in 2u32..9) {
        let over = groups(first..first + count);
        let table = rule(rendezvous(4096), &over).table;
        let share = 4096 / count as usize;
        for group in over {
            let held = owners(&table).iter().filter(|owner| **owner == group).count();
            prop_assert!((share * 4 / 5..=share * 6 / 5).contains(&held), "{} of {} at {}", held, share, group);
        }
    }

    #[test]
    fn range_plans_are_nearer_to_even_and_final(
        spread in prop::collection::vec(0u64..1_000, 1..60), count in 1u32..6, start in 1u32..8,
    ) {
        let (over, loads, old) = (groups(1..=count), loads(&spread), one_interval(start));
        let new = planned(&old, &over, &loads).unwrap_or(old.table.clone());
        prop_assert!(new.groups().is_subset(&over));
        let total: u64 = spread.iter().sum();
        let worst = costs(&new, &loads).into_values().max().unwrap_or(0);
        let heaviest = spread.iter().copied().max().unwrap_or(0);
        // Never worse than the mean with a tolerance of a quarter, but for keys that cannot be divided.
        let mean = total / u64::from(count);
        prop_assert!(worst <= (mean + mean / 4 + 1).max(mean + heaviest), "{} of {:?}", worst, spread);
        let again = Rule { table: new, ..old };
        prop_assert_eq!(planned(&again, &over, &loads), None);
    }

    #[test]
    fn a_new_group_takes_its_share_of_even_load_from_others_only(count in 1u32..6) {
        let even = loads(&[10; 240]);
        let over = groups(1..=count);
        let old = Rule { table: planned(&one_interval(1), &over, &even).unwrap_or(one_interval(1).table), ..one_interval(1) };
        let joined = groups(1..=count + 1);
        let new = planned(&old, &joined, &even).unwrap();
        for load in &even {
            let (old, new) = (old.table.owner(&load.key), new.owner(&load.key));
            prop_assert!(old == new || new == Some(GroupId(count + 1)));
        }
        let share = 2400 / u64::from(count + 1);
        let got = costs(&new, &even)[&GroupId(count + 1)];
        prop_assert!(got * 10 >= share * 7 && got * 10 <= share * 13, "{} of {}", got, share);
    }
}

#[test]
fn range_splits_where_the_load_halves() {
    let loads = loads(&[10, 10, 10, 30, 20, 20, 20]);
    let table = planned(&one_interval(1), &groups([1, 2]), &loads);
    let halves = [(String::new(), GroupId(1)), ("jobs/004".to_owned(), GroupId(2))];
    assert_eq!(table, Some(Table::Splits(halves.into())));
}

#[test]
fn range_without_load_and_with_a_single_key_leaves_everything() {
    assert_eq!(planned(&one_interval(1), &groups([1, 2]), &[]), None);
    assert_eq!(planned(&one_interval(1), &groups([1, 2]), &loads(&[100])), None);
    assert_eq!(planned(&one_interval(1), &groups([1, 2]), &loads(&[0, 0, 0])), None);
}

#[test]
fn range_empties_a_group_and_joins_intervals_that_divide_nothing() {
    let splits = [("", 1), ("jobs/b", 3), ("jobs/d", 2)].map(|(key, group)| (key.to_owned(), GroupId(group)));
    let old = Rule { table: Table::Splits(splits.into()), ..one_interval(1) };
    let table = planned(&old, &groups([1, 2]), &[]).unwrap();
    assert_eq!(table.groups(), groups([1, 2]));
    assert_eq!(table.len(), 2);
    assert_eq!(planned(&old, &groups([5]), &[]), Some(one_interval(5).table));
}

#[test]
fn range_keeps_to_its_number_of_intervals() {
    let record =
        StrategyRecord { name: "range".into(), params: Params::from([("intervals".into(), "2".into())]) };
    let old = Rule { strategy: record, ..one_interval(1) };
    let table = planned(&old, &groups(1..=5), &loads(&[10; 100])).unwrap();
    assert_eq!(table.len(), 2);
}

fn refusal(name: &str, settings: &[(&str, &str)]) -> String {
    let params: Params = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Registry::built_in().get(name).unwrap().check_params(&params).unwrap_err().to_string()
}

#[test]
fn settings_are_refused_with_what_is_allowed() {
    let bare = Registry::built_in().get("rendezvous").unwrap().check_params(&Params::new());
    assert_eq!(bare, Ok(()), "a table has 256 slots where nothing is said");
    assert_eq!(
        refusal("rendezvous", &[("slots", "5000")]),
        "setting `slots` of strategy `rendezvous` is \"5000\"; it must be a number from 1 to 4096"
    );
    assert_eq!(
        refusal("rendezvous", &[("slots", "8"), ("seed", "1")]),
        "strategy `rendezvous` has no setting `seed`; it knows slots"
    );
    assert_eq!(
        refusal("range", &[("intervals", "0")]),
        "setting `intervals` of strategy `range` is \"0\"; it must be a number from 1 to 4096"
    );
    assert_eq!(
        refusal("range", &[("by", "load")]),
        "strategy `range` has no setting `by`; it knows intervals"
    );
}

#[test]
fn groups_are_refused_with_what_to_do() {
    for record in [rendezvous(4), SplitKeys::record()] {
        let refused =
            |over: BTreeSet<GroupId>| Registry::built_in().rule("", 1, record.clone(), &over).unwrap_err();
        assert_eq!(refused(groups([])), RegistryError::Strategy(StrategyError::NoGroups));
        assert_eq!(refused(groups([0, 1])), RegistryError::Strategy(StrategyError::MetaGroup));
    }
    let too_many = Registry::built_in().rule("", 1, rendezvous(4), &groups(1..=5));
    assert_eq!(too_many, Err(RegistryError::Strategy(StrategyError::TooManyGroups { groups: 5, slots: 4 })));
}
