//! How much memory a table takes: many sessions with one lock each, counted by the allocator.

// A failing step of a test should panic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_locktable::{
    codec::{decode_proposal, encode_proposal},
    command::{Acquire, Command, OpenSession, Own, Proposal, Repeat, RequestId, Wait},
    ids::{Revision, SessionEpoch, SessionId, Term},
    metadata::Metadata,
    name::Name,
    table::{HISTORY_EVENTS, LockTable, Position},
};
use holdfast_partitioner::{GroupId, MapEpoch, Range};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const SESSIONS: u64 = 5_000;
/// Most bytes of a session with its lock.
const MOST_BYTES: usize = 800;

/// Applies a command the way a member does: decoded from its bytes.
fn run(table: &mut LockTable, index: u64, command: Command) {
    let bytes = Bytes::from(encode_proposal(&Proposal { at_ms: index, command }));
    let at = Position { index, term: Term(1) };
    table.apply(at, &decode_proposal(&bytes).unwrap()).result.unwrap();
}

fn metadata() -> Metadata {
    let entries = [("host", "worker-17.example.net"), ("pid", "123456"), ("user", "deploy")];
    Metadata::new(entries.map(|(key, value)| (key.to_owned(), value.to_owned())).into()).unwrap()
}

fn open(table: &mut LockTable, index: u64, session: SessionId) -> SessionEpoch {
    run(table, index, Command::OpenSession(OpenSession { session, ttl_ms: 20_000, metadata: metadata() }));
    SessionEpoch(index)
}

fn acquire(table: &mut LockTable, index: u64, session: SessionId, epoch: SessionEpoch, name: &Name) {
    let acquire = Acquire {
        name: name.clone(),
        session,
        epoch,
        attach: None,
        request: RequestId::Sequence { sequence: index, lowest: index },
        wait: Wait::Unlimited,
        metadata: Metadata::new(BTreeMap::new()).unwrap(),
        value: Bytes::new(),
        repeat: Repeat::Refuse,
    };
    run(table, index, Command::Acquire(acquire));
}

/// Lets the history grow to its bound, and empties it: it keeps its room.
fn stretch_history(table: &mut LockTable) -> u64 {
    let session = SessionId::new(1).unwrap();
    let name = Name::lock("warm").unwrap();
    let epoch = open(table, 2, session);
    let cycles = HISTORY_EVENTS as u64 / 3 + 1;
    for n in 0..cycles {
        let at = 3 + 2 * n;
        acquire(table, at, session, epoch, &name);
        let token = table.revision();
        run(table, at + 1, Command::Release { name: name.clone(), session, token });
    }
    3 + 2 * cycles
}

fn bytes_in_use(table: &mut LockTable, index: u64) -> usize {
    run(table, index, Command::Compact { keep_from: Revision(u64::MAX) });
    dhat::HeapStats::get().curr_bytes
}

#[test]
fn a_session_with_its_lock_takes_less_than_a_kibibyte() {
    let _counted = dhat::Profiler::builder().testing().build();
    let mut table = LockTable::new(GroupId(1));
    let own = Own { group: GroupId(1), map_epoch: MapEpoch::FIRST, ranges: vec![Range::everything()] };
    run(&mut table, 1, Command::Own(own));
    let first = stretch_history(&mut table);
    let before = bytes_in_use(&mut table, first);
    for n in 1..=SESSIONS {
        // Spread as random ids are, while names come in order.
        let session = SessionId::new(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1).unwrap();
        let epoch = open(&mut table, first + 2 * n, session);
        let name = Name::lock(&format!("workers/{n:06}")).unwrap();
        acquire(&mut table, first + 2 * n + 1, session, epoch, &name);
    }
    let after = bytes_in_use(&mut table, first + 2 * SESSIONS + 2);
    let bytes = (after - before) / SESSIONS as usize;
    println!("{bytes} bytes for a session with its lock");
    assert_eq!(table.counts().held, SESSIONS);
    assert!(
        bytes <= MOST_BYTES,
        "a session with its lock takes {bytes} bytes; {MOST_BYTES} are meant at most"
    );
}
