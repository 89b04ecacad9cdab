//! The tail under literal entries: what is read, truncated, purged and evicted.

use openraft::{RaftTypeConfig, entry::RaftEntry, vote::RaftLeaderId};

use super::*;
use crate::raft::types::TypeConfig;

fn id(term: u64, index: u64) -> LogId {
    LogId::new(<TypeConfig as RaftTypeConfig>::LeaderId::new(term, 1).to_committed(), index)
}

fn entries(term: u64, range: Range<u64>) -> Vec<Entry> {
    range.map(|index| Entry::new_blank(id(term, index))).collect()
}

fn tail(limit: usize) -> Tail {
    let limits = TailLimits { entries: limit, bytes: usize::MAX };
    Tail::new(GroupNumber::new(1).unwrap(), limits, TailStart::default())
}

fn append(tail: &mut Tail, term: u64, range: Range<u64>) {
    let count = usize::try_from(range.end - range.start).unwrap();
    tail.append(entries(term, range), &vec![10; count]).unwrap();
}

fn indexes(plan: &ReadPlan) -> Vec<u64> {
    plan.cached.iter().map(|entry| entry.log_id.index).collect()
}

#[test]
fn only_durable_entries_are_evicted() {
    let mut tail = tail(3);
    append(&mut tail, 1, 0..10);
    assert_eq!(tail.cached.len(), 10, "nothing is on disk yet");
    tail.mark_durable(0, 5);
    assert_eq!(tail.cached_first(), 5);
    tail.mark_durable(0, 10);
    assert_eq!(tail.cached_first(), 7);
    let plan = tail.plan_read(4..9);
    assert_eq!((plan.disk.clone(), indexes(&plan)), (4..7, vec![7, 8]));
}

#[test]
fn commit_of_what_was_truncated_says_nothing_about_its_successors() {
    let mut tail = tail(1);
    append(&mut tail, 1, 0..10);
    let old = tail.epoch();
    assert_eq!(tail.truncate_after(Some(id(1, 4))), 5);
    append(&mut tail, 2, 5..10);
    tail.mark_durable(old, 10);
    assert_eq!(tail.cached.len(), 10, "none of these is known to be on disk");
    tail.mark_durable(tail.epoch(), 5);
    assert_eq!(tail.cached_first(), 5);
    assert_eq!(tail.last(), Some(id(2, 9)));
}

#[test]
fn truncation_reaches_entries_that_are_only_on_disk() {
    let mut tail = tail(2);
    append(&mut tail, 1, 0..10);
    tail.mark_durable(0, 10);
    assert_eq!(tail.truncate_after(Some(id(1, 2))), 3);
    assert_eq!((tail.last(), tail.len(), tail.cached_bytes), (Some(id(1, 2)), 3, 0));
    let plan = tail.plan_read(0..100);
    assert_eq!((plan.disk.clone(), indexes(&plan)), (0..3, vec![]));
    assert_eq!(tail.truncate_after(Some(id(1, 7))), 8, "nothing there, nothing changes");
    assert_eq!(tail.len(), 3);
    assert_eq!(tail.truncate_after(None), 0);
    assert_eq!((tail.last(), tail.len()), (None, 0));
}

#[test]
fn holes_are_refused() {
    let mut tail = tail(10);
    append(&mut tail, 1, 5..7);
    assert!(matches!(tail.append(entries(1, 8..9), &[10]), Err(TailError::Hole { index: 8, next: 7, .. })));
    assert!(
        tail.append(entries(1, 6..7), &[10]).is_err(),
        "a present entry is replaced only after a truncation"
    );
    let mut torn = entries(1, 7..10);
    torn.remove(1);
    assert!(matches!(tail.append(torn, &[10, 10]), Err(TailError::Unordered { index: 9, next: 8, .. })));
    assert_eq!(tail.last(), Some(id(1, 6)), "a refused append leaves nothing behind");
    tail.purge(id(1, 6));
    assert!(
        tail.append(entries(1, 9..10), &[10]).is_err(),
        "a purged log goes on right behind the purge mark"
    );
    append(&mut tail, 1, 7..8);
}

#[test]
fn purge_forgets_from_the_front_and_beyond_the_end() {
    let mut tail = tail(10);
    append(&mut tail, 1, 0..10);
    assert_eq!(tail.purge(id(1, 3)), Some(0..4));
    assert_eq!(tail.purge(id(1, 3)), None);
    assert_eq!(indexes(&tail.plan_read(0..6)), vec![4, 5]);
    assert_eq!(tail.purge(id(2, 19)), Some(4..10), "what was never here need not be deleted");
    assert_eq!((tail.last(), tail.purged(), tail.len()), (Some(id(2, 19)), Some(id(2, 19)), 0));
    append(&mut tail, 2, 20..21);
    assert_eq!(indexes(&tail.plan_read(0..100)), vec![20]);
    assert_eq!(tail.purge(id(2, 1 << 40)), Some(20..21));
}

#[test]
fn a_late_read_notices_that_its_entries_have_moved() {
    let mut tail = tail(10);
    append(&mut tail, 1, 0..10);
    let plan = tail.plan_read(2..6);
    tail.purge(id(1, 1));
    assert!(!tail.purged_since(&plan), "entry 2 is still there");
    tail.purge(id(1, 2));
    assert!(tail.purged_since(&plan));
    assert!(!tail.rewritten_since(&plan));
    tail.truncate_after(Some(id(1, 4)));
    assert!(tail.rewritten_since(&plan));
}

#[test]
fn limited_reads_stop_at_the_budget_but_never_empty() {
    let mut tail = tail(4);
    append(&mut tail, 1, 0..10);
    assert_eq!(indexes(&tail.plan_limited_read(2..10, 35)), vec![2, 3, 4]);
    assert_eq!(indexes(&tail.plan_limited_read(2..10, 1)), vec![2]);
    assert_eq!(indexes(&tail.plan_limited_read(2..4, 1_000)), vec![2, 3]);
    tail.mark_durable(0, 10);
    let plan = tail.plan_limited_read(2..10, 15);
    assert_eq!((plan.disk.clone(), indexes(&plan)), (2..6, vec![]));
    let plan = tail.plan_limited_read(2..5, 15);
    assert_eq!((plan.disk.clone(), indexes(&plan)), (2..5, vec![]));
}

#[test]
fn the_commit_mark_is_taken_once() {
    let mut tail = tail(4);
    append(&mut tail, 1, 0..10);
    assert_eq!(tail.take_committed(), None);
    tail.set_committed(Some(id(1, 3)));
    tail.set_committed(Some(id(1, 2)));
    assert_eq!(tail.take_committed(), Some(id(1, 3)));
    assert_eq!(tail.take_committed(), None);
}

#[test]
fn a_reopened_log_begins_where_the_disk_ends() {
    let start = TailStart { purged: Some(id(1, 4)), present: Some((5, id(2, 9))), ..TailStart::default() };
    let tail = Tail::new(GroupNumber::new(1).unwrap(), TailLimits::default(), start);
    let plan = tail.plan_read(0..100);
    assert_eq!((plan.disk.clone(), indexes(&plan), tail.last()), (5..10, vec![], Some(id(2, 9))));
    let start = TailStart { purged: Some(id(1, 4)), ..TailStart::default() };
    let tail = Tail::new(GroupNumber::new(1).unwrap(), TailLimits::default(), start);
    assert_eq!((tail.last(), tail.len(), tail.next), (Some(id(1, 4)), 0, 5));
}
