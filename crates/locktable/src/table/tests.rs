//! Bounds of the whole table, and that apply is total.

use alloc::{string::String, vec, vec::Vec};

use bytes::Bytes;
use holdfast_partitioner::{GroupId, MapEpoch, Range};

use super::{HISTORY_BYTES, HISTORY_EVENTS, LockTable, MAX_ENDED_HOLDS, MAX_ENDED_TEXTS, MAX_OUTSTANDING};
use crate::{
    command::{Acquire, Command, Own, Proposal, Repeat, RequestId, Wait},
    ids::{Revision, SessionEpoch, Term},
    invariants,
    outcome::{Bound, Outcome, Rejection},
    sample::*,
    table::Position,
    txn::{Put, Txn, TxnOp},
};

fn unchanged(table: &mut LockTable, command: Command, expected: Rejection) {
    let before = table.digest();
    let applied = apply(table, 1_000, command);
    assert_eq!(applied.result, Err(expected));
    assert!(applied.events.is_empty() && applied.facts.is_empty());
    assert_eq!(table.digest(), before);
}

#[test]
fn a_full_counter_is_an_error_for_everything_that_writes() {
    let mut table = with_sessions(2);
    table.state.revision = nearly_full(2);
    let token = hold(&mut table, 1, "l", text("a"));
    assert_eq!(token, nearly_full(1));
    assert_eq!(
        ask(&mut table, 2, "l", text("b")),
        Ok(Outcome::Queued { revision: nearly_full(0), ahead: 1 })
    );
    let name = lock("l");
    let full = Rejection::CounterFull;
    unchanged(&mut table, Command::Acquire(acquire(1, "m", text("c"))), full.clone());
    unchanged(&mut table, Command::Release { name: name.clone(), session: id(1), token }, full.clone());
    unchanged(&mut table, Command::ForceRelease { name: name.clone(), token }, full.clone());
    let sessions = vec![(id(1), epoch(1))];
    unchanged(&mut table, Command::ExpireSessions { sessions, term: TERM }, full.clone());
    unchanged(&mut table, Command::Txn(txn(vec![delete("l/1", "")])), full.clone());
    let value = Bytes::new();
    unchanged(&mut table, Command::Proclaim { name, session: id(1), token, value }, full);
    assert_eq!(invariants::check(&table), Ok(()));
}

#[test]
fn at_most_256_results_stand_above_the_floor() {
    let mut table = with_sessions(1);
    for number in 1..=MAX_OUTSTANDING as u64 {
        hold(&mut table, 1, &alloc::format!("l{number}"), sequence(number, 1));
    }
    let next = MAX_OUTSTANDING as u64 + 1;
    unchanged(
        &mut table,
        Command::Acquire(acquire(1, "more", sequence(next, 1))),
        Rejection::TooManyOutstanding,
    );
    // Whoever says that one is answered has room for one.
    hold(&mut table, 1, "more", sequence(next, 2));
    let stale = Rejection::StaleRequest { ended: None };
    unchanged(&mut table, Command::Acquire(acquire(1, "other", sequence(1, 1))), stale);
    assert_eq!(invariants::check(&table), Ok(()));
}

#[test]
fn a_long_wait_does_not_use_the_numbers_up() {
    let mut table = with_sessions(2);
    hold(&mut table, 2, "elected", text("x"));
    assert_eq!(
        ask(&mut table, 1, "elected", sequence(1, 1)),
        Ok(Outcome::Queued { revision: Revision(2), ahead: 1 })
    );
    // The client counts number 1 as answered, as it knows that it stands in line.
    for number in 2..=2 * MAX_OUTSTANDING as u64 {
        let token = hold(&mut table, 1, "work", sequence(number, number));
        release(&mut table, 1, "work", token);
    }
    let waits = Ok(Outcome::Queued { revision: Revision(2), ahead: 1 });
    assert_eq!(ask(&mut table, 1, "elected", sequence(1, 600)), waits);
    release(&mut table, 2, "elected", Revision(1));
    assert_eq!(ask(&mut table, 1, "elected", sequence(1, 600)), Ok(Outcome::Granted { token: Revision(2) }));
}

