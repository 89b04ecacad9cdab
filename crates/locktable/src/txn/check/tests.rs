//! etcd's limits, case by case.

use alloc::{vec, vec::Vec};

use bytes::Bytes;

use crate::{
    sample::{delete, put, txn},
    txn::{MAX_ALL_STEPS, MAX_DEPTH, MAX_STEPS, Range, Sort, Txn, TxnError, TxnOp},
};

fn read(key: &'static str) -> TxnOp {
    let (key, range_end) = (Bytes::from(key), Bytes::new());
    TxnOp::Range(Range { key, range_end, limit: 0, sort: Sort::Key, max_create_revision: None })
}

fn reads(count: usize) -> Vec<TxnOp> {
    (0..count).map(|_| read("k")).collect()
}

fn either(success: Vec<TxnOp>, failure: Vec<TxnOp>) -> TxnOp {
    TxnOp::Txn(Txn { compare: vec![], success, failure })
}

#[test]
fn lists_depth_and_the_whole_are_bounded() {
    assert_eq!(txn(reads(MAX_STEPS)).check(), Ok(()));
    assert_eq!(txn(reads(MAX_STEPS + 1)).check(), Err(TxnError::TooManySteps));
    let eight = (0..8).map(|_| either(reads(MAX_STEPS), vec![])).collect::<Vec<_>>();
    assert_eq!(
        txn(eight).check(),
        Err(TxnError::TooManySteps),
        "with the eight themselves more than {MAX_ALL_STEPS}"
    );
    let nested = |depth: usize| (1..depth).fold(txn(vec![]), |inner, _| txn(vec![TxnOp::Txn(inner)]));
    assert_eq!(nested(MAX_DEPTH).check(), Ok(()));
    assert_eq!(nested(MAX_DEPTH + 1).check(), Err(TxnError::TooDeep));
    assert_eq!(nested(10_000).check(), Err(TxnError::TooDeep));
}

#[test]
fn keys_are_not_empty() {
    for op in [read(""), put("", None), delete("", "")] {
        assert_eq!(txn(vec![op.clone()]).check(), Err(TxnError::EmptyKey), "{op:?}");
        assert_eq!(txn(vec![either(vec![], vec![op])]).check(), Err(TxnError::EmptyKey));
    }
}

#[test]
fn no_key_is_written_twice_in_one_go() {
    let twice = Err(TxnError::DuplicateKey);
    let a = || put("a", None);
    assert_eq!(txn(vec![a(), put("b", None), read("a")]).check(), Ok(()));
    assert_eq!(txn(vec![a(), a()]).check(), twice);
    assert_eq!(txn(vec![a(), delete("a", "")]).check(), twice);
    assert_eq!(txn(vec![delete("a", "c"), put("b", None)]).check(), twice);
    assert_eq!(txn(vec![delete("a", "\0"), put("z", None)]).check(), twice);
    assert_eq!(txn(vec![delete("b", "c"), a(), put("c", None)]).check(), Ok(()));
    assert_eq!(txn(vec![delete("a", "c"), delete("b", "")]).check(), Ok(()), "deleting twice is deleting");
    let unused = Txn { compare: vec![], success: vec![], failure: vec![a(), a()] };
    assert_eq!(unused.check(), twice, "whichever branch is taken");
}

#[test]
fn branches_of_one_inner_transaction_may_write_the_same_but_neighbours_may_not() {
    let twice = Err(TxnError::DuplicateKey);
    let a = || put("a", None);
    assert_eq!(txn(vec![either(vec![a()], vec![a()])]).check(), Ok(()));
    assert_eq!(txn(vec![either(vec![a()], vec![delete("a", "")])]).check(), Ok(()));
    assert_eq!(txn(vec![either(vec![a()], vec![]), a()]).check(), twice);
    assert_eq!(txn(vec![a(), either(vec![], vec![a()])]).check(), twice);
    assert_eq!(txn(vec![either(vec![a()], vec![]), either(vec![], vec![delete("a", "")])]).check(), twice);
    assert_eq!(txn(vec![delete("a", "b"), either(vec![either(vec![a()], vec![])], vec![])]).check(), twice);
}
