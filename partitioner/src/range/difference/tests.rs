//! Ranges taken from each other, in plain sight.

use alloc::string::ToString;

use super::*;

fn slots(prefix: &str, depth: u16, slots: u16, owned: impl IntoIterator<Item = u16>) -> Range {
    Range::new(prefix, [], Part::Slots { depth, slots, owned: owned.into_iter().collect() })
}

fn keys(prefix: &str, from: &str, to: Option<&str>) -> Range {
    Range::new(prefix, [], Part::Keys { depth: 1, from: from.into(), to: to.map(Into::into) })
}

fn all(prefix: &str, excluded: &[&str]) -> Range {
    Range::new(prefix, excluded.iter().map(|longer| (*longer).into()), Part::All)
}

fn left(range: &Range, taken: &[Range]) -> Vec<String> {
    without(range, taken).iter().map(ToString::to_string).collect()
}

#[test]
fn slots_are_compared_in_a_number_that_both_divide() {
    assert_eq!(left(&slots("a/", 1, 4, 0..3), &[slots("a/", 1, 2, [0])]), ["\"a/\" depth 1 slots 1 of 4"]);
    assert_eq!(left(&slots("a/", 1, 2, [1]), &[slots("a/", 1, 3, [0])]), ["\"a/\" depth 1 slots 1,5 of 6"]);
    assert_eq!(left(&all("a/", &[]), &[slots("a/", 1, 4, [0, 1])]), ["\"a/\" depth 1 slots 2-3 of 4"]);
    assert!(covers(&[slots("a/", 1, 2, [0]), slots("a/", 1, 2, [1])], &all("a/", &[])));
}

#[test]
fn intervals_leave_what_is_below_and_above() {
    let taken = keys("a/", "a/g", Some("a/m"));
    assert_eq!(
        left(&all("a/", &[]), core::slice::from_ref(&taken)),
        ["\"a/\" depth 1 keys \"\"..\"a/g\"", "\"a/\" depth 1 keys \"a/m\".."]
    );
    assert_eq!(
        left(&keys("a/", "a/h", Some("a/z")), core::slice::from_ref(&taken)),
        ["\"a/\" depth 1 keys \"a/m\"..\"a/z\""]
    );
    assert_eq!(left(&keys("a/", "a/h", Some("a/j")), core::slice::from_ref(&taken)), Vec::<String>::new());
    assert_eq!(left(&keys("a/", "a/p", None), &[taken]), ["\"a/\" depth 1 keys \"a/p\".."]);
}

#[test]
fn a_longer_prefix_is_cut_out_and_an_exclusion_stays() {
    assert_eq!(left(&all("a/", &[]), &[all("a/b/", &[])]), ["\"a/\" except \"a/b/\""]);
    assert_eq!(left(&all("a/", &[]), &[all("", &["a/b/"])]), ["\"a/b/\""]);
    assert!(covers(&[all("", &["a/b/"]), all("a/b/", &[])], &all("a/", &[])));
    assert!(!covers(&[all("", &["a/b/"])], &all("a/", &[])));
    assert!(covers(&[all("", &["a/b/"])], &all("a/", &["a/b/"])));
}

#[test]
fn a_shorter_prefix_covers_a_longer_one_by_the_slot_or_key_that_decides_it() {
    let slot = crate::hash::slot_of_key("a", 8);
    assert!(covers(&[slots("", 1, 8, [slot])], &all("a/", &[])));
    assert!(!covers(&[slots("", 1, 8, [slot ^ 1])], &all("a/", &[])));
    assert!(!covers(&[slots("", 2, 8, [slot])], &all("a/", &[])), "its next segment decides");
    assert!(covers(&[slots("", 2, 8, [slot])], &slots("a/", 1, 8, [slot])));
    assert!(covers(&[keys("", "a", Some("b"))], &all("a/", &[])));
    assert!(covers(&[slots("", u16::MAX, 8, [slot])], &slots("a/", u16::MAX, 8, [slot])), "whole names");
}

#[test]
fn what_cannot_be_compared_covers_nothing() {
    assert!(!covers(&[slots("a/", 1, 4, [0])], &slots("a/", 2, 4, [0])));
    assert!(!covers(&[keys("a/", "a/c", None)], &slots("a/", 1, 4, [0])));
    assert!(!covers(&[slots("a/", 1, 4093, [0])], &slots("a/", 1, 4091, [0])), "too many slots in common");
    assert!(!covers(&[], &all("", &[])));
}
