//! The register of incarnations over a store in memory: no number twice, none that is too low.

use super::*;
use crate::snapshot::memory_store::MemoryStore;

fn id(text: &str) -> ClusterId {
    text.parse().unwrap()
}

async fn claimed(store: &MemoryStore, seen: u64) -> u64 {
    claim(store, &id("prod"), seen).await.unwrap()
}

#[tokio::test]
async fn each_claim_gets_a_number_above_all_that_are_known() {
    let store = MemoryStore::default();
    assert_eq!(claimed(&store, 0).await, 1);
    assert_eq!(claimed(&store, 0).await, 2);
    assert_eq!(claimed(&store, 7).await, 8);
    assert_eq!(next_above(&store, &id("prod"), 3).await, Ok(9));
    assert_eq!(next_above(&store, &id("other"), 3).await, Ok(4));
}

#[tokio::test]
async fn claims_at_the_same_time_get_different_numbers() {
    let store = MemoryStore::default();
    let mut numbers = futures::future::join_all((0..8).map(|_| claimed(&store, 0))).await;
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 8);
}

#[tokio::test]
async fn a_number_of_the_operator_must_be_above_all_that_can_be_seen() {
    let store = MemoryStore::default();
    claimed(&store, 4).await;
    let given = async |number| check_given(&store, &id("prod"), 2, number).await;
    assert_eq!(given(5).await, Err(IncarnationError::TooLow { given: 5, seen: 5 }));
    assert_eq!(given(9).await, Ok(9));
    assert_eq!(given(9).await, Err(IncarnationError::TooLow { given: 9, seen: 9 }), "it is noted");
    assert_eq!(given(512).await, Err(IncarnationError::UsedUp { seen: 512 }));
}

#[tokio::test]
async fn the_last_number_is_an_error_and_never_a_carry() {
    let store = MemoryStore::default();
    assert_eq!(claimed(&store, Revision::LAST_INCARNATION - 1).await, Revision::LAST_INCARNATION);
    let used_up = IncarnationError::UsedUp { seen: Revision::LAST_INCARNATION };
    assert_eq!(claim(&store, &id("prod"), 0).await, Err(used_up));
}

#[tokio::test]
async fn restored_clusters_share_the_register_of_the_first() {
    let store = MemoryStore::default();
    let (first, second) = (id("prod"), id("prod-r1"));
    assert_eq!(origin_of(&store, &first).await.as_ref(), Ok(&first));
    assert!(!is_taken(&store, &second).await.unwrap());
    note_origin(&store, &second, &first).await.unwrap();
    assert!(is_taken(&store, &second).await.unwrap());
    assert_eq!(origin_of(&store, &second).await.as_ref(), Ok(&first));
    assert!(note_origin(&store, &second, &first).await.is_err(), "a cluster has one origin");
}
