//! The planner in virtual time: what it does about hot, single, quiet and steady load, and what keeps it from acting.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod maps;
mod world;

use std::collections::BTreeSet;

use holdfast_partitioner::change::Request;
use holdfast_partitioner::planner::{Mode, Planner, Policy, PolicyFault, Wait};
use holdfast_partitioner::{GroupId, Registry, StrategyRecord};
use proptest::prelude::*;
use world::{HOUR_MS, LOOK_MS, MINUTE_MS, World};

fn auto() -> Policy {
    Policy::standard(Mode::Auto)
}

/// Names `PREFIX0`, `PREFIX1`, … where the n-th has a rate in proportion to 1/n.
fn zipf(prefix: &str, names: u64, total: u64) -> Vec<(String, u64)> {
    let harmonic: f64 = (1..=names).map(|n| 1.0 / n as f64).sum();
    (1..=names)
        .map(|n| (format!("{prefix}{:03}", n * 37 % 1000), (total as f64 / harmonic / n as f64) as u64))
        .collect()
}

/// Many first segments of little load each.
fn background(each: u64) -> Vec<(String, u64)> {
    (0..60).map(|n| (format!("app{n}/lock"), each)).collect()
}

#[test]
fn steady_load_that_hurts_nobody_moves_nothing_for_hours() {
    let mut world = World::new(4, auto(), background(60));
    world.noise_percent = 15;
    world.look_ms = 30_000;
    world.run(6 * HOUR_MS);
    assert_eq!(world.changes, []);
    assert!(world.history.held.is_empty());
}

#[test]
fn a_prefix_with_zipf_load_is_split_until_groups_share_it_and_then_stays() {
    let mut world = World::new(4, auto(), zipf("jobs/", 200, 8_000).into_iter().chain(background(10)));
    world.noise_percent = 10;
    world.look_ms = 30_000;
    let before = world.per_group();
    assert!(before.values().any(|entries| *entries > 7_800));
    world.run(3 * HOUR_MS);
    let after = world.per_group();
    let rule = &world.map.rules()["jobs/"];
    assert_eq!(rule.strategy.name, "range");
    assert!(rule.table.groups().len() >= 3, "{rule:?}");
    assert!(after.values().all(|entries| *entries < 3_400), "{after:?}");
    assert!(matches!(world.changes[0].1, Request::Split { .. }), "{:?}", world.changes);
    let changes = world.changes.len();
    assert!(changes <= 8, "{:?}", world.changes);
    world.run(5 * HOUR_MS);
    assert_eq!(world.changes.len(), changes, "{:?}", world.changes);
}

#[test]
fn a_prefix_of_very_many_small_names_is_split_by_hash() {
    let names = (0..2_000).map(|n| (format!("orders/{n}"), 2));
    let mut world = World::new(3, auto(), names);
    world.look_ms = 30_000;
    world.run(HOUR_MS);
    assert_eq!(world.map.rules()["orders/"].strategy.name, "hash");
    let changes = world.changes.len();
    world.run(2 * HOUR_MS);
    assert_eq!(world.changes.len(), changes, "{:?}", world.changes);
}

#[test]
fn a_single_hot_name_is_isolated_and_its_prefix_not_split() {
    let rest = (0..30).map(|n| (format!("jobs/{n}"), 20));
    let mut world = World::new(4, auto(), rest.chain([("jobs/hot".into(), 5_000)]).chain(background(20)));
    let before = world.map.clone();
    world.noise_percent = 10;
    world.look_ms = 30_000;
    world.run(6 * HOUR_MS);
    assert_eq!(world.changes.len(), 1, "{:?}", world.changes);
    assert!(matches!(&world.changes[0].1, Request::Isolate { name, .. } if name == "jobs/hot"));
    let moved: Vec<&String> =
        world.rates.keys().filter(|name| before.locate(name) != world.map.locate(name)).collect();
    assert_eq!(moved, ["jobs/hot"]);
    assert!(world.notes().contains("which no split helps"), "{}", world.notes());
}

