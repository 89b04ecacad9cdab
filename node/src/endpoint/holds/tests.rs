//! What a replica says of holds whose range comes and goes.

use holdfast_locktable::{
    codec::Digest,
    command::{
        Acquire, Activate, Attach, Command, DropRange, Import, OpenSession, Own, Proposal, Repeat, RequestId,
        Seal, Wait,
    },
    ids::{MoveNumber, SessionEpoch, SessionId, Term, Token},
    metadata::Metadata,
    moved::Cursor,
    name::Name,
    outcome::Outcome,
    table::Position,
};
use holdfast_partitioner::{GroupId, Range};

use super::*;

const TERM: Term = Term(1);

fn name() -> Name {
    Name::lock("a").unwrap()
}

fn session() -> SessionId {
    SessionId::new(1).unwrap()
}

struct Table(LockTable, u64);

impl Table {
    fn new(group: u32, ranges: Vec<Range>) -> Self {
        let mut table = Self(LockTable::new(GroupId(group)), 0);
        table.apply(Command::Own(Own { group: GroupId(group), map_epoch: MapEpoch::FIRST, ranges }));
        table
    }

    fn apply(&mut self, command: Command) -> Outcome {
        self.1 += 1;
        let proposal = Proposal { at_ms: 1, command };
        self.0.apply(Position { index: self.1, term: TERM }, &proposal).result.unwrap()
    }

    fn open(&mut self) -> SessionEpoch {
        let open = OpenSession { session: session(), ttl_ms: 10_000, metadata: Metadata::default() };
        match self.apply(Command::OpenSession(open)) {
            Outcome::SessionOpened { epoch } => epoch,
            other => panic!("{other:?}"),
        }
    }

    fn acquire(&mut self, request: u64, (epoch, attach): (SessionEpoch, Option<Attach>)) -> Token {
        let acquire = Acquire {
            name: name(),
            session: session(),
            epoch,
            attach,
            request: RequestId::Sequence { sequence: request, lowest: request },
            wait: Wait::Try,
            metadata: Metadata::default(),
            value: bytes::Bytes::new(),
            repeat: Repeat::Refuse,
        };
        match self.apply(Command::Acquire(acquire)) {
            Outcome::Granted { token } => token,
            other => panic!("{other:?}"),
        }
    }

    fn release(&mut self, token: Token) {
        self.apply(Command::Release { name: name(), session: session(), token });
    }

    fn says(&self, token: Token, epoch: u64) -> Word {
        word_of(&self.0, &Hold { session: session(), name: name(), token }, MapEpoch(epoch))
    }
}

/// Moves everything, and ends at this epoch. Shows the destination before it is activated, and the source before it drops.
fn moved(number: u64, epoch: u64, from: &mut Table, to: &mut Table, look: impl Fn(&Table, &Table)) {
    let (move_number, range) = (MoveNumber(number), Range::everything());
    let (goers, _) = from.0.sessions_of_range(&range, None, usize::MAX);
    let left = goers.iter().map(|goer| (goer.session, goer.epoch, 5_000)).collect();
    from.apply(Command::Seal(Seal { move_number, range: range.clone(), term: TERM, left }));
    let export = from.0.export(move_number, &Cursor::Start, usize::MAX).unwrap();
    let digest = Digest::NOTHING.with(&export.moved);
    let (moved, last) = (export.moved, export.last);
    to.apply(Command::Import(Import { move_number, attempt: 1, range: range.clone(), part: 0, moved, last }));
    look(from, to);
    let (map_epoch, ranges) = (MapEpoch(epoch), vec![range]);
    to.apply(Command::Activate(Activate { move_number, digest, map_epoch, ranges }));
    look(from, to);
    from.apply(Command::Drop(DropRange { move_number, map_epoch, ranges: Vec::new() }));
}

#[test]
fn a_hold_is_followed_where_its_range_is_and_nowhere_else() {
    let (mut source, mut destination) = (Table::new(1, vec![Range::everything()]), Table::new(2, Vec::new()));
    let epoch = source.open();
    let token = source.acquire(1, (epoch, None));
    assert_eq!(source.says(token, 1), Word::Follows);
    assert_eq!(destination.says(token, 1), Word::None);
    moved(1, 2, &mut source, &mut destination, |source, destination| {
        assert_eq!(source.says(token, 1), Word::Follows, "sealed as well");
        let there = if destination.0.ownership_epoch() == MapEpoch(2) { Word::Follows } else { Word::None };
        assert_eq!(destination.says(token, 1), there);
    });
    assert_eq!(source.says(token, 1), Word::None);
    assert_eq!(destination.says(token, 2), Word::Follows);
    destination.release(token);
    assert_eq!(destination.says(token, 2), Word::Ended(Removal::Released));
    assert_eq!(source.says(token, 2), Word::None);
}

#[test]
fn a_replica_from_before_an_earlier_move_says_nothing() {
    let (mut first, mut second) = (Table::new(1, vec![Range::everything()]), Table::new(2, Vec::new()));
    let epoch = first.open();
    // So that its revisions are far ahead of what comes later.
    for request in 1..20 {
        let token = first.acquire(request, (epoch, None));
        first.release(token);
    }
    let lagging = Table(first.0.clone(), first.1);
    moved(1, 2, &mut first, &mut second, |_, _| {});
    let old = second.says(Token::default(), 2);
    assert_eq!(old, Word::Ended(Removal::Deleted));
    let attach = Attach { home: GroupId(1), ttl_ms: 10_000, metadata: Metadata::default(), term: TERM };
    let token = second.acquire(30, (epoch, Some(attach)));
    moved(2, 3, &mut second, &mut first, |_, _| {});
    // The range was here when the replica stood still, and it is here now; in between the hold began elsewhere.
    let low = Token::default();
    assert_eq!(lagging.says(low, 2), Word::None);
    assert_eq!(lagging.says(token, 2), Word::None);
    assert_eq!(first.says(token, 2), Word::Follows);
}
