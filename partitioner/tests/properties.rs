//! Laws of routing under any valid map and any name. The model here is as naive as it can be.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod maps;

use holdfast_partitioner::{
    CLAIM_MARKER, ELECTION_MARKER, GroupId, MapParts, PartitionMap, Range, Rule, StrategyRecord, Table, owns,
    partition_key, slots::SlotSet,
};
use proptest::prelude::*;

/// Routing in the words of the specification: longest matching prefix, cut, table.
fn located_by_the_book(map: &PartitionMap, name: &str) -> GroupId {
    let matching = map.rules().iter().filter(|(prefix, _)| name.starts_with(prefix.as_str()));
    let (prefix, rule) = matching.max_by_key(|(prefix, _)| prefix.len()).expect("the empty prefix matches");
    let segments: Vec<&str> = name[prefix.len()..].split('/').take(usize::from(rule.depth)).collect();
    let key = format!("{prefix}{}", segments.join("/"));
    match &rule.table {
        Table::Slots(owners) => {
            let slot = holdfast_partitioner::hash::hash64(key.as_bytes()) % owners.len() as u64;
            owners[slot as usize]
        }
        Table::Splits(splits) => {
            let mut below = splits.iter().rev().filter(|(split, _)| **split <= key);
            *below.next().expect("the empty key is below all").1
        }
    }
}

fn all_ranges(map: &PartitionMap) -> Vec<(GroupId, Range)> {
    let of_group = |group| map.ranges_of(group).into_iter().map(move |range| (group, range));
    map.groups().into_iter().flat_map(of_group).collect()
}

fn edited(map: &PartitionMap, edit: impl FnOnce(&mut MapParts)) -> PartitionMap {
    let mut parts = map.clone().into_parts();
    parts.epoch = parts.epoch.next().expect("far from full");
    edit(&mut parts);
    PartitionMap::try_from(parts).expect("the edit keeps the map valid")
}