#[test]
fn text_records_and_remembered_holds_are_bounded() {
    let mut table = with_sessions(1);
    let kept = hold(&mut table, 1, "kept", text("k"));
    for number in 0..MAX_ENDED_TEXTS + 10 {
        let name = alloc::format!("l{number}");
        let token = hold(&mut table, 1, &name, text("t"));
        release(&mut table, 1, &name, token);
    }
    let requests = &table.state.sessions[&id(1)].requests;
    assert_eq!(requests.rare.get().texts.len(), MAX_ENDED_TEXTS + 1, "the held one and the last ended ones");
    assert_eq!(requests.rare.get().ended_holds.len(), MAX_ENDED_HOLDS);
    assert_eq!(ask(&mut table, 1, "kept", text("k")), Ok(Outcome::Granted { token: kept }));
    let last = alloc::format!("l{}", MAX_ENDED_TEXTS + 9);
    assert!(matches!(ask(&mut table, 1, &last, text("t")), Err(Rejection::StaleRequest { ended: Some(_) })));
    assert!(
        matches!(ask(&mut table, 1, "l0", text("t")), Ok(Outcome::Granted { .. })),
        "forgotten, so executed"
    );
    assert_eq!(invariants::check(&table), Ok(()));
}

#[test]
fn a_text_record_replaced_in_time_is_not_dropped_with_its_old_end() {
    let mut table = with_sessions(1);
    let first = hold(&mut table, 1, "l", text("one"));
    release(&mut table, 1, "l", first);
    let token = hold(&mut table, 1, "l", text("two"));
    for _ in 0..=MAX_ENDED_TEXTS {
        let other = table.revision();
        let other = hold(&mut table, 1, "other", text(&alloc::format!("{other}")));
        release(&mut table, 1, "other", other);
    }
    assert_eq!(ask(&mut table, 1, "l", text("two")), Ok(Outcome::Granted { token }));
    assert_eq!(invariants::check(&table), Ok(()));
}

#[test]
fn history_is_bounded_by_events_in_whole_revisions() {
    let mut table = with_sessions(1);
    let op = |n: u64| [put(&alloc::format!("k{}", n % 50), None), put(&alloc::format!("j{}", n % 50), None)];
    let entries = HISTORY_EVENTS as u64 / 2 + 7;
    for number in 1..=entries {
        assert!(run(&mut table, Command::Txn(txn(op(number).into()))).is_ok());
    }
    assert_eq!(table.state.history.events().len(), HISTORY_EVENTS);
    let oldest = Revision(entries - HISTORY_EVENTS as u64 / 2 + 1);
    assert_eq!(table.oldest_revision(), oldest);
    assert_eq!(table.history(oldest).map(Iterator::count), Ok(HISTORY_EVENTS));
    let below = table.history(Revision(oldest.0 - 1)).map(Iterator::count);
    assert_eq!(below, Err(Rejection::Compacted { oldest }));
    assert_eq!(invariants::check(&table), Ok(()));
}

#[test]
fn history_is_bounded_by_bytes_but_keeps_the_last_entry() {
    let mut table = table();
    let value = Bytes::from(vec![0; 64 << 10]);
    let big = |n: usize| {
        TxnOp::Put(Put { key: Bytes::from(alloc::format!("k{n}")), value: value.clone(), lease: None })
    };
    let fits = HISTORY_BYTES / (64 << 10);
    for number in 0..fits + 5 {
        assert!(run(&mut table, Command::Txn(txn(vec![big(number)]))).is_ok());
    }
    assert!(table.state.history.bytes() <= HISTORY_BYTES);
    assert!(table.oldest_revision() > Revision(5));
    assert_eq!(invariants::check(&table), Ok(()));
    // 512 writes of 64 KiB in one entry are more than the bound, and stay.
    let inner = |from: usize| TxnOp::Txn(txn((from..from + 128).map(big).collect()));
    let all = txn(vec![inner(0), inner(128), inner(256), inner(384)]);
    assert!(run(&mut table, Command::Txn(all)).is_ok());
    assert_eq!(table.oldest_revision(), table.revision());
    assert_eq!(table.history(table.revision()).map(Iterator::count), Ok(512));
    assert_eq!(invariants::check(&table), Ok(()));
}

