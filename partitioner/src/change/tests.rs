//! Changes in plain sight: what moves for each request, and what is refused in which words.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::ids::GroupId;
use crate::load::NameLoad;
use crate::map::Rule;
use crate::strategy::{Params, Registry, SplitKeys, StrategyRecord};
use crate::table::Table;

const ONE: GroupId = GroupId(1);
const TWO: GroupId = GroupId(2);
const THREE: GroupId = GroupId(3);

/// Everything in group 1 by its first segment, groups 1 to 3 to use, group 9 retired.
fn start() -> PartitionMap {
    PartitionMap::initial(&[ONE]).unwrap()
}

fn asked(map: &PartitionMap, names: &[NameLoad], request: &Request) -> Result<Change, ChangeError> {
    let groups = Groups { usable: BTreeSet::from([ONE, TWO, THREE]), retired: BTreeSet::from([GroupId(9)]) };
    change(&Given { map, groups: &groups, registry: &Registry::built_in(), names }, request)
}

#[track_caller]
fn changed(map: &PartitionMap, request: &Request) -> (PartitionMap, Vec<String>) {
    let change = asked(map, &[], request).unwrap();
    (change.apply(map).unwrap(), told(&change))
}

/// What moves, as an operator reads it.
fn told(change: &Change) -> Vec<String> {
    let moved = change.steps.iter().filter_map(|step| step.moved.as_ref());
    moved.map(|moved| alloc::format!("{} -> {}: {}", moved.from, moved.to, moved.range)).collect()
}

#[track_caller]
fn refused(map: &PartitionMap, request: &Request) -> String {
    asked(map, &[], request).unwrap_err().to_string()
}

fn split(prefix: &str, into: &[GroupId], strategy: StrategyRecord) -> Request {
    Request::Split { prefix: prefix.into(), into: into.iter().copied().collect(), depth: 1, strategy }
}

fn moved(prefix: &str, to: GroupId) -> Request {
    Request::Move { prefix: prefix.into(), to }
}

fn merged(prefix: &str, to: Option<GroupId>) -> Request {
    Request::Merge { prefix: prefix.into(), to }
}

fn pinned(prefix: &str, to: Option<GroupId>) -> Request {
    Request::Pin { prefix: prefix.into(), to }
}

fn isolated(name: &str, to: GroupId) -> Request {
    Request::Isolate { name: name.into(), to }
}

#[test]
fn a_split_moves_one_range_to_each_other_group_and_a_merge_brings_them_back() {
    let request = split("jobs/", &[ONE, TWO, THREE], StrategyRecord::hash(6));
    let (map, moves) = changed(&start(), &request);
    assert_eq!(
        moves,
        ["1 -> 2: \"jobs/\" depth 1 slots 2-3 of 6", "1 -> 3: \"jobs/\" depth 1 slots 4-5 of 6"]
    );
    assert_eq!(map.rules()["jobs/"].strategy, StrategyRecord::hash(6));
    assert_eq!(map.epoch(), MapEpoch(3));
    assert!(refused(&map, &request).contains("it is split so already"));

    let (back, moves) = changed(&map, &merged("jobs/", None));
    assert_eq!(
        moves,
        ["2 -> 1: \"jobs/\" depth 1 slots 2-3 of 6", "3 -> 1: \"jobs/\" depth 1 slots 4-5 of 6"]
    );
    assert_eq!(back.rules(), start().rules());
}

#[test]
fn a_split_by_load_puts_its_key_where_the_load_halves() {
    let names: Vec<NameLoad> =
        [("jobs/a", 10), ("jobs/b/x", 20), ("jobs/b/y", 20), ("jobs/c", 50), ("other", 900)]
            .map(|(name, entries_per_s)| NameLoad { name: name.into(), entries_per_s, waiters: 0 })
            .into();
    let change = asked(&start(), &names, &split("jobs/", &[ONE, TWO], SplitKeys::record())).unwrap();
    assert_eq!(told(&change), ["1 -> 2: \"jobs/\" depth 1 keys \"jobs/c\".."]);
    let without_load = refused(&start(), &split("jobs/", &[ONE, TWO], SplitKeys::record()));
    assert!(without_load.contains("there is no measured load yet"), "{without_load}");
}

#[test]
fn a_table_of_another_kind_is_gathered_first_and_spread_from_there() {
    let (map, _) = changed(&start(), &split("jobs/", &[ONE, TWO], StrategyRecord::hash(4)));
    let deeper = Request::Split {
        prefix: "jobs/".into(),
        into: BTreeSet::from([ONE, THREE]),
        depth: 2,
        strategy: StrategyRecord::hash(4),
    };
    let (after, moves) = changed(&map, &deeper);
    assert_eq!(
        moves,
        ["2 -> 1: \"jobs/\" depth 1 slots 2-3 of 4", "1 -> 3: \"jobs/\" depth 2 slots 2-3 of 4"]
    );
    assert_eq!(after.rules()["jobs/"].depth, 2);
}