proptest! {
    #![proptest_config(maps::config())]

    #[test]
    fn a_name_routes_to_one_group_by_the_longest_prefix((map, names) in maps::map_and_names()) {
        for name in names {
            let group = map.locate(&name);
            prop_assert_ne!(group, GroupId::META);
            prop_assert_eq!(group, located_by_the_book(&map, &name), "{:?}", name);
        }
    }

    #[test]
    fn exactly_one_range_of_all_groups_contains_a_name((map, names) in maps::map_and_names()) {
        let ranges = all_ranges(&map);
        for name in names {
            let owners: Vec<GroupId> =
                ranges.iter().filter(|(_, range)| range.contains(&name)).map(|(group, _)| *group).collect();
            prop_assert_eq!(owners, vec![map.locate(&name)], "{:?}", name);
        }
    }

    #[test]
    fn elections_and_claims_route_like_the_lock_of_their_name((map, names) in maps::map_and_names()) {
        for (name, marker) in names.iter().flat_map(|name| [(name, ELECTION_MARKER), (name, CLAIM_MARKER)]) {
            let marked = format!("{marker}{name}");
            prop_assert_eq!(map.locate(&marked), map.locate(name));
            for group in map.groups() {
                let ranges = map.ranges_of(group);
                prop_assert_eq!(owns(&ranges, &marked), owns(&ranges, name));
            }
        }
    }

    #[test]
    fn names_with_one_partition_key_stand_together((map, names) in maps::map_and_names(), more in maps::start()) {
        for name in names {
            let (prefix, rule) = map.rule_of(&name).expect("a rule for every name");
            let sibling = format!("{name}{more}");
            let same_rule = map.rule_of(&sibling).map(|(other, _)| other) == Some(prefix);
            let same_key =
                partition_key(&name, prefix, rule.depth) == partition_key(&sibling, prefix, rule.depth);
            if same_rule && same_key {
                prop_assert_eq!(map.locate(&name), map.locate(&sibling));
            }
        }
    }

    #[test]
    fn listing_a_prefix_asks_every_group_that_holds_a_name_below_it(
        (map, names) in maps::map_and_names(), cut in any::<prop::sample::Index>(),
    ) {
        for name in names {
            let queue = format!("{ELECTION_MARKER}{name}");
            let cuts: Vec<usize> = (0..=name.len()).filter(|at| name.is_char_boundary(*at)).collect();
            let start = &name[..*cut.get(&cuts)];
            let election_cut = cut.index(queue.len() + 1);
            let election_start = &queue[..queue.floor_char_boundary(election_cut)];
            for start in [start, election_start] {
                let asked = map.groups_under(start);
                prop_assert!(asked.contains(&map.locate(&name)), "{:?} below {:?}", name, start);
                let touched = all_ranges(&map).into_iter().filter(|(_, range)| range.touches(start));
                prop_assert_eq!(&asked, &touched.map(|(group, _)| group).collect(), "below {:?}", start);
            }
        }
    }

    #[test]
    fn every_session_has_a_home_among_the_groups(map in maps::map(), session in any::<u64>()) {
        let home = map.home_of(session);
        prop_assert!(map.home_slots().contains(&home));
    }

    #[test]
    fn maps_and_ranges_survive_their_encodings(map in maps::map()) {
        let bytes = postcard::to_allocvec(&map).unwrap();
        prop_assert_eq!(&postcard::from_bytes::<PartitionMap>(&bytes).unwrap(), &map);
        let json = serde_json::to_string(&map).unwrap();
        prop_assert_eq!(&serde_json::from_str::<PartitionMap>(&json).unwrap(), &map);
        for (_, range) in all_ranges(&map) {
            let bytes = postcard::to_allocvec(&range).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Range>(&bytes).unwrap(), range);
        }
    }

    #[test]
    fn a_range_is_the_same_from_its_ingredients_in_any_order(map in maps::map()) {
        for (_, range) in all_ranges(&map) {
            let mut excluded: Vec<String> = range.excluded().to_vec();
            excluded.extend(range.excluded().iter().map(|longer| format!("{longer}/deeper")));
            excluded.push(range.prefix().to_owned());
            excluded.reverse();
            let again = Range::new(range.prefix(), excluded, range.part().clone());
            prop_assert_eq!(postcard::to_allocvec(&again).unwrap(), postcard::to_allocvec(&range).unwrap());
        }
    }

    #[test]
    fn a_split_in_place_moves_no_name_and_changes_one_group_only((map, names) in maps::map_and_names()) {
        // A new rule below a decided key, given to the group that holds it, is how a prefix starts to be split.
        let Some(split) = names.iter().find(|name| {
            map.rule_of(name).is_some_and(|(prefix, rule)| {
                !map.rules().keys().any(|longer| longer.starts_with(name.as_str()))
                    && partition_key(name, prefix, rule.depth).len() < name.len()
            })
        }) else { return Ok(()) };
        let owner = map.locate(split);
        let after = edited(&map, |parts| {
            let rule = Rule {
                depth: 1,
                strategy: StrategyRecord::pinned(owner),
                table: Table::Slots(vec![owner]),
            };
            parts.rules.insert(split.clone(), rule);
        });
        for name in &names {
            prop_assert_eq!(after.locate(name), map.locate(name), "{:?} after splitting {:?}", name, split);
        }
        for group in map.groups().into_iter().filter(|group| *group != owner) {
            prop_assert_eq!(after.ranges_of(group), map.ranges_of(group));
        }
        prop_assert_ne!(after.ranges_of(owner), map.ranges_of(owner));
    }

    #[test]
    fn a_moved_slot_changes_only_its_two_groups_and_its_own_names(
        (map, names) in maps::map_and_names(), slot in any::<prop::sample::Index>(), to in maps::group(),
    ) {
        let Table::Slots(owners) = &map.rules()[""].table else { return Ok(()) };
        let slot = slot.index(owners.len());
        let from = owners[slot];
        let after = edited(&map, |parts| match &mut parts.rules.get_mut("").expect("catch-all").table {
            Table::Slots(owners) => owners[slot] = to,
            Table::Splits(_) => unreachable!("checked above"),
        });
        for name in &names {
            if after.locate(name) != map.locate(name) {
                prop_assert_eq!((map.locate(name), after.locate(name)), (from, to));
            }
        }
        for group in map.groups().into_iter().filter(|group| *group != from && *group != to) {
            prop_assert_eq!(after.ranges_of(group), map.ranges_of(group));
        }
    }

    #[test]
    fn a_slot_set_is_canonical(slots in prop::collection::vec(0u16..200, 0..60)) {
        let forwards: SlotSet = slots.iter().copied().collect();
        let backwards: SlotSet = slots.iter().rev().copied().collect();
        prop_assert_eq!(&forwards, &backwards);
        let expected: std::collections::BTreeSet<u16> = slots.into_iter().collect();
        prop_assert_eq!(forwards.iter().collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(forwards.len(), expected.len());
        for slot in 0..=200 {
            prop_assert_eq!(forwards.contains(slot), expected.contains(&slot));
        }
        prop_assert!(forwards.runs().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
    }
}