#[test]
fn values_keys_and_request_ids_are_bounded() {
    let mut table = with_sessions(1);
    let value = Bytes::from(vec![0; (64 << 10) + 1]);
    let too_big = Acquire { value: value.clone(), ..acquire(1, "l", text("a")) };
    unchanged(&mut table, Command::Acquire(too_big), Rejection::OutOfBounds(Bound::Value));
    let long = text(&"x".repeat(257));
    unchanged(&mut table, Command::Acquire(acquire(1, "l", long)), Rejection::OutOfBounds(Bound::RequestId));
    let put = |key: &str, value: &Bytes| {
        let key = Bytes::copy_from_slice(key.as_bytes());
        Command::Txn(txn(vec![TxnOp::Put(Put { key, value: value.clone(), lease: None })]))
    };
    unchanged(&mut table, put("k", &value), Rejection::OutOfBounds(Bound::Value));
    unchanged(&mut table, put(&"k".repeat(4_097), &Bytes::new()), Rejection::OutOfBounds(Bound::Key));
    assert!(run(&mut table, put(&"k".repeat(4_096), &value.slice(..64 << 10))).is_ok());
    let token = hold(&mut table, 1, "l", text(&"x".repeat(256)));
    let proclaim = Command::Proclaim { name: lock("l"), session: id(1), token, value };
    unchanged(&mut table, proclaim, Rejection::OutOfBounds(Bound::Value));
}

#[test]
fn a_group_takes_its_first_ranges_once_and_only_its_own() {
    let mut table = LockTable::new(GroupId(2));
    let own = |group: u32, ranges: Vec<Range>| {
        Command::Own(Own { group: GroupId(group), map_epoch: MapEpoch::FIRST, ranges })
    };
    unchanged(&mut table, own(1, vec![Range::everything()]), Rejection::NotOwner);
    assert_eq!(run(&mut table, own(2, vec![])), Ok(Outcome::Done), "nothing yet");
    assert_eq!(table.owns(&lock("l")), Err(Rejection::NotOwner));
    assert_eq!(run(&mut table, own(2, vec![Range::everything()])), Ok(Outcome::Done));
    assert_eq!(table.owns(&lock("l")), Ok(()));
    unchanged(&mut table, own(2, vec![Range::everything()]), Rejection::AlreadyOwned);
}

#[test]
fn extreme_numbers_do_no_harm() {
    let mut table = with_sessions(2);
    let top = u64::MAX;
    let numbers = [sequence(top, top), sequence(top, 0), sequence(0, 0), sequence(1, top), sequence(top, 1)];
    for (at, request) in numbers.into_iter().enumerate() {
        let _ = ask(&mut table, 1, &alloc::format!("l{at}"), request);
        assert_eq!(invariants::check(&table), Ok(()));
    }
    let wait = Acquire { wait: Wait::AtMost(top), ..acquire(2, "l0", text("")) };
    assert!(run(&mut table, Command::Acquire(wait)).is_ok());
    assert!(run(&mut table, Command::Compact { keep_from: Revision(top) }).is_ok());
    let marked = vec![(id(1), epoch(1), top)];
    assert!(run(&mut table, Command::Checkpoint { marked, cleared: vec![], term: TERM }).is_ok());
    let sessions = vec![(id(1), epoch(1)), (id(1), epoch(1)), (id(2), SessionEpoch(top))];
    let expired = run(&mut table, Command::ExpireSessions { sessions, term: TERM });
    assert_eq!(expired, Ok(Outcome::SessionsExpired { count: 1 }), "named twice, ended once");
    let at = Position { index: top, term: Term(top) };
    let empty = Txn { compare: vec![], success: vec![], failure: vec![] };
    let applied = table.apply(at, &Proposal { at_ms: top, command: Command::Txn(empty) });
    assert!(
        applied.result.is_ok() && applied.events.is_empty(),
        "an empty transaction succeeds and writes nothing"
    );
    assert_eq!(invariants::check(&table), Ok(()));
}

#[test]
fn the_same_key_again_never_changes_a_lock_without_value() {
    let mut table = with_sessions(1);
    let put = TxnOp::Put(Put { key: Bytes::from("l/1"), value: Bytes::from("recipe"), lease: Some(id(1)) });
    assert!(run(&mut table, Command::Txn(txn(vec![put]))).is_ok());
    let again =
        Acquire { repeat: Repeat::SameKey, ..acquire(1, "l", RequestId::Text(String::from("x").into())) };
    let applied = apply(&mut table, 9, Command::Acquire(again));
    assert_eq!(applied.result, Ok(Outcome::Granted { token: Revision(1) }));
    assert!(applied.events.is_empty());
}
