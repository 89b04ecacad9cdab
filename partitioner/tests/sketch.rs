//! Laws of the sketch of heavy keys, against exact counts.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use holdfast_partitioner::load::{Heavy, TopK};
use proptest::collection::vec;
use proptest::prelude::*;

/// Few keys that come often and many that come seldom, with weights.
fn stream() -> impl Strategy<Value = Vec<(String, u64)>> {
    let key = prop_oneof![2 => 0u32..4, 1 => 4u32..60].prop_map(|n| format!("k{n}"));
    vec((key, 1u64..20), 0..300)
}

fn counted(capacity: usize, stream: &[(String, u64)]) -> TopK {
    let mut top = TopK::new(capacity);
    for (key, weight) in stream {
        top.add(key, *weight);
    }
    top
}

fn exact(stream: &[(String, u64)]) -> BTreeMap<&str, u64> {
    let mut exact = BTreeMap::new();
    for (key, weight) in stream {
        *exact.entry(key.as_str()).or_default() += *weight;
    }
    exact
}

/// What is true of every sketch of a stream, merged or not.
fn check(top: &TopK, capacity: usize, stream: &[(String, u64)]) -> Result<(), TestCaseError> {
    let (exact, heaviest) = (exact(stream), top.heaviest());
    prop_assert!(heaviest.len() <= capacity.max(1));
    prop_assert_eq!(top.total(), exact.values().sum::<u64>());
    for Heavy { key, count, error } in &heaviest {
        let weight = exact.get(key.as_str()).copied().unwrap_or(0);
        prop_assert!(
            *count >= weight && count - error <= weight,
            "{key}: {count} - {error}, exactly {weight}"
        );
    }
    for (key, weight) in exact {
        if !heaviest.iter().any(|heavy| heavy.key == key) {
            prop_assert!(weight <= top.floor(), "{} weighs {}", key, weight);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn counts_are_bounds_and_nothing_heavy_is_missing(stream in stream(), capacity in 1usize..30) {
        let top = counted(capacity, &stream);
        check(&top, capacity, &stream)?;
        let total = top.total();
        for (key, weight) in exact(&stream) {
            if weight > total / capacity as u64 {
                prop_assert!(top.heaviest().iter().any(|heavy| heavy.key == key), "{} of {}", weight, total);
            }
        }
    }

    #[test]
    fn merged_counts_are_bounds_of_both_streams(
        one in stream(), other in stream(), third in stream(), capacities in (1usize..20, 1usize..20, 1usize..20),
    ) {
        let mut top = counted(capacities.0, &one);
        top.merge(&counted(capacities.1, &other));
        let mut all = [one, other].concat();
        check(&top, capacities.0, &all)?;
        // What comes after a merge, and a merge after that, keeps to it.
        for (key, weight) in &third {
            top.add(key, *weight);
        }
        all.extend(third.clone());
        check(&top, capacities.0, &all)?;
        top.merge(&counted(capacities.2, &third));
        all.extend(third);
        check(&top, capacities.0, &all)?;
    }

    #[test]
    fn few_keys_are_counted_exactly(stream in vec(("[a-f]", 1u64..9), 0..100)) {
        let top = counted(6, &stream);
        let counts: BTreeMap<String, u64> = top.heaviest().into_iter().map(|heavy| (heavy.key, heavy.count)).collect();
        let exact: BTreeMap<String, u64> = exact(&stream).into_iter().map(|(key, weight)| (key.to_owned(), weight)).collect();
        prop_assert_eq!(counts, exact);
    }

    #[test]
    fn the_same_stream_gives_the_same_sketch(stream in stream(), capacity in 1usize..9) {
        let (one, other) = (counted(capacity, &stream), counted(capacity, &stream));
        prop_assert_eq!(&one, &other);
        let ranks = one.heaviest();
        prop_assert!(ranks.windows(2).all(|pair| (pair[1].count, &pair[0].key) < (pair[0].count, &pair[1].key)
            || pair[0].count > pair[1].count));
    }
}

#[test]
fn the_lightest_makes_room_and_the_last_of_equals_first() {
    let mut top = TopK::new(2);
    for (key, weight) in [("b", 3), ("a", 3), ("c", 1)] {
        top.add(key, weight);
    }
    let heavy = |key: &str, count, error| Heavy { key: key.into(), count, error };
    assert_eq!(top.heaviest(), [heavy("c", 4, 3), heavy("a", 3, 0)]);
    assert_eq!(top.heaviest()[0].at_least(), 1);
}
