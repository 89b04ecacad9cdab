//! What is left of a state in a new cluster, what is refused, and when its group grants again.

use alloc::{string::ToString, vec, vec::Vec};

use holdfast_partitioner::{GroupId, MapEpoch, Part, Range};

use super::*;
use crate::{
    codec::Digest,
    command::{Activate, Command, DropRange, Import, Seal},
    ids::Term,
    moved::{Cursor, Moved},
    outcome::{Outcome, Rejection},
    sample::{TERM, acquire, ask, hold, id, lock, nearly_full, put, run, table, text, txn, with_sessions},
};

const EPOCH: MapEpoch = MapEpoch(9);

fn everything() -> Vec<Range> {
    vec![Range::everything()]
}

fn into(ranges: &[Range]) -> Restoring<'_> {
    Restoring { incarnation: 1, map_epoch: EPOCH, ranges, undecided: None, pause_ms: None }
}

fn put_key(table: &mut LockTable, key: &str) {
    run(table, Command::Txn(txn(vec![put(key, None)]))).unwrap();
}

fn keys(table: &LockTable) -> Vec<&[u8]> {
    table.state.keys.keys().map(AsRef::as_ref).collect()
}

#[test]
fn sessions_and_their_locks_are_gone_and_ordinary_keys_stay() {
    let mut before = with_sessions(2);
    hold(&mut before, 1, "l", text("a"));
    ask(&mut before, 2, "l", text("b")).unwrap();
    put_key(&mut before, "setting");
    let ranges = everything();
    let after = before.restored(&into(&ranges)).unwrap();
    assert_eq!(keys(&after), [b"setting"]);
    assert_eq!((after.state.sessions.len(), after.ownership_epoch()), (0, EPOCH));
    assert_eq!(after.holder(&lock("l")), None);
}

#[test]
fn tokens_begin_above_all_of_the_incarnation_before_even_where_its_counter_was_full() {
    let mut before = with_sessions(1);
    before.state.revision = nearly_full(0);
    let ranges = everything();
    let mut after = before.restored(&into(&ranges)).unwrap();
    assert_eq!(after.revision(), Revision(1 << 44));
    let open = crate::command::OpenSession {
        session: id(1),
        ttl_ms: 10_000,
        metadata: crate::metadata::Metadata::default(),
    };
    run(&mut after, Command::OpenSession(open)).unwrap();
    let mut asked = acquire(1, "l", text("a"));
    asked.epoch = after.session_epoch(id(1)).unwrap();
    let granted = run(&mut after, Command::Acquire(asked));
    assert_eq!(granted, Ok(Outcome::Granted { token: Revision((1 << 44) + 1) }));
}

#[test]
fn an_incarnation_that_is_not_above_or_not_there_is_refused() {
    let mut before = table();
    before.state.revision = Revision::start_of(3).unwrap();
    let ranges = everything();
    let low = before.restored(&Restoring { incarnation: 3, ..into(&ranges) }).unwrap_err();
    assert_eq!(low, RestoreRefusal::IncarnationTooLow { group: GroupId(1), found: 3, asked: 3 });
    let high = before.restored(&Restoring { incarnation: 512, ..into(&ranges) }).unwrap_err();
    assert_eq!(high, RestoreRefusal::IncarnationsUsedUp { asked: 512 });
    assert!(before.restored(&Restoring { incarnation: 511, ..into(&ranges) }).is_ok());
}

#[test]
fn watches_from_before_are_told_that_it_is_gone() {
    let mut before = table();
    put_key(&mut before, "setting");
    let ranges = everything();
    let mut after = before.restored(&into(&ranges)).unwrap();
    let oldest = Revision((1 << 44) + 1);
    for from in [Revision(0), before.revision(), nearly_full(0), Revision(1 << 44)] {
        assert_eq!(after.history(from).map(|_| ()), Err(Rejection::Compacted { oldest }), "{from}");
    }
    put_key(&mut after, "setting");
    assert_eq!(after.history(oldest).unwrap().count(), 1);
}