#[test]
fn a_prefix_that_was_split_and_is_quiet_for_long_is_merged_back() {
    let mut world = World::new(4, auto(), zipf("jobs/", 50, 6_000));
    let before = world.map.clone();
    world.run(2 * HOUR_MS);
    assert!(world.map.rules().contains_key("jobs/"));
    let splits = world.changes.len();
    for rate in world.rates.values_mut() {
        *rate = 0;
    }
    world.run(29 * MINUTE_MS);
    assert_eq!(world.changes.len(), splits, "not yet: {:?}", world.changes);
    world.run(2 * MINUTE_MS);
    assert!(matches!(&world.changes[splits].1, Request::Merge { prefix, to: None } if prefix == "jobs/"));
    world.run(20 * MINUTE_MS);
    assert_eq!(world.map.rules(), before.rules());
    let changes = world.changes.len();
    world.run(3 * HOUR_MS);
    assert_eq!(world.changes.len(), changes);
}

#[test]
fn an_overloaded_group_of_many_small_prefixes_gives_one_away() {
    let policy = auto();
    let mut world = World::new(2, policy, []);
    let home = world.map.locate("a0");
    let here = (0..).map(|n| format!("a{n}/lock")).filter(|name| world.map.locate(name) == home).take(10);
    let rates: Vec<(String, u64)> = here.map(|name| (name, 400)).collect();
    world.rates = rates.into_iter().collect();
    world.run(6 * HOUR_MS);
    assert!(
        world.changes.iter().all(|(_, request)| matches!(request, Request::Move { .. })),
        "{:?}",
        world.changes
    );
    assert!((2..=4).contains(&world.changes.len()), "{:?}", world.changes);
    assert!(world.per_group().values().all(|entries| *entries <= 2_800), "{:?}", world.per_group());
}

#[test]
fn a_veto_is_respected_and_the_next_worst_is_helped() {
    let mut policy = auto();
    policy.vetoes = BTreeSet::from(["jobs/".to_owned()]);
    let mut world =
        World::new(4, policy, zipf("jobs/", 100, 9_000).into_iter().chain(zipf("mail/", 100, 4_000)));
    let before = world.map.clone();
    world.run(2 * HOUR_MS);
    assert!(
        world
            .rates
            .keys()
            .filter(|name| name.starts_with("jobs/"))
            .all(|name| before.locate(name) == world.map.locate(name))
    );
    assert!(world.map.rules().contains_key("mail/"), "{:?}", world.changes);
    world.rates.retain(|name, _| name.starts_with("jobs/"));
    world.look();
    assert!(world.notes().contains("an operator's veto on \"jobs/\" forbids it"), "{}", world.notes());
    let changes = world.changes.len();
    world.policy.vetoes = BTreeSet::from([String::new()]);
    world.run(3 * HOUR_MS);
    assert_eq!(world.changes.len(), changes, "the empty veto forbids merging, too");
}

#[test]
fn a_group_that_elects_blocks_everything_and_its_load_counts_anew() {
    let mut world = World::new(4, auto(), zipf("jobs/", 100, 9_000));
    let hot = world.map.locate("jobs/");
    world.electing = BTreeSet::from([GroupId(hot.0 % 4 + 1)]);
    world.run(HOUR_MS);
    assert_eq!(world.changes, []);
    assert!(matches!(world.last.as_ref().unwrap().wait, Some(Wait::Electing { .. })));
    // The hot group itself elects last: only what its next leader measures counts.
    world.electing = BTreeSet::from([hot]);
    world.look();
    world.electing.clear();
    world.run(50_000);
    assert_eq!(world.changes, []);
    world.run(3 * LOOK_MS);
    assert_eq!(world.changes.len(), 1);
}

