//! A meter's report in plain sight.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;
use crate::map::{MapParts, PartitionMap, Rule};
use crate::strategy::SplitKeys;
use crate::table::Table;

const ONE: GroupId = GroupId(1);

/// Everything in group 1, `jobs/` with a rule of its own.
fn map() -> PartitionMap {
    let mut parts: MapParts = PartitionMap::initial(&[ONE]).unwrap().into_parts();
    let rule = Rule { depth: 1, strategy: SplitKeys::record(), table: Table::Slots(Vec::from([ONE])) };
    parts.rules.insert("jobs/".into(), rule);
    PartitionMap::try_from(parts).unwrap()
}

fn told(loads: &[PrefixLoad]) -> Vec<(&str, u64, u64, u64)> {
    loads.iter().map(|load| (load.prefix.as_str(), load.entries_per_s, load.queue_ms, load.waiters)).collect()
}

#[test]
fn entries_are_told_by_rule_and_by_what_a_split_could_divide() {
    let map = map();
    let mut meter = Meter::new(5_000);
    meter.count(&map, "mail", 100, 2);
    meter.count(&map, "mail/in", 200, 2);
    meter.count(&map, "\u{1}election/mail/out", 300, 4);
    meter.count(&map, "jobs/a", 50, 8);
    meter.count(&map, "jobs/b/1", 70, 8);
    let waiters = BTreeMap::from([("mail/in".to_string(), 3), ("jobs/z".to_string(), 4)]);
    let (all, loads) = meter.report(15_000, ONE, &map, &waiters);
    assert_eq!((all.entries_per_s, all.queue_ms), (72, 3));
    assert_eq!(told(&loads), [("", 10, 3, 0), ("jobs/", 5, 8, 4), ("jobs/b/", 7, 8, 0), ("mail/", 50, 3, 3)]);
    let names: Vec<(&str, u64, u64)> =
        loads[3].names.iter().map(|name| (name.name.as_str(), name.entries_per_s, name.waiters)).collect();
    assert_eq!(names, [("mail/out", 30, 0), ("mail/in", 20, 3)]);
}

#[test]
fn a_window_without_entries_or_time_is_told_as_such() {
    let map = map();
    let (all, loads) = Meter::new(1_000).report(1_000, ONE, &map, &BTreeMap::new());
    assert_eq!((all, loads), (GroupLoad::default(), Vec::new()));
    let mut meter = Meter::new(u64::MAX);
    meter.count(&map, "a", u64::MAX, u64::MAX);
    meter.count(&map, "a", u64::MAX, u64::MAX);
    let (all, _) = meter.report(0, ONE, &map, &BTreeMap::new());
    assert_eq!(all.entries_per_s, u64::MAX, "counted as far as there are numbers");
}

#[test]
fn more_prefixes_than_counters_are_told_at_their_rule() {
    let map = map();
    let mut meter = Meter::new(0);
    let segments = COUNTED_PREFIXES as u64 * 4;
    for n in 0..segments {
        meter.count(&map, &alloc::format!("s{n}/lock"), 1, 1);
    }
    meter.count(&map, "hot/lock", 9_000, 1);
    let (all, loads) = meter.report(1_000, ONE, &map, &BTreeMap::new());
    let sum: u64 = loads.iter().map(|load| load.entries_per_s).sum();
    assert_eq!((all.entries_per_s, sum), (9_000 + segments, 9_000 + segments));
    assert!(loads.len() <= COUNTED_PREFIXES + 2);
    let hot = loads.iter().find(|load| load.prefix == "hot/").unwrap();
    assert_eq!(hot.entries_per_s, 9_000);
    let names: Vec<String> = hot.names.iter().map(|name| name.name.clone()).collect();
    assert_eq!(names, ["hot/lock"]);
}
