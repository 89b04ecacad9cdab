//! The law of moves: nobody can tell that a range was moved. Under random histories with moves there and back at random
//! moments, every command is answered as by a table that never moved, with the same tokens and the same events.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, reason = "only some steps are taken here")]
mod steps;

use std::env;

use holdfast_locktable::{
    codec::{self, Digest},
    command::{
        AckRevoked, Activate, Attach, Command, Contact, DropRange, Import, JoinClaim, OpenSession, Own,
        Proposal, Seal,
    },
    ids::{MoveNumber, SessionId},
    invariants,
    metadata::Metadata,
    moved::{Cursor, Export},
    name::Name,
    outcome::{Applied, Outcome, Rejection},
    table::{LockTable, Position},
};
use holdfast_partitioner::{GroupId, MapEpoch, Range};
use proptest::{prelude::*, test_runner::Config};

use self::steps::{HERE, Step, TERM};

const OTHER: GroupId = GroupId(3);

fn config() -> Config {
    let soak = if env::var_os("HOLDFAST_SOAK").is_some() { 50 } else { 1 };
    Config {
        cases: 200 * soak,
        max_shrink_iters: 20_000,
        max_local_rejects: u32::MAX,
        failure_persistence: None,
        ..Config::default()
    }
}

/// A step of the history, or a move in parts of so many bytes, with a step that comes while it is under way.
#[derive(Clone, Debug)]
enum Event {
    Step(Ask),
    Move { bytes: usize, meanwhile: Ask },
}

/// A step of locks or of claims.
#[derive(Clone, Debug)]
enum Ask {
    Lock(Step),
    Claim { session: u8, name: u8, verb: Verb },
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Join { weight: u32 },
    Leave,
    Drain,
    GiveBack,
}

impl Ask {
    fn command(&self, table: &LockTable, asked: &[Command]) -> Command {
        let (session, name, verb) = match self {
            Self::Lock(step) => return step.command(table, asked),
            Self::Claim { session, name, verb } => (steps::id(*session), claim(*name), *verb),
        };
        let epoch = table.session_epoch(session).unwrap_or(holdfast_locktable::ids::SessionEpoch(2));
        match verb {
            Verb::Join { weight } => Command::JoinClaim(JoinClaim {
                name,
                session,
                epoch,
                attach: None,
                partitions: 5,
                weight,
                metadata: Metadata::default(),
            }),
            Verb::Leave => Command::LeaveClaim { name, session, epoch },
            Verb::Drain => Command::DrainClaim { name, session },
            Verb::GiveBack => {
                let stakes = table.membership(&name, session).map(|view| view.stakes).unwrap_or_default();
                let partitions = stakes.iter().map(|stake| (stake.partition, stake.token)).collect();
                Command::AckRevoked(AckRevoked { name, session, epoch, partitions })
            }
        }
    }
}

/// Claims that are named as some of the locks.
fn claim(name: u8) -> Name {
    Name::claim(if name == 0 { "a" } else { "a/b" }).unwrap()
}

fn ask() -> impl Strategy<Value = Ask> {
    let step = || steps::history().prop_map(|mut steps| steps.remove(0)).prop_filter("of locks", is_of_locks);
    let verb = prop_oneof![
        4 => (1..4_u32).prop_map(|weight| Verb::Join { weight }),
        1 => Just(Verb::Leave),
        1 => Just(Verb::Drain),
        3 => Just(Verb::GiveBack),
    ];
    let claims =
        (1..=3_u8, 0..2_u8, verb).prop_map(|(session, name, verb)| Ask::Claim { session, name, verb });
    prop_oneof![3 => step().prop_map(Ask::Lock), 1 => claims]
}

fn history() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(
        prop_oneof![
            12 => ask().prop_map(Event::Step),
            1 => (1..400_usize, ask()).prop_map(|(bytes, meanwhile)| Event::Move { bytes, meanwhile }),
        ],
        1..=80,
    )
}