#[test]
fn more_slots_refine_the_ones_there_are() {
    let (map, _) = changed(&start(), &split("jobs/", &[ONE, TWO], StrategyRecord::hash(2)));
    let (after, moves) = changed(&map, &split("jobs/", &[ONE, TWO, THREE], StrategyRecord::hash(3)));
    assert_eq!(
        moves,
        [
            "1 -> 2: \"jobs/\" depth 1 slots 4 of 6",
            "1 -> 3: \"jobs/\" depth 1 slots 2 of 6",
            "2 -> 1: \"jobs/\" depth 1 slots 3 of 6",
            "2 -> 3: \"jobs/\" depth 1 slots 5 of 6",
        ]
    );
    assert_eq!(after.rules()["jobs/"].table, Table::Slots(vec![ONE, TWO, THREE]));
}

#[test]
fn a_move_takes_a_prefix_and_leaves_longer_ones_with_rules() {
    let (map, moves) = changed(&start(), &moved("jobs/night/", TWO));
    assert_eq!(moves, ["1 -> 2: \"jobs/night/\""]);
    let (map, moves) = changed(&map, &moved("jobs/", THREE));
    assert_eq!(moves, ["1 -> 3: \"jobs/\" except \"jobs/night/\""]);
    assert_eq!((map.locate("jobs/night/1"), map.locate("jobs/day"), map.locate("jobs")), (TWO, THREE, ONE));
    let (map, moves) = changed(&map, &merged("jobs/", None));
    assert_eq!(moves, ["3 -> 1: \"jobs/\" except \"jobs/night/\""]);
    assert_eq!(map.locate("jobs/night/1"), TWO);
    assert!(refused(&map, &moved("jobs/night/", TWO)).contains("it is in that group already"));
    assert!(refused(&map, &moved("elsewhere/", ONE)).contains("it is in that group already"));
}

#[test]
fn a_merge_into_another_group_keeps_the_rule() {
    let (map, _) = changed(&start(), &split("jobs/", &[TWO, THREE], StrategyRecord::hash(2)));
    let (map, moves) = changed(&map, &merged("jobs/", Some(TWO)));
    assert_eq!(moves, ["3 -> 2: \"jobs/\" depth 1 slots 1 of 2"]);
    assert_eq!(map.rules()["jobs/"].table.groups(), BTreeSet::from([TWO]));
    let (map, _) = changed(&map, &merged("jobs/", Some(ONE)));
    assert_eq!(map.rules(), start().rules());
}

#[test]
fn a_pin_holds_until_it_is_lifted() {
    let (map, moves) = changed(&start(), &pinned("jobs/", Some(TWO)));
    assert_eq!(moves, ["1 -> 2: \"jobs/\""]);
    for request in [
        moved("jobs/", ONE),
        moved("jobs/a/", ONE),
        merged("jobs/", None),
        isolated("jobs/hot", ONE),
        split("jobs/a/", &[ONE, TWO], StrategyRecord::hash(4)),
        pinned("jobs/", Some(THREE)),
        Request::Spread { prefix: "jobs/".into(), over: BTreeSet::from([ONE]) },
    ] {
        let refused = refused(&map, &request);
        assert!(
            refused.ends_with("belongs to \"jobs/\", which is pinned to group 2; unpin \"jobs/\" first"),
            "{refused}"
        );
    }
    let (free, moves) = changed(&map, &Request::Unpin { prefix: "jobs/".into() });
    assert_eq!(moves, Vec::<String>::new());
    assert_eq!(free.locate("jobs/a"), TWO);
    let (back, _) = changed(&free, &merged("jobs/", None));
    assert_eq!(back.rules(), start().rules());
}

#[test]
fn a_prefix_is_pinned_where_it_is_unless_it_is_spread() {
    let (map, moves) = changed(&start(), &pinned("jobs/", None));
    assert_eq!((moves, map.locate("jobs/a")), (vec![], ONE));
    let (map, _) = changed(&start(), &split("jobs/", &[ONE, TWO], StrategyRecord::hash(4)));
    assert_eq!(
        refused(&map, &pinned("jobs/", None)),
        "\"jobs/\" is spread over groups 1, 2; say to which one it shall be pinned"
    );
    assert_eq!(
        refused(&map, &Request::Unpin { prefix: "jobs/".into() }),
        "\"jobs/\" is not pinned; strategy `hash` spreads it"
    );
}

#[test]
fn a_hot_name_goes_alone_with_its_election() {
    let (map, moves) = changed(&start(), &isolated("jobs/hot", TWO));
    assert_eq!(moves, ["1 -> 2: \"jobs/hot\" depth 65535 keys \"\"..\"jobs/hot \""]);
    for name in ["jobs/hot", "\u{1}election/jobs/hot"] {
        assert_eq!(map.locate(name), TWO, "{name:?}");
    }
    for name in ["jobs/hot/1", "jobs/hotter", "jobs/hot ", "jobs/ho", "jobs/"] {
        assert_eq!(map.locate(name), ONE, "{name:?}");
    }
    assert!(refused(&map, &isolated("\u{1}election/jobs/hot", TWO)).contains("it is in that group already"));
    let (back, _) = changed(&map, &merged("jobs/hot", None));
    assert_eq!(back.rules(), start().rules());
}

