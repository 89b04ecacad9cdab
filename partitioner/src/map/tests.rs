//! Maps in plain sight: routing by example, and every fault.

use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::vec;

use super::*;
use crate::fault::MapFault;
use crate::name::NameFault;

const ONE: GroupId = GroupId(1);
const TWO: GroupId = GroupId(2);
const THREE: GroupId = GroupId(3);

fn pinned(group: GroupId) -> Rule {
    Rule { depth: 0, strategy: StrategyRecord::pinned(group), table: Table::Slots(vec![group]) }
}

fn splits(depth: u16, splits: &[(&str, GroupId)]) -> Rule {
    let table = Table::Splits(splits.iter().map(|(key, group)| ((*key).to_owned(), *group)).collect());
    Rule { depth, strategy: StrategyRecord { name: "drawn".to_owned(), params: BTreeMap::new() }, table }
}

fn parts(rules: &[(&str, Rule)]) -> MapParts {
    MapParts {
        epoch: MapEpoch::FIRST,
        rules: rules.iter().map(|(prefix, rule)| ((*prefix).to_owned(), rule.clone())).collect(),
        home_slots: vec![ONE; usize::from(HOME_SLOTS)],
    }
}

fn map(rules: &[(&str, Rule)]) -> PartitionMap {
    PartitionMap::try_from(parts(rules)).unwrap()
}

#[test]
fn the_longest_prefix_decides() {
    let map = map(&[("", pinned(ONE)), ("jobs/", pinned(TWO)), ("jobs/hot", pinned(THREE))]);
    for (name, group) in [
        ("jobs", ONE),
        ("jobs/", TWO),
        ("jobs/cold", TWO),
        ("jobs/ho", TWO),
        ("jobs/hot", THREE),
        ("jobs/hotter/a", THREE),
        ("jobs/hpt", TWO),
        ("zebra", ONE),
        ("\u{1}election/jobs/hot", THREE),
    ] {
        assert_eq!(map.locate(name), group, "{name:?}");
    }
    assert_eq!(map.rule_of("jobs/ho").unwrap().0, "jobs/");
}

#[test]
fn prefixes_that_part_inside_a_character_are_told_apart() {
    // U+00E9 and U+00E8 share their first byte.
    let map = map(&[("", pinned(ONE)), ("é", pinned(TWO)), ("éa", pinned(THREE))]);
    assert_eq!(map.locate("è"), ONE);
    assert_eq!(map.locate("éè"), TWO);
    assert_eq!(map.locate("éaè"), THREE);
}

#[test]
fn split_keys_divide_by_byte_order_and_own_their_lower_end() {
    let map = map(&[("", splits(1, &[("", ONE), ("g", TWO), ("g/x", THREE), ("t", ONE)]))]);
    for (name, group) in [("a", ONE), ("g", TWO), ("g/zz", TWO), ("ga", THREE), ("t", ONE), ("日", ONE)] {
        assert_eq!(map.locate(name), group, "{name:?}");
    }
}

#[test]
fn first_segment_stands_together_in_the_initial_map() {
    let groups = [ONE, TWO, THREE, GroupId(4)];
    let map = PartitionMap::initial(&groups).unwrap();
    for name in ["jobs", "jobs/", "jobs/a", "jobs/a/b", "jobs//", "\u{1}election/jobs/leader"] {
        assert_eq!(map.locate(name), map.locate("jobs"), "{name:?}");
    }
    let used: BTreeSet<GroupId> = ('a'..='z').map(|c| map.locate(&c.to_string())).collect();
    assert_eq!(used, BTreeSet::from(groups));
    assert_eq!(map.epoch(), MapEpoch::FIRST);
    assert_eq!(map.clone().into_parts().validate(), Ok(()));
    let homes: BTreeSet<GroupId> = (0..64).map(|session| map.home_of(session)).collect();
    assert_eq!(homes, BTreeSet::from(groups));
}

#[test]
fn initial_maps_do_not_depend_on_order_or_repetition() {
    let sorted = PartitionMap::initial(&[ONE, TWO, THREE]).unwrap();
    assert_eq!(PartitionMap::initial(&[THREE, ONE, TWO, ONE]).unwrap(), sorted);
}

#[test]
fn initial_map_needs_between_1_and_256_lock_groups() {
    assert_eq!(PartitionMap::initial(&[]), Err(StrategyError::NoGroups));
    assert_eq!(PartitionMap::initial(&[GroupId::META, ONE]), Err(StrategyError::MetaGroup));
    let groups: Vec<GroupId> = (1..=257).map(GroupId).collect();
    let refused = Err(StrategyError::TooManyGroups { groups: 257, slots: 256 });
    assert_eq!(PartitionMap::initial(&groups), refused);
    let largest = PartitionMap::initial(&groups[..256]).unwrap();
    assert_eq!(largest.clone().into_parts().validate(), Ok(()));
    assert!(groups[..256].iter().all(|group| largest.ranges_of(*group).len() == 1));
}