#[test]
fn a_condition_must_hold_for_a_minute_and_a_pause_follows_every_move() {
    let mut world = World::new(4, auto(), zipf("jobs/", 100, 9_000));
    let begun_ms = world.now_ms;
    world.run(HOUR_MS);
    let starts: Vec<u64> = world.changes.iter().map(|(at_ms, _)| *at_ms).collect();
    assert!(starts.len() >= 2, "{starts:?}");
    assert!(starts[0] >= begun_ms + 60_000 && starts[0] <= begun_ms + 80_000, "{starts:?}");
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 5 * MINUTE_MS), "{starts:?}");

    // A dip starts the minute anew.
    let mut world = World::new(4, auto(), zipf("jobs/", 100, 9_000));
    let rates = world.rates.clone();
    for _ in 0..20 {
        world.run(50_000);
        world.rates.clear();
        world.look();
        world.rates = rates.clone();
    }
    assert_eq!(world.changes, []);
}

#[test]
fn looks_that_were_missed_start_all_waiting_anew() {
    let mut world = World::new(4, auto(), zipf("jobs/", 100, 9_000));
    world.run(50_000);
    world.now_ms += 10 * MINUTE_MS;
    world.look();
    world.run(40_000);
    assert_eq!(world.changes, []);
    world.now_ms -= 20 * MINUTE_MS;
    world.run(50_000);
    assert_eq!(world.changes, [], "a clock that goes back proves nothing either");
}

#[test]
fn the_moves_of_an_hour_are_limited() {
    let mut policy = auto();
    policy.moves_per_hour = 1;
    let mut world = World::new(4, policy, zipf("jobs/", 200, 9_000));
    world.run(HOUR_MS - MINUTE_MS);
    assert_eq!(world.changes.len(), 1);
    assert_eq!(world.last.as_ref().unwrap().wait, Some(Wait::Budget { moves_per_hour: 1 }));
    // The next change takes two moves: it needs a larger budget, and the hour to be over.
    world.policy.moves_per_hour = 2;
    world.look();
    assert!(world.notes().contains("it takes 2 moves, and 1 are left this hour"), "{}", world.notes());
    world.run(10 * MINUTE_MS);
    assert_eq!(world.changes.len(), 2, "{:?}", world.changes);
}

#[test]
fn suggesting_says_the_same_and_moves_nothing_and_off_says_nothing() {
    let mut world = World::new(4, Policy::standard(Mode::Suggest), zipf("jobs/", 100, 9_000));
    world.run(10 * MINUTE_MS);
    let suggested = world.last.clone().unwrap();
    assert_eq!(world.changes, []);
    assert!(suggested.to_carry_out().is_none());
    let proposal = suggested.proposal.unwrap();
    assert!(matches!(proposal.request, Request::Split { .. }));
    assert!(proposal.why.contains("\"jobs/\" in group"), "{}", proposal.why);
    assert!(proposal.why.contains("entries/s (limit 2000)"), "{}", proposal.why);

    world.policy.mode = Mode::Auto;
    world.look();
    assert_eq!(world.changes[0].1, proposal.request);

    world.policy.mode = Mode::Off;
    world.run(HOUR_MS);
    let off = world.last.clone().unwrap();
    assert_eq!((off.proposal, off.wait), (None, Some(Wait::Off)));
    assert_eq!(world.changes.len(), 1);
}

#[test]
fn a_change_under_way_and_load_of_another_map_block_planning() {
    let mut world = World::new(4, auto(), zipf("jobs/", 100, 9_000));
    world.history.changing = true;
    world.run(10 * MINUTE_MS);
    assert_eq!(world.last.as_ref().unwrap().wait, Some(Wait::Changing));
    world.history.change_ended();

    let registry = Registry::built_in();
    let planner = Planner { policy: &world.policy, registry: &registry };
    let mut loads = world.loads();
    loads.epoch = loads.epoch.next().unwrap();
    let plan = planner.plan(world.now_ms, &world.map, &loads, &mut world.history);
    assert!(matches!(plan.wait, Some(Wait::OtherMap { .. })));
    let mut loads = world.loads();
    loads.groups.remove(&GroupId(2));
    let plan = planner.plan(world.now_ms, &world.map, &loads, &mut world.history);
    assert_eq!(plan.wait, Some(Wait::Unmeasured { group: GroupId(2) }));
    assert_eq!(world.changes, []);
}