#[test]
fn the_longest_name_can_be_isolated() {
    let name = "x".repeat(crate::name::MAX_NAME_BYTES);
    let (map, _) = changed(&start(), &isolated(&name, TWO));
    assert_eq!(map.locate(&name), TWO);
    assert_eq!(map.locate(&name[1..]), ONE);
}

#[test]
fn a_hot_name_among_keys_of_several_groups_takes_its_key_along() {
    let (map, _) = changed(&start(), &split("jobs/", &[ONE, TWO], StrategyRecord::hash(64)));
    let to = if map.locate("jobs/hot") == ONE { TWO } else { ONE };
    let (after, moves) = changed(&map, &isolated("jobs/hot", to));
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert_eq!((after.locate("jobs/hot"), after.locate("jobs/hot/1")), (to, to));
    assert_eq!(after.locate("jobs/hotter"), map.locate("jobs/hotter"));
}

#[test]
fn what_cannot_be_asked_for_is_told_why() {
    let map = start();
    assert_eq!(refused(&map, &moved("jobs/", GroupId(7))), "there is no lock group 7; there are 1, 2, 3");
    assert_eq!(refused(&map, &moved("jobs/", GroupId::META)), "there is no lock group 0; there are 1, 2, 3");
    assert_eq!(
        refused(&map, &moved("jobs/", GroupId(9))),
        "group 9 is retired and takes nothing any more; use one of 1, 2, 3"
    );
    assert_eq!(
        refused(&map, &merged("jobs/", None)),
        "the prefix \"jobs/\" has no rule of its own, it follows \"\"; prefixes with rules: \"\""
    );
    assert_eq!(
        refused(&map, &merged("", None)),
        "the empty prefix has no shorter one to merge into; say to which group it shall go"
    );
    assert_eq!(
        refused(&map, &split("jobs/", &[ONE], StrategyRecord::hash(4))),
        "a split needs at least two groups, 1 given; use a move to bring \"jobs/\" to one group"
    );
    assert_eq!(
        refused(&map, &split("jobs/", &[ONE, TWO], StrategyRecord::pinned(ONE))),
        "strategy `pinned` does not split; use a pin"
    );
    let elsewhere = StrategyRecord { name: "elsewhere".into(), params: Params::new() };
    assert_eq!(
        refused(&map, &split("jobs/", &[ONE, TWO], elsewhere)),
        "there is no partition strategy `elsewhere` here; known are hash, pinned, range, rendezvous"
    );
    assert_eq!(
        refused(&map, &split("jobs/", &[ONE, TWO], StrategyRecord::hash(0))),
        "setting `slots` of strategy `hash` is \"0\"; it must be a number from 1 to 4096"
    );
    assert_eq!(
        refused(&map, &moved("a\tb", TWO)),
        "\"a\\tb\" cannot be used: a name holds no control characters, this one has U+0009 at byte 1"
    );
    assert!(refused(&map, &isolated("", TWO)).contains("at least one byte"));
    let flat = Request::Split {
        prefix: "jobs/".into(),
        into: BTreeSet::from([ONE, TWO]),
        depth: 0,
        strategy: StrategyRecord::hash(4),
    };
    assert_eq!(
        refused(&map, &flat),
        "a split of \"jobs/\" at depth 0 divides nothing; use a depth of 1 or more"
    );
}

#[test]
fn a_map_that_is_full_takes_no_further_rule() {
    let mut parts = start().into_parts();
    let rule = Rule { depth: 1, strategy: SplitKeys::record(), table: Table::Slots(vec![ONE]) };
    parts.rules.extend((1..crate::map::MAX_RULES).map(|n| (n.to_string(), rule.clone())));
    let map = PartitionMap::try_from(parts).unwrap();
    assert!(refused(&map, &moved("jobs/", TWO)).contains("at most 4096 are allowed, merge some"));
    let mut parts = start().into_parts();
    parts.epoch = MapEpoch(u64::MAX);
    let map = PartitionMap::try_from(parts).unwrap();
    assert_eq!(refused(&map, &moved("jobs/", TWO)), "the map epoch cannot grow any more");
}

#[test]
fn a_group_that_only_gives_may_be_emptied() {
    let mut parts = start().into_parts();
    let owners = Table::Slots(vec![ONE, GroupId(9)]);
    let rule = Rule { depth: 1, strategy: StrategyRecord::hash(2), table: owners };
    parts.rules.insert("jobs/".to_owned(), rule);
    let map = PartitionMap::try_from(parts).unwrap();
    let spread = Request::Spread { prefix: "jobs/".into(), over: BTreeSet::from([ONE, TWO]) };
    let (map, moves) = changed(&map, &spread);
    assert_eq!(moves, ["9 -> 2: \"jobs/\" depth 1 slots 1 of 2"]);
    assert!(refused(&map, &spread).contains("its strategy finds nothing better"));
}