#[test]
fn a_single_group_owns_everything_and_the_meta_group_nothing() {
    let map = PartitionMap::initial(&[ONE]).unwrap();
    assert_eq!(map.ranges_of(ONE), [Range::everything()]);
    assert_eq!(map.ranges_of(GroupId::META), []);
    assert_eq!(map.ranges_of(TWO), []);
}

#[test]
fn listing_asks_no_group_without_need() {
    let map = map(&[
        ("", splits(1, &[("", ONE), ("m", TWO)])),
        ("jobs/", pinned(THREE)),
        ("zoo/", splits(1, &[("", ONE), ("zoo/m", THREE)])),
    ]);
    for (start, groups) in [
        ("", &[ONE, TWO, THREE][..]),
        ("a", &[ONE]),
        ("jobs", &[ONE, THREE]),
        ("jobs/", &[THREE]),
        ("jobs/x", &[THREE]),
        ("n", &[TWO]),
        ("zo", &[ONE, TWO, THREE]),
        ("zoo/a", &[ONE]),
        ("zoo/m", &[THREE]),
        ("zoo/a/", &[ONE]),
        ("\u{1}election/zoo/a", &[ONE]),
        ("\u{1}elec", &[ONE, TWO, THREE]),
    ] {
        assert_eq!(map.groups_under(start), groups.iter().copied().collect(), "{start:?}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let mut broken = parts(&[
        ("a\u{7f}", pinned(ONE)),
        ("e", Rule { table: Table::Slots(vec![]), ..pinned(ONE) }),
        ("l", Rule { table: Table::Slots(vec![ONE; 4097]), ..pinned(ONE) }),
        ("m", pinned(GroupId::META)),
        (
            "n",
            Rule { strategy: StrategyRecord { name: "".to_owned(), params: BTreeMap::new() }, ..pinned(ONE) },
        ),
        ("s", splits(1, &[("s/1", ONE)])),
        ("t", splits(1, &[("", ONE), ("t", TWO), ("t\n", TWO), ("u", TWO)])),
    ]);
    broken.epoch = MapEpoch::NONE;
    broken.home_slots = vec![ONE, GroupId::META];
    let control = |found, at| NameFault::ControlChar { found, at };
    let p = |prefix: &str| prefix.to_owned();
    let expected = vec![
        MapFault::EpochZero,
        MapFault::NoCatchAll,
        MapFault::BadPrefix { prefix: p("a\u{7f}"), fault: control('\u{7f}', 1) },
        MapFault::EmptyTable { prefix: p("e") },
        MapFault::TableTooLarge { prefix: p("l"), entries: 4097 },
        MapFault::MetaOwnsLocks { prefix: p("m") },
        MapFault::NoStrategy { prefix: p("n") },
        MapFault::FirstSplitNotEmpty { prefix: p("s"), first: p("s/1") },
        MapFault::SplitOutsidePrefix { prefix: p("t"), key: p("t") },
        MapFault::BadSplitKey { prefix: p("t"), key: p("t\n"), fault: control('\n', 1) },
        MapFault::SplitOutsidePrefix { prefix: p("t"), key: p("u") },
        MapFault::HomeSlotCount { found: 2 },
        MapFault::MetaIsHome { slot: 1 },
    ];
    assert_eq!(broken.validate(), Err(MapFaults(expected)));
}

#[test]
fn too_many_rules_and_too_long_prefixes_are_refused() {
    let mut many = parts(&[("", pinned(ONE))]);
    many.rules.extend((0..MAX_RULES).map(|n| (n.to_string(), pinned(ONE))));
    assert_eq!(many.validate(), Err(MapFaults(vec![MapFault::TooManyRules { rules: MAX_RULES + 1 }])));
    let long = "x".repeat(2048);
    let fault = MapFault::BadPrefix { prefix: long.clone(), fault: NameFault::TooLong { bytes: 2048 } };
    assert_eq!(parts(&[("", pinned(ONE)), (&long, pinned(ONE))]).validate(), Err(MapFaults(vec![fault])));
}

#[test]
fn an_invalid_map_is_not_decoded_and_the_error_names_the_prefix() {
    let bad = parts(&[("", pinned(ONE)), ("jobs/", pinned(GroupId::META))]);
    let json = serde_json::to_string(&bad).unwrap();
    let error = serde_json::from_str::<PartitionMap>(&json).unwrap_err().to_string();
    assert!(error.contains("the table for \"jobs/\" names group 0, the meta group"), "{error}");
    assert!(postcard::from_bytes::<PartitionMap>(&postcard::to_allocvec(&bad).unwrap()).is_err());
}
