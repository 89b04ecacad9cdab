//! Everything that derives from a lock goes where the lock goes, under any map and through any change: keys, session
//! references, the queue of the election of that name, events and history.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod maps;

use std::collections::BTreeSet;

use holdfast_partitioner::change::{Given, Groups, Request, change};
use holdfast_partitioner::{ELECTION_MARKER, GroupId, PartitionMap, Registry, owns, routed_name};
use proptest::prelude::*;

/// Keys of a lock or election as the groups store them, one for each session that holds or waits.
fn keys(queue: &str, sessions: &[u64]) -> Vec<String> {
    sessions.iter().map(|session| format!("{queue}/{session:x}")).collect()
}

/// Which queue a key belongs to: all before its last slash.
fn queue_of(key: &str) -> &str {
    key.rsplit_once('/').expect("every key of a queue has a slash").0
}

/// Where a record of a lock is looked for, by the only way there is: by the name of its queue.
fn places(map: &PartitionMap, name: &str, sessions: &[u64]) -> BTreeSet<GroupId> {
    let election = format!("{ELECTION_MARKER}{name}");
    let mut places =
        BTreeSet::from([map.locate(name), map.locate(&election), map.locate(routed_name(&election))]);
    for queue in [name, &election] {
        places.extend(keys(queue, sessions).iter().map(|key| map.locate(queue_of(key))));
    }
    places
}

/// The groups that may change a record of a lock, by their own state.
fn owners(map: &PartitionMap, name: &str, sessions: &[u64]) -> BTreeSet<GroupId> {
    let election = format!("{ELECTION_MARKER}{name}");
    let mut owners = BTreeSet::new();
    for group in map.groups() {
        let ranges = map.ranges_of(group);
        for queue in [name, &election] {
            let any_key = keys(queue, sessions).iter().any(|key| owns(&ranges, queue_of(key)));
            if owns(&ranges, queue) || any_key {
                owners.insert(group);
            }
        }
    }
    owners
}

fn requests(prefix: &str, to: GroupId) -> [Request; 4] {
    [
        Request::Move { prefix: prefix.into(), to },
        Request::Merge { prefix: prefix.into(), to: None },
        Request::Pin { prefix: prefix.into(), to: Some(to) },
        Request::Isolate { name: prefix.into(), to },
    ]
}

proptest! {
    #![proptest_config(maps::config())]

    #[test]
    fn what_derives_from_a_lock_is_where_the_lock_is(
        (map, names) in maps::map_and_names(), sessions in prop::collection::vec(any::<u64>(), 1..4),
    ) {
        for name in &names {
            let place = BTreeSet::from([map.locate(name)]);
            prop_assert_eq!(&places(&map, name, &sessions), &place, "{:?}", name);
            prop_assert_eq!(&owners(&map, name, &sessions), &place, "{:?}", name);
        }
    }

    #[test]
    fn what_derives_from_a_lock_moves_with_it_even_where_a_key_has_a_rule_of_its_own(
        (map, names) in maps::map_and_names(), sessions in prop::collection::vec(any::<u64>(), 1..4),
        to in maps::group(), cut in any::<prop::sample::Index>(),
    ) {
        let groups = Groups { usable: (1..=5).map(GroupId).collect(), retired: BTreeSet::new() };
        let registry = Registry::built_in();
        // Prefixes that a key begins with and its lock does not: `jobs/` and `jobs/1f` for the lock `jobs`.
        let mut prefixes: Vec<String> = names.iter().flat_map(|name| keys(name, &sessions)).collect();
        prefixes.extend(names.iter().map(|name| format!("{name}/")));
        let prefix = cut.get(&prefixes);
        for request in requests(prefix, to) {
            let given = Given { map: &map, groups: &groups, registry: &registry, names: &[] };
            let Ok(change) = change(&given, &request) else { continue };
            let mut map = map.clone();
            for step in &change.steps {
                map = step.apply(&map).unwrap();
                for name in &names {
                    let place = BTreeSet::from([map.locate(name)]);
                    prop_assert_eq!(&places(&map, name, &sessions), &place, "{:?}", name);
                    prop_assert_eq!(&owners(&map, name, &sessions), &place, "{:?}", name);
                    let moved = step.moved.as_ref().map(|moved| &moved.range);
                    for key in keys(name, &sessions) {
                        let (lock, derived) = (name.as_str(), queue_of(&key));
                        prop_assert_eq!(
                            moved.is_some_and(|range| range.contains(lock)),
                            moved.is_some_and(|range| range.contains(derived))
                        );
                    }
                }
            }
        }
    }
}