#[test]
fn nothing_is_granted_until_a_leader_has_waited() {
    let mut before = with_sessions(1);
    before.state.paused_ms = Some(30_000);
    assert_eq!(before.longest_ttl_ms(), Some(30_000), "a pause that was not over counts");
    let ranges = everything();
    let mut table = before.restored(&Restoring { pause_ms: Some(10_000), ..into(&ranges) }).unwrap();
    let open = crate::command::OpenSession {
        session: id(1),
        ttl_ms: 10_000,
        metadata: crate::metadata::Metadata::default(),
    };
    run(&mut table, Command::OpenSession(open)).unwrap();
    let mut asked = acquire(1, "l", text("a"));
    asked.epoch = table.session_epoch(id(1)).unwrap();
    let paused = Err(Rejection::GrantsPaused { pause_ms: 10_000 });
    let still = table.clone();
    assert_eq!(run(&mut table, Command::Acquire(asked.clone())), paused);
    assert_eq!(run(&mut table, Command::Txn(txn(vec![put("l/1", Some(1))]))), paused);
    let seal = Seal { move_number: MoveNumber(1), range: Range::everything(), term: TERM, left: vec![] };
    assert_eq!(run(&mut table, Command::Seal(seal)), paused, "the range would be without a pause elsewhere");
    assert_eq!(table, still);
    put_key(&mut table, "setting");
    let stale = run(&mut table, Command::ResumeGrants(Term(TERM.0 + 1)));
    assert_eq!((stale, table.paused_ms()), (Err(Rejection::StaleTerm), Some(10_000)));
    run(&mut table, Command::ResumeGrants(TERM)).unwrap();
    assert!(matches!(run(&mut table, Command::Acquire(asked)), Ok(Outcome::Granted { .. })));
}

/// Group 1 with two keys, of which one is on its way to group 2; and group 2, which has all of it.
fn in_a_move() -> (LockTable, LockTable, Range) {
    let (mut source, mut destination) = (with_sessions(1), LockTable::new(GroupId(2)));
    let range = Range::new("moved/", [], Part::All);
    put_key(&mut source, "moved/setting");
    put_key(&mut source, "stays");
    let move_number = MoveNumber(1);
    let seal = Seal { move_number, range: range.clone(), term: TERM, left: vec![] };
    run(&mut source, Command::Seal(seal)).unwrap();
    let part = source.export(move_number, &Cursor::Start, usize::MAX).unwrap();
    let moved: Vec<Moved> = part.moved;
    let import = Import { move_number, attempt: 1, range: range.clone(), part: 0, moved, last: part.last };
    run(&mut destination, Command::Import(import)).unwrap();
    (source, destination, range)
}

#[test]
fn a_move_is_wholly_before_or_wholly_after_as_the_map_says() {
    let (source, destination, range) = in_a_move();
    let all = everything();
    assert_eq!(keys(&source.restored(&into(&all)).unwrap()), [b"moved/setting".as_slice(), b"stays"]);
    assert!(keys(&destination.restored(&into(&[])).unwrap()).is_empty());
    let left = vec![Range::new("", ["moved/".into()], Part::All)];
    assert_eq!(keys(&source.restored(&into(&left)).unwrap()), [b"stays"]);
    assert_eq!(keys(&destination.restored(&into(&[range])).unwrap()), [b"moved/setting"]);
}

#[test]
fn a_move_that_is_not_decided_is_refused() {
    let (source, destination, _) = in_a_move();
    let (all, undecided) = (everything(), Some(MoveNumber(1)));
    for (table, ranges) in [(source, all.as_slice()), (destination, &[])] {
        let refused = table.restored(&Restoring { undecided, ..into(ranges) }).unwrap_err();
        let group = table.group();
        assert_eq!(refused, RestoreRefusal::Undecided { group, move_number: MoveNumber(1) });
    }
}

#[test]
fn a_state_that_is_older_than_the_map_is_refused() {
    let (mut source, mut destination, range) = in_a_move();
    let without = LockTable::new(GroupId(2));
    let move_number = MoveNumber(1);
    let digest =
        destination.state.moves.incoming.as_ref().map_or(Digest::NOTHING, |incoming| incoming.digest);
    let (ranges, map_epoch) = (vec![range.clone()], MapEpoch(2));
    run(&mut destination, Command::Activate(Activate { move_number, digest, map_epoch, ranges })).unwrap();
    let left = vec![Range::new("", ["moved/".into()], Part::All)];
    let dropped = DropRange { move_number, map_epoch, ranges: left };
    run(&mut source, Command::Drop(dropped)).unwrap();
    let all = everything();
    let refused = source.restored(&into(&all)).unwrap_err();
    assert!(matches!(refused, RestoreRefusal::OtherMap { .. }), "{refused}");
    assert!(refused.to_string().contains("as one set"), "{refused}");
    assert!(destination.restored(&into(&[range])).is_ok());
    assert!(without.restored(&into(&[])).is_ok());
}
