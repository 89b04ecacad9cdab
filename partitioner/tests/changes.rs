//! Laws of changes under any valid map and any request: what moves, in which order, and what a group can check of it.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod maps;

use std::collections::{BTreeMap, BTreeSet};

use holdfast_partitioner::change::{Change, ChangeError, Given, Groups, Request, StepError, change};
use holdfast_partitioner::load::NameLoad;
use holdfast_partitioner::{
    GroupId, Params, PartitionMap, Range, Registry, Rule, SplitKeys, StrategyRecord, covers, same_names,
    without,
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;

/// A request in the making: its prefix is one of the map's, or near one.
type Draft = (u8, Index, bool, BTreeSet<GroupId>, GroupId, u16, StrategyRecord);

fn record() -> impl Strategy<Value = StrategyRecord> {
    let rendezvous = |slots: u16| StrategyRecord {
        name: "rendezvous".into(),
        params: Params::from([("slots".into(), slots.to_string())]),
    };
    prop_oneof![
        (5u16..40).prop_map(StrategyRecord::hash),
        (5u16..40).prop_map(rendezvous),
        Just(SplitKeys::record()),
    ]
}

fn draft() -> impl Strategy<Value = Draft> {
    (
        0u8..8,
        any::<Index>(),
        any::<bool>(),
        btree_set(maps::group(), 1..5),
        maps::group(),
        prop_oneof![1u16..4, Just(u16::MAX)],
        record(),
    )
}

fn request(draft: &Draft, map: &PartitionMap, names: &[String]) -> Request {
    let (kind, at, near, into, to, depth, strategy) = draft.clone();
    let rules: Vec<&String> = map.rules().keys().collect();
    let prefix = if near { at.get(names).clone() } else { (*at.get(&rules)).clone() };
    match kind {
        0 => Request::Move { prefix, to },
        1 => Request::Merge { prefix, to: None },
        2 => Request::Merge { prefix, to: Some(to) },
        3 => Request::Pin { prefix, to: Some(to) },
        4 => Request::Isolate { name: at.get(names).clone(), to },
        5 => Request::Spread { prefix, over: into },
        _ => Request::Split { prefix, into, depth, strategy },
    }
}

fn prefix_of(request: &Request) -> &str {
    match request {
        Request::Split { prefix, .. }
        | Request::Move { prefix, .. }
        | Request::Merge { prefix, .. }
        | Request::Pin { prefix, .. }
        | Request::Unpin { prefix }
        | Request::Spread { prefix, .. } => prefix,
        Request::Isolate { name, .. } => name,
    }
}

fn groups() -> Groups {
    Groups { usable: (1..=5).map(GroupId).collect(), retired: BTreeSet::new() }
}

fn loads(names: &[String]) -> Vec<NameLoad> {
    let load = |(n, name): (u64, &String)| NameLoad {
        name: name.clone(),
        entries_per_s: 10 + 7 * (n % 5),
        waiters: 0,
    };
    (0..).zip(names).map(load).collect()
}

fn asked(map: &PartitionMap, names: &[String], request: &Request) -> Result<Change, ChangeError> {
    let (groups, registry, names) = (groups(), Registry::built_in(), loads(names));
    let asked = change(&Given { map, groups: &groups, registry: &registry, names: &names }, request);
    // Steps are checked as they are made. That must never be what keeps a request from being fulfilled.
    if let Err(ChangeError::Step(error)) = &asked {
        panic!("{request:?} comes to steps that do not apply: {error}");
    }
    asked
}

/// Whether the rule of `prefix`, had it one, would decide for the name.
fn belongs(map: &PartitionMap, prefix: &str, name: &str) -> bool {
    let longer = |other: &&String| other.len() > prefix.len() && name.starts_with(other.as_str());
    name.starts_with(prefix) && !map.rules().keys().any(|other| longer(&other))
}

fn all_without(ranges: &[Range], taken: &Range) -> Vec<Range> {
    ranges.iter().flat_map(|range| without(range, std::slice::from_ref(taken))).collect()
}

/// What the groups hold in their states: as of the last step that each took part in.
struct Held(BTreeMap<GroupId, Vec<Range>>);

impl Held {
    fn new(map: &PartitionMap) -> Self {
        Self((1..=5).map(|n| (GroupId(n), map.ranges_of(GroupId(n)))).collect())
    }

    /// Carries a step out as groups do: the source must own the range, and both take over what the new map says only if
    /// that is what they have, less or more the range.
    fn step(&mut self, after: &PartitionMap, from: GroupId, to: GroupId, range: &Range) {
        assert!(covers(&self.0[&from], range), "{from} owns {range} among {:?}", self.0[&from]);
        let kept = all_without(&self.0[&from], range);
        assert!(same_names(&kept, &after.ranges_of(from)), "{from} keeps {kept:?}");
        let mut grown = self.0[&to].clone();
        grown.push(range.clone());
        assert!(same_names(&grown, &after.ranges_of(to)), "{to} has {grown:?}");
        for group in [from, to] {
            self.0.insert(group, after.ranges_of(group));
        }
    }
}

fn fulfilled(request: &Request, before: &PartitionMap, after: &PartitionMap, names: &[String]) {
    let prefix = prefix_of(request);
    for name in names.iter().filter(|name| belongs(before, prefix, name)) {
        let group = after.locate(name);
        match request {
            Request::Split { into, .. } | Request::Spread { over: into, .. } => {
                assert!(into.contains(&group))
            }
            Request::Move { to, .. } | Request::Pin { to: Some(to), .. } => assert_eq!(group, *to),
            Request::Merge { to: Some(to), .. } => assert_eq!(group, *to),
            Request::Isolate { to, .. } => assert!(name != prefix || group == *to),
            Request::Merge { to: None, .. } => {
                let mut parts = before.clone().into_parts();
                parts.rules.remove(prefix);
                assert_eq!(group, PartitionMap::try_from(parts).unwrap().locate(name), "{name:?}");
            }
            Request::Pin { to: None, .. } | Request::Unpin { .. } => assert_eq!(group, before.locate(name)),
        }
    }
}

proptest! {
    #![proptest_config(maps::config())]

    #[test]
    fn every_step_moves_its_range_and_nothing_else(
        (map, names) in maps::map_and_names(), drafts in vec(draft(), 1..4),
    ) {
        let mut map = map;
        // Keys of etcd clients route as they are, and may hold what no name may.
        let raw: Vec<String> = names.iter().map(|name| format!("{name}\u{1}x")).collect();
        let mut held = Held::new(&map);
        for draft in drafts {
            let request = request(&draft, &map, &names);
            let Ok(change) = asked(&map, &names, &request) else { continue };
            prop_assert!(!change.steps.is_empty());
            prop_assert_eq!(change.base, map.epoch());
            let before = map.clone();
            for step in &change.steps {
                let after = step.apply(&map).expect("a step applies to the map it was made for");
                prop_assert_eq!(Some(after.epoch()), map.epoch().next());
                for name in names.iter().chain(&raw) {
                    let (old, new) = (map.locate(name), after.locate(name));
                    match &step.moved {
                        Some(moved) if moved.range.contains(name) => {
                            prop_assert_eq!((old, new), (moved.from, moved.to), "{:?}", name);
                            prop_assert!(belongs(&before, &change.prefix, name), "{:?} is not asked for", name);
                        }
                        Some(_) | None => prop_assert_eq!(old, new, "{:?} by {:?}", name, step),
                    }
                }
                match &step.moved {
                    Some(moved) => {
                        prop_assert_ne!(moved.from, moved.to);
                        held.step(&after, moved.from, moved.to, &moved.range);
                    }
                    None => prop_assert_eq!(change.steps.len(), 1),
                }
                for group in (1..=5).map(GroupId) {
                    let now = after.ranges_of(group);
                    prop_assert!(same_names(&held.0[&group], &now), "{} holds {:?}, the map says {:?}", group, held.0[&group], now);
                }
                map = after;
            }
            fulfilled(&request, &before, &map, &names);
            prop_assert_eq!(change.apply(&before).unwrap(), map.clone());
        }
    }

    #[test]
    fn a_change_that_stopped_is_finished_when_asked_for_again(
        (map, names) in maps::map_and_names(), draft in draft(), at in any::<Index>(),
    ) {
        let request = request(&draft, &map, &names);
        let same_again = matches!(request, Request::Move { .. } | Request::Merge { .. } | Request::Pin { .. });
        let Ok(change) = asked(&map, &names, &request) else { return Ok(()) };
        if !same_again { return Ok(()) }
        let done = at.index(change.steps.len() + 1);
        let partly = change.steps[..done].iter().fold(map.clone(), |map, step| step.apply(&map).unwrap());
        let finished = match asked(&partly, &names, &request) {
            Ok(rest) => rest.apply(&partly).unwrap(),
            Err(ChangeError::NothingToDo { .. } | ChangeError::NoRule { .. } | ChangeError::Pinned { .. }) => partly,
            Err(other) => panic!("{other}"),
        };
        let wanted = change.apply(&map).unwrap();
        for name in &names {
            prop_assert_eq!(finished.locate(name), wanted.locate(name), "{:?}", name);
        }
    }

    #[test]
    fn isolating_takes_no_name_along_where_one_group_owns_all_that_begin_with_it(
        (map, names) in maps::map_and_names(), more in maps::start(), to in maps::group(),
    ) {
        for name in names.iter().filter(|name| map.groups_under(name).len() == 1) {
            let Ok(change) = asked(&map, &[], &Request::Isolate { name: name.clone(), to }) else { continue };
            let after = change.apply(&map).unwrap();
            prop_assert_eq!(after.locate(name), to);
            prop_assert_eq!(change.moves(), 1);
            let longer = format!("{name}{more}");
            if longer != *name && map.rules().get(name).is_none() {
                prop_assert_eq!(after.locate(&longer), map.locate(&longer), "{:?}", longer);
            }
        }
    }

    #[test]
    fn what_covers_says_is_true_of_every_name((map, names) in maps::map_and_names(), other in maps::map()) {
        for group in map.groups() {
            let ranges = map.ranges_of(group);
            for wanted in other.groups().into_iter().flat_map(|group| other.ranges_of(group)) {
                let left = without(&wanted, &ranges);
                for name in &names {
                    let inside = wanted.contains(name);
                    let owned = ranges.iter().any(|range| range.contains(name));
                    let remains = left.iter().filter(|range| range.contains(name)).count();
                    prop_assert!(remains <= 1, "{:?} twice in {:?}", name, left);
                    if inside && !owned {
                        prop_assert_eq!(remains, 1, "{:?} of {} without {:?}", name, wanted, ranges);
                    }
                    if !inside {
                        prop_assert_eq!(remains, 0, "{:?} of {}", name, wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn changes_survive_their_encodings((map, names) in maps::map_and_names(), draft in draft()) {
        let request = request(&draft, &map, &names);
        let bytes = postcard::to_allocvec(&request).unwrap();
        prop_assert_eq!(&postcard::from_bytes::<Request>(&bytes).unwrap(), &request);
        if let Ok(change) = asked(&map, &names, &request) {
            let bytes = postcard::to_allocvec(&change).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<Change>(&bytes).unwrap(), &change);
            let json = serde_json::to_string(&change).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Change>(&json).unwrap(), &change);
        }
    }

    #[test]
    fn a_step_is_refused_by_every_other_map((map, names) in maps::map_and_names(), draft in draft(), group in maps::group()) {
        let Ok(change) = asked(&map, &names, &request(&draft, &map, &names)) else { return Ok(()) };
        let mut parts = map.clone().into_parts();
        parts.epoch = parts.epoch.next().unwrap();
        let later = PartitionMap::try_from(parts).unwrap();
        let refused = matches!(change.steps[0].apply(&later), Err(StepError::OtherMap { .. }));
        prop_assert!(refused);
        let mut wrong = change.steps[0].clone();
        if let Some(moved) = &mut wrong.moved && moved.from != group {
            moved.from = group;
            prop_assert_eq!(wrong.apply(&map), Err(StepError::OtherGroup { group }));
        }
    }
}

#[test]
fn a_rule_from_outside_is_moved_and_merged_without_its_strategy() {
    let map = PartitionMap::initial(&[GroupId(1), GroupId(2)]).unwrap();
    let mut parts = map.into_parts();
    let strategy = StrategyRecord { name: "elsewhere".into(), params: Params::new() };
    let table = holdfast_partitioner::Table::Slots(vec![GroupId(1), GroupId(2)]);
    parts.rules.insert("jobs/".into(), Rule { depth: 1, strategy, table });
    let map = PartitionMap::try_from(parts).unwrap();
    let moved = asked(&map, &[], &Request::Move { prefix: "jobs/".into(), to: GroupId(3) }).unwrap();
    assert_eq!(moved.moves(), 2);
    assert!(asked(&map, &[], &Request::Merge { prefix: "jobs/".into(), to: None }).is_ok());
    let over = BTreeSet::from([GroupId(1)]);
    let refused = asked(&map, &[], &Request::Spread { prefix: "jobs/".into(), over }).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there is no partition strategy `elsewhere` here; known are hash, pinned, range, rendezvous"
    );
}

#[test]
fn the_drawn_requests_reach_every_kind_of_change() {
    // Keeps the laws above from being true of nothing.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut made: BTreeMap<u8, usize> = BTreeMap::new();
    for _ in 0..300 {
        let drawn = (maps::map_and_names(), draft()).new_tree(&mut runner).unwrap().current();
        let ((map, names), draft) = drawn;
        if asked(&map, &names, &request(&draft, &map, &names)).is_ok_and(|change| change.moves() > 0) {
            *made.entry(draft.0).or_default() += 1;
        }
    }
    // Spreading needs a rule whose strategy is known here; drawn maps have none of these.
    for kind in [0u8, 1, 2, 3, 4, 6, 7] {
        assert!(made.get(&kind).is_some_and(|made| *made >= 5), "kind {kind}: {made:?}");
    }
}
