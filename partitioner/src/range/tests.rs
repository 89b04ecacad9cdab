//! Ranges in plain sight: membership at the edges, canonical form, text.

use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::vec;

use super::*;

fn keys(depth: u16, from: &str, to: Option<&str>) -> Part {
    Part::Keys { depth, from: from.to_owned(), to: to.map(ToOwned::to_owned) }
}

fn slots(depth: u16, slots: u16, owned: impl IntoIterator<Item = u16>) -> Part {
    Part::Slots { depth, slots, owned: owned.into_iter().collect() }
}

#[test]
fn a_key_interval_holds_its_lower_end_and_not_its_upper_end() {
    let range = Range::new("jobs/", [], keys(1, "jobs/g", Some("jobs/m")));
    for name in ["jobs/g", "jobs/g/deep", "jobs/lzz", "\u{1}election/jobs/g"] {
        assert!(range.contains(name), "{name:?}");
    }
    for name in ["jobs/f", "jobs/m", "jobs/m/deep", "jobs", "g", "\u{1}election/jobs/m", "\u{1}election"] {
        assert!(!range.contains(name), "{name:?}");
    }
}

#[test]
fn excluded_prefixes_are_outside() {
    let range = Range::new("", ["jobs/".to_owned()], Part::All);
    assert!(range.contains("jobs"));
    assert!(!range.contains("jobs/a"));
    assert!(!range.contains("\u{1}election/jobs/a"));
}

#[test]
fn a_range_of_all_slots_or_keys_is_a_range_of_all() {
    assert_eq!(Range::new("", [], slots(1, 8, 0..8)), Range::everything());
    assert_eq!(Range::new("", [], keys(1, "", None)), Range::everything());
    assert_eq!(Range::new("jobs/", [], keys(2, "jobs/", None)).part(), &Part::All);
    assert_ne!(Range::new("", [], slots(1, 8, 0..7)), Range::everything());
}

#[test]
fn a_range_without_slots_holds_nothing() {
    let range = Range::new("", [], slots(1, 0, []));
    assert!(!range.contains("a"));
    assert!(!Range::new("", [], slots(1, 8, [])).contains("a"));
}

#[test]
fn only_exclusions_that_take_something_away_are_kept() {
    let given = ["jobs/z", "jobs/g", "jobs/g/deeper", "other/", "jobs/", "jobs/a"].map(ToOwned::to_owned);
    let all = Range::new("jobs/", given.clone(), Part::All);
    assert_eq!(all.excluded(), ["jobs/a", "jobs/g", "jobs/z"]);
    let some = Range::new("jobs/", given, keys(1, "jobs/c", Some("jobs/m")));
    assert_eq!(some.excluded(), ["jobs/g"]);
}

#[test]
fn an_exclusion_in_a_foreign_slot_is_dropped_and_one_that_spans_slots_is_kept() {
    let home = slot_of_key("jobs", 256);
    let others = Range::new("", ["jobs/a".to_owned()], slots(1, 256, (0..256).filter(|slot| *slot != home)));
    assert_eq!(others.excluded(), Vec::<String>::new());
    let its_own = Range::new("", ["jobs/a".to_owned()], slots(1, 256, [home]));
    assert_eq!(its_own.excluded(), ["jobs/a"]);
    let spanning = Range::new("", ["job".to_owned()], slots(1, 256, [home ^ 1]));
    assert_eq!(spanning.excluded(), ["job"]);
}

#[test]
fn a_range_says_what_it_holds() {
    let range = Range::new("jobs/", vec!["jobs/hot".to_owned()], slots(1, 8, [0, 1, 2, 5]));
    let text = range.to_string();
    assert!(text.starts_with("\"jobs/\" depth 1 slots 0-2,5 of 8"), "{text}");
    let interval = Range::new("jobs/", vec!["jobs/hot".to_owned()], keys(1, "jobs/b", None));
    assert_eq!(interval.to_string(), "\"jobs/\" depth 1 keys \"jobs/b\".. except \"jobs/hot\"");
    assert_eq!(Range::everything().to_string(), "\"\"");
}