#[test]
fn a_strategy_that_this_member_lacks_is_named_with_those_it_has() {
    let mut policy = auto();
    policy.by_load = StrategyRecord { name: "tenants".into(), params: Default::default() };
    let mut world = World::new(4, policy, zipf("jobs/", 100, 9_000));
    world.run(10 * MINUTE_MS);
    assert_eq!(world.changes, []);
    let expected = "there is no partition strategy `tenants` here; known are hash, pinned, range, rendezvous";
    assert!(world.notes().contains(expected), "{}", world.notes());
}

#[test]
fn a_policy_that_contradicts_itself_is_refused_with_every_reason() {
    let mut policy = auto();
    policy.quiet_entries_per_s = policy.hot_entries_per_s;
    policy.cool_down_ms = 1;
    let faults = policy.check().unwrap_err();
    assert_eq!(faults.0, [PolicyFault::QuietTooHigh, PolicyFault::Times]);
    let mut world = World::new(2, policy, zipf("jobs/", 100, 9_000));
    world.run(10 * MINUTE_MS);
    assert!(matches!(world.last.unwrap().wait, Some(Wait::BadPolicy { .. })));
    assert!(auto().check().is_ok());
}

/// Hours of a cluster each, so fewer than of other laws.
fn cases() -> ProptestConfig {
    ProptestConfig::with_cases(maps::config().cases / 40)
}

fn prefixes_with_load() -> impl Strategy<Value = Vec<(String, u64)>> {
    prop::collection::vec((1u64..120, 0u64..9_000), 1..6).prop_map(|prefixes| {
        let names = (0..).zip(prefixes).map(|(n, (names, total))| zipf(&format!("p{n}/"), names, total));
        names.flatten().collect()
    })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_plan_applies_to_the_map_it_was_made_for_whatever_the_map(
        (map, names) in maps::map_and_names(), rates in prop::collection::vec(0u64..9_000, 8),
        queue_ms in 0u64..300, vetoed in any::<bool>(),
    ) {
        let mut world = World::new(5, auto(), names.into_iter().zip(rates));
        let veto = world.rates.keys().next().cloned().unwrap_or_default();
        world.map = map;
        world.queue_ms = queue_ms;
        if vetoed {
            world.policy.vetoes.insert(veto.clone());
        }
        let before = world.map.locate(&veto);
        for _ in 0..100 {
            world.look();
        }
        prop_assert!(!vetoed || world.map.locate(&veto) == before);
    }

    #[test]
    fn any_steady_load_comes_to_rest(
        rates in prefixes_with_load(), groups in 2u32..6, noise_percent in prop_oneof![Just(0u64), 1u64..12],
    ) {
        let mut world = World::new(groups, auto(), rates);
        world.noise_percent = noise_percent;
        world.look_ms = 30_000;
        let worst_before = world.per_group().into_values().max();
        world.run(3 * HOUR_MS);
        let changes = world.changes.len();
        prop_assert!(changes <= 20, "{:?}", world.changes);
        world.run(2 * HOUR_MS);
        // Noise may bring what was just below its limits above them once; nothing goes to and fro.
        let late = world.changes.len() - changes;
        prop_assert!(late <= usize::from(noise_percent > 0), "{:?}", world.changes);
        let most = world.moves.values().copied().max().unwrap_or(0);
        prop_assert!(most <= 4, "a name moved {} times: {:?}", most, world.changes);
        prop_assert!(world.per_group().into_values().max() <= worst_before);
    }
}
