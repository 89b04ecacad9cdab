//! Tables and commands for unit tests.

use alloc::{vec, vec::Vec};

use bytes::Bytes;
use holdfast_partitioner::{GroupId, MapEpoch, Range};

use crate::{
    command::{Acquire, Command, OpenSession, Own, Proposal, Repeat, RequestId, Wait},
    ids::{Revision, SessionEpoch, SessionId, Term, Token},
    metadata::Metadata,
    name::Name,
    outcome::{Applied, Outcome, Rejection},
    table::{LockTable, Position},
    txn::{Delete, Put, Txn, TxnOp},
};

/// The term of all entries.
pub(crate) const TERM: Term = Term(1);

/// Group 1, owner of everything, at log index 1.
pub(crate) fn table() -> LockTable {
    let mut table = LockTable::new(GroupId(1));
    let ranges = vec![Range::everything()];
    let own = Own { group: GroupId(1), map_epoch: MapEpoch::FIRST, ranges };
    assert_eq!(apply(&mut table, 1, Command::Own(own)).result, Ok(Outcome::Done));
    table
}

/// As [`table`], with the sessions `1..=sessions` open; their epochs are their ids plus 1.
pub(crate) fn with_sessions(sessions: u64) -> LockTable {
    let mut table = table();
    for session in 1..=sessions {
        let open = OpenSession { session: id(session), ttl_ms: 10_000, metadata: Metadata::default() };
        let opened = apply(&mut table, session + 1, Command::OpenSession(open)).result;
        assert_eq!(opened, Ok(Outcome::SessionOpened { epoch: epoch(session) }));
    }
    table
}

pub(crate) fn apply(table: &mut LockTable, index: u64, command: Command) -> Applied {
    table.apply(Position { index, term: TERM }, &Proposal { at_ms: index * 1_000, command })
}

/// Applies at an index of no importance.
pub(crate) fn run(table: &mut LockTable, command: Command) -> Result<Outcome, Rejection> {
    apply(table, 1_000, command).result
}

pub(crate) fn id(session: u64) -> SessionId {
    SessionId::new(session).unwrap()
}

pub(crate) fn epoch(session: u64) -> SessionEpoch {
    SessionEpoch(session + 1)
}

pub(crate) fn lock(name: &str) -> Name {
    Name::lock(name).unwrap()
}

pub(crate) fn text(text: &str) -> RequestId {
    RequestId::Text(text.into())
}

pub(crate) fn sequence(sequence: u64, lowest: u64) -> RequestId {
    RequestId::Sequence { sequence, lowest }
}

pub(crate) fn acquire(session: u64, name: &str, request: RequestId) -> Acquire {
    Acquire {
        name: lock(name),
        session: id(session),
        epoch: epoch(session),
        attach: None,
        request,
        wait: Wait::Unlimited,
        metadata: Metadata::default(),
        value: Bytes::new(),
        repeat: Repeat::Refuse,
    }
}

pub(crate) fn ask(
    table: &mut LockTable,
    session: u64,
    name: &str,
    request: RequestId,
) -> Result<Outcome, Rejection> {
    run(table, Command::Acquire(acquire(session, name, request)))
}

/// Acquires a free lock.
pub(crate) fn hold(table: &mut LockTable, session: u64, name: &str, request: RequestId) -> Token {
    match ask(table, session, name, request) {
        Ok(Outcome::Granted { token }) => token,
        other => panic!("not granted: {other:?}"),
    }
}

pub(crate) fn release(table: &mut LockTable, session: u64, name: &str, token: Token) {
    let released = run(table, Command::Release { name: lock(name), session: id(session), token });
    assert_eq!(released, Ok(Outcome::Released { released: true }));
}

pub(crate) fn put(key: &str, lease: Option<u64>) -> TxnOp {
    let key = Bytes::copy_from_slice(key.as_bytes());
    TxnOp::Put(Put { key, value: Bytes::new(), lease: lease.map(id) })
}

pub(crate) fn delete(key: &str, range_end: &str) -> TxnOp {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    TxnOp::Delete(Delete { key: bytes(key), range_end: bytes(range_end) })
}

pub(crate) fn txn(success: Vec<TxnOp>) -> Txn {
    Txn { compare: vec![], success, failure: vec![] }
}

/// A counter with so many revisions left.
pub(crate) fn nearly_full(left: u64) -> Revision {
    Revision((1 << Revision::COUNTER_BITS) - 1 - left)
}