/// Sessions live on: what their ends do to a move is told in stories.
fn is_of_locks(step: &Step) -> bool {
    match step {
        Step::Acquire { .. }
        | Step::Cancel { .. }
        | Step::Release { .. }
        | Step::Force { .. }
        | Step::Proclaim { .. }
        | Step::Put { .. }
        | Step::Delete { .. }
        | Step::Repeat { .. } => true,
        Step::Open { .. }
        | Step::End { .. }
        | Step::Expire { .. }
        | Step::Learn { .. }
        | Step::Attach { .. }
        | Step::Ack { .. }
        | Step::Forget { .. }
        | Step::Checkpoint { .. }
        | Step::Compact { .. } => false,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nobody_can_tell_that_a_range_was_moved(history in history()) {
        let mut world = World::new();
        for event in &history {
            match event {
                Event::Step(step) => world.take(step),
                Event::Move { bytes, meanwhile } => world.move_all(*bytes, meanwhile),
            }
        }
    }
}

/// A table that stays, and two between which everything moves.
struct World {
    stays: Group,
    owner: Group,
    other: Group,
    moves: u64,
    asked: Vec<Command>,
}

struct Group {
    table: LockTable,
    index: u64,
}

impl Group {
    fn new(group: GroupId, ranges: Vec<Range>) -> Self {
        let mut new = Self { table: LockTable::new(group), index: 0 };
        new.apply(Command::Own(Own { group, map_epoch: MapEpoch::FIRST, ranges })).result.unwrap();
        new
    }

    fn apply(&mut self, command: Command) -> Applied {
        self.index += 1;
        let proposal = Proposal { at_ms: 1, command };
        let proposal = codec::decode_proposal(&codec::encode_proposal(&proposal)).unwrap();
        let before = self.table.digest();
        let applied = self.table.apply(Position { index: self.index, term: TERM }, &proposal);
        let told = || format!("{:?} -> {:?}", proposal.command, applied.result);
        assert!(applied.result.is_ok() || self.table.digest() == before, "refused, but changed: {}", told());
        invariants::check(&self.table).unwrap_or_else(|broken| panic!("{broken}: {}", told()));
        assert!(
            LockTable::decode(&self.table.encode()).as_ref() == Ok(&self.table),
            "a snapshot: {}",
            told()
        );
        applied
    }
}

impl World {
    fn new() -> Self {
        let mut stays = Group::new(HERE, vec![Range::everything()]);
        let mut owner = Group::new(HERE, vec![Range::everything()]);
        let other = Group::new(OTHER, Vec::new());
        for session in 1..=3 {
            let (session, metadata) = (steps::id(session), Metadata::default());
            let open = Command::OpenSession(OpenSession { session, ttl_ms: 10_000, metadata });
            stays.apply(open.clone()).result.unwrap();
            owner.apply(open).result.unwrap();
        }
        Self { stays, owner, other, moves: 0, asked: Vec::new() }
    }

    fn take(&mut self, step: &Ask) {
        let command = step.command(&self.stays.table, &self.asked);
        if let Command::Acquire(_) = &command {
            self.asked.push(command.clone());
        }
        let moved = self.met(command.clone());
        let expected = self.stays.apply(command.clone());
        let found = self.owner.apply(moved);
        assert_eq!(found.result, expected.result, "{command:?}");
        assert_eq!((found.revision, found.events), (expected.revision, expected.events), "{command:?}");
        self.compare();
    }

    /// The command as a group gets it that has not met the session, which lives: with the word of the session's home.
    fn met(&self, mut command: Command) -> Command {
        match &mut command {
            Command::Acquire(ask) if self.is_new(ask.session) => ask.attach = Some(self.word(ask.session)),
            Command::JoinClaim(join) if self.is_new(join.session) => {
                join.attach = Some(self.word(join.session))
            }
            Command::AttachCancel { attach, cancel, .. } if self.is_new(cancel.session) => {
                *attach = self.word(cancel.session);
            }
            Command::Cancel(cancel) if self.is_new(cancel.session) || self.is_forgotten(cancel.session) => {
                let epoch = self.stays.table.session_epoch(cancel.session);
                let epoch = epoch.unwrap_or(holdfast_locktable::ids::SessionEpoch(2));
                let attach = self.word(cancel.session);
                return Command::AttachCancel { epoch, attach, cancel: cancel.clone() };
            }
            Command::Txn(txn) => {
                let sessions = (1..=5).map(steps::id).filter(|session| self.is_new(*session));
                let contact = |session| {
                    let epoch = self.stays.table.session_epoch(session)?;
                    Some(Contact { session, epoch, attach: self.word(session) })
                };
                return Command::AttachTxn {
                    contacts: sessions.filter_map(contact).collect(),
                    txn: txn.clone(),
                };
            }
            _ => {}
        }
        command
    }

    /// Nothing of a session of which there is nothing to remember goes along; a cancel of it comes with its home's word then.
    fn is_forgotten(&self, session: SessionId) -> bool {
        self.stays.table.remembers(session) && !self.owner.table.remembers(session)
    }

    fn is_new(&self, session: SessionId) -> bool {
        self.stays.table.session(session).is_some() && self.owner.table.session(session).is_none()
    }

    fn word(&self, session: SessionId) -> Attach {
        let home = if session <= steps::id(3) { HERE } else { steps::ELSEWHERE };
        Attach { home, ttl_ms: 10_000, metadata: Metadata::default(), term: TERM }
    }

    fn compare(&self) {
        for name in 0..4 {
            let name = steps::lock(name);
            assert_eq!(self.owner.table.queue(&name), self.stays.table.queue(&name));
            assert_eq!(self.other.table.queue(&name), None);
        }
        for name in (0..2).map(claim) {
            assert_eq!(self.owner.table.claim(&name), self.stays.table.claim(&name));
            for session in (1..=3).map(steps::id) {
                let (here, there) = (&self.owner.table, &self.stays.table);
                assert_eq!(here.membership(&name, session), there.membership(&name, session));
            }
            assert_eq!(self.other.table.claim(&name), None);
        }
    }

    fn move_all(&mut self, bytes: usize, meanwhile: &Ask) {
        self.moves += 1;
        let (move_number, range) = (MoveNumber(self.moves), Range::everything());
        let (goers, _) = self.owner.table.sessions_of_range(&range, None, usize::MAX);
        let with_keys = goers.into_iter().filter(|goer| goer.keys);
        let left = with_keys.map(|goer| (goer.session, goer.epoch, 5_000)).collect();
        let seal = Command::Seal(Seal { move_number, range: range.clone(), term: TERM, left });
        self.owner.apply(seal).result.unwrap();

        let refused = Err(Rejection::Sealed { move_number });
        let digest = self.import(move_number, &range, bytes);
        let command = meanwhile.command(&self.stays.table, &self.asked);
        // A repeat of nothing is of no range.
        if !matches!(command, Command::Compact { .. }) {
            assert_eq!(self.owner.apply(self.met(command.clone())).result, refused, "{command:?}");
            assert_eq!(self.other.apply(command.clone()).result, refused, "{command:?}");
        }

        let (map_epoch, ranges) = (MapEpoch::FIRST, vec![range]);
        let activate = Command::Activate(Activate { move_number, digest, map_epoch, ranges });
        self.other.apply(activate).result.unwrap();
        let dropped = DropRange { move_number, map_epoch, ranges: Vec::new() };
        self.owner.apply(Command::Drop(dropped)).result.unwrap();
        std::mem::swap(&mut self.owner, &mut self.other);
        self.compare();
    }

    fn import(&mut self, move_number: MoveNumber, range: &Range, bytes: usize) -> Digest {
        let (mut cursor, mut digest) = (Cursor::Start, Digest::NOTHING);
        for part in 0.. {
            let Export { moved, after, last } = self.owner.table.export(move_number, &cursor, bytes).unwrap();
            digest = digest.with(&moved);
            let import = Import { move_number, attempt: 1, range: range.clone(), part, moved, last };
            let complete = match self.other.apply(Command::Import(import)).result.unwrap() {
                Outcome::Imported { complete, .. } => complete,
                other => panic!("{other:?}"),
            };
            assert_eq!(complete, last.map(|_| digest));
            if last.is_some() {
                break;
            }
            cursor = after;
        }
        digest
    }
}
