//! Bytes that running clusters depend on. A difference here is a broken upgrade: never update these files, add a new
//! encoding beside the old one.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use holdfast_partitioner::hash::{hash64, slot_of_key, slot_of_session};
use holdfast_partitioner::{GroupId, MapEpoch, MapParts, PartitionMap, Range, Rule, StrategyRecord, Table};

fn hex(bytes: &[u8]) -> String {
    let lines =
        bytes.chunks(32).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    lines.map(|line| line + "\n").collect()
}

fn initial() -> PartitionMap {
    PartitionMap::initial(&[GroupId(1), GroupId(2), GroupId(3), GroupId(4)]).unwrap()
}

/// One of everything: nested rules, slots, splits.
fn nested() -> PartitionMap {
    let splits = [("", 2), ("jobs/m", 3), ("jobs/t", 2)];
    let jobs = Rule {
        depth: 1,
        strategy: StrategyRecord { name: "range".into(), params: [("by".into(), "load".into())].into() },
        table: Table::Splits(splits.map(|(key, group)| (key.to_owned(), GroupId(group))).into()),
    };
    let hot = Rule {
        depth: 0,
        strategy: StrategyRecord::pinned(GroupId(4)),
        table: Table::Slots(vec![GroupId(4)]),
    };
    let mut parts: MapParts = initial().into_parts();
    parts.epoch = MapEpoch(300);
    parts.rules.insert("jobs/".into(), jobs);
    parts.rules.insert("jobs/hot".into(), hot);
    PartitionMap::try_from(parts).unwrap()
}

#[test]
fn initial_map_for_four_groups_keeps_its_bytes() {
    let bytes = postcard::to_allocvec(&initial()).unwrap();
    assert_eq!(hex(&bytes), include_str!("golden/initial_map_4_groups.hex"));
}

#[test]
fn initial_map_for_four_groups_keeps_its_json() {
    let json = serde_json::to_string(&initial()).unwrap() + "\n";
    assert_eq!(json, include_str!("golden/initial_map_4_groups.json"));
}

#[test]
fn nested_map_keeps_its_bytes_and_json() {
    assert_eq!(hex(&postcard::to_allocvec(&nested()).unwrap()), include_str!("golden/nested_map.hex"));
    let json = serde_json::to_string(&nested()).unwrap() + "\n";
    assert_eq!(json, include_str!("golden/nested_map.json"));
}

#[test]
fn ranges_of_the_nested_map_keep_their_bytes_and_json() {
    let ranges: Vec<Vec<Range>> = (1..=4).map(|group| nested().ranges_of(GroupId(group))).collect();
    assert_eq!(hex(&postcard::to_allocvec(&ranges).unwrap()), include_str!("golden/nested_ranges.hex"));
    let json = serde_json::to_string_pretty(&ranges).unwrap() + "\n";
    assert_eq!(json, include_str!("golden/nested_ranges.json"));
}

#[test]
fn hash_keeps_its_values() {
    // The first three go through the published FNV-1a values cbf29ce484222325, af63dc4c8601ec8c, 85944171f73967e8.
    let expected = [
        ("", 0xefd0_1f60_ba99_2926),
        ("a", 0x82a2_a958_a9be_ce5b),
        ("foobar", 0x2c22_1949_22d1_672b),
        ("jobs", 0x7c48_7f0c_ae96_3076),
        ("日本", 0x1230_c550_89fe_4e43),
        ("orders/2024", 0x3510_77ea_febe_f7c9_u64),
    ];
    for (text, hash) in expected {
        assert_eq!(hash64(text.as_bytes()), hash, "{text:?}");
    }
}

#[test]
fn keys_and_sessions_keep_their_slots() {
    let keys = ["", "a", "foobar", "jobs", "日本", "orders/2024"].map(|key| slot_of_key(key, 256));
    assert_eq!(keys, [38, 91, 43, 118, 67, 201]);
    let homes = [0, 1, 0x7fff_ffff_ffff_ffff, 0x1234_abcd].map(|session| slot_of_session(session, 64));
    assert_eq!(homes, [30, 23, 62, 36]);
}
