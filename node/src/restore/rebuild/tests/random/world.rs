//! A cluster as its states alone, to which random things happen; and all tokens that it ever handed out.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_locktable::{
    codec::Digest,
    command::{Acquire, Activate, Attach, DropRange, EndReason, Import, Repeat, RequestId, Seal, Wait},
    ids::{MoveNumber, Token},
    moved::Cursor,
    name::Name,
    outcome::{Applied, Outcome, Rejection},
    txn::{Put, Txn, TxnOp},
};
use holdfast_partitioner::{
    Registry,
    change::{Given, Groups, Moved, Request, change},
};
use rand::{Rng as _, rngs::StdRng};

use super::super::*;
use crate::meta::{changes::NewChange, command::MetaOutcome};

const TERM: Term = Term(1);
const TTL_MS: u64 = 10_000;
/// Names below prefixes that move.
const PREFIXES: [&str; 3] = ["a/", "b/", "c/"];
const NAMES: u32 = 4;

/// A move that is under way, and what is to be done next.
#[derive(Clone, Debug)]
struct Moving {
    number: MoveNumber,
    moved: Moved,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Seal,
    Copy,
    Decide(Digest),
    Activate(Digest),
    Drop,
    Finish,
}

pub(super) struct World {
    random: StdRng,
    now: Found,
    sessions: Vec<SessionId>,
    opened: u64,
    requests: u64,
    moving: Option<Moving>,
    /// The highest token that was ever handed out, by name.
    highest: BTreeMap<Name, Token>,
    /// Ordinary keys that were written before the snapshots that count.
    settings: BTreeSet<Bytes>,
    written: BTreeSet<Bytes>,
}

impl World {
    pub(super) fn new(random: StdRng, now: Found) -> Self {
        Self {
            random,
            now,
            sessions: Vec::new(),
            opened: 0,
            requests: 0,
            moving: None,
            highest: BTreeMap::new(),
            settings: BTreeSet::new(),
            written: BTreeSet::new(),
        }
    }

    /// So many random things happen.
    pub(super) fn live(&mut self, steps: u32) {
        for _ in 0..steps {
            match self.random.random_range(0..20) {
                0..2 => drop(self.open()),
                2 => self.end(),
                3..10 => self.acquire(),
                10..14 => self.release(),
                14..16 => self.set(),
                _ => self.advance(),
            }
            self.note_tokens();
        }
    }

    /// A snapshot of each group, between which more things happen.
    pub(super) fn snapshots(&mut self) -> Found {
        self.settings = self.written.clone();
        let meta = self.now.meta.clone();
        let mut groups = BTreeMap::new();
        for group in numbers(3) {
            groups.insert(group, self.now.groups[&group].clone());
            let pause = self.random.random_range(0..6);
            self.live(pause);
        }
        Found { meta, groups }
    }

    /// The cluster is lost, and this is restored.
    pub(super) fn become_of(&mut self, rebuilt: &Rebuilt) {
        for group in numbers(3) {
            let index = rebuilt.groups[&group].index;
            assert!(index > self.now.groups[&group].index, "epochs of sessions could come again");
            self.now.groups.insert(group, At { state: locks(rebuilt, group.0), index });
        }
        let state = meta(rebuilt);
        assert!(state.changes().under_way().is_none());
        assert!(state.map().unwrap().epoch() > self.map().epoch());
        self.now.meta = At { state, index: rebuilt.groups[&GroupId::META].index };
        (self.moving, self.written) = (None, self.settings.clone());
        self.sessions.clear();
    }

    /// Nobody holds or waits, and each name belongs to one group.
    pub(super) fn check_free(&self, context: &str) {
        for name in names() {
            let owners = self.now.groups.values().filter(|at| at.state.holds_range_of(&name)).count();
            assert_eq!(owners, 1, "{context}: groups that own {name:?}");
            assert!(
                self.now.groups.values().all(|at| at.state.holder(&name).is_none()),
                "{context}: {name:?}"
            );
        }
        assert!(self.now.groups.values().all(|at| at.state.sessions(None, 1).0.is_empty()), "{context}");
    }

    /// What was written before the snapshots is there, once.
    pub(super) fn check_settings(&self, context: &str) {
        for key in &self.settings {
            let have = self.now.groups.values().filter(|at| at.state.key_value(key).is_some()).count();
            assert_eq!(have, 1, "{context}: groups that have the key {key:?}");
        }
    }

    /// Every lock is granted to somebody, with a token above all that were handed out.
    pub(super) fn hold_everything(&mut self, context: &str) {
        let session = self.open();
        for name in names() {
            let before = self.highest.get(&name).copied().unwrap_or_default();
            let token = match self.ask(session, &name).result {
                Ok(Outcome::Granted { token }) => token,
                other => panic!("{context}: {name:?} was answered with {other:?}"),
            };
            assert!(token > before, "{context}: token {token} of {name:?} after {before}");
        }
        self.note_tokens();
    }

    fn map(&self) -> PartitionMap {
        self.now.meta.state.map().unwrap().clone()
    }

    fn apply(&mut self, group: GroupId, command: Command) -> Applied {
        let at = self.now.groups.get_mut(&group).unwrap();
        at.index += 1;
        let position = Position { index: at.index, term: TERM };
        at.state.apply(position, &Proposal { at_ms: at.index, command })
    }

    fn command(&mut self, command: MetaCommand) -> MetaOutcome {
        self.now.meta.index += 1;
        self.now.meta.state.apply(command).result.unwrap()
    }

    /// The locks that are held, with one holder at most, even where a move has brought it to two groups.
    fn note_tokens(&mut self) {
        for name in names() {
            let holders: BTreeSet<_> = self
                .now
                .groups
                .values()
                .filter(|at| at.state.holds_range_of(&name))
                .filter_map(|at| at.state.holder(&name).map(|(session, token, _)| (session, token)))
                .collect();
            // A range that was activated and not dropped yet is in both groups; only the newer one may change.
            let in_two = self.moving.as_ref().is_some_and(|moving| matches!(moving.stage, Stage::Drop));
            assert!(in_two || holders.len() <= 1, "{name:?} is held by several: {holders:?}");
            if let Some((_, token)) = holders.iter().max_by_key(|(_, token)| *token) {
                let highest = self.highest.entry(name).or_default();
                *highest = (*highest).max(*token);
            }
        }
    }

    fn open(&mut self) -> SessionId {
        self.opened += 1;
        let session = SessionId::new(self.opened).unwrap();
        let open = OpenSession { session, ttl_ms: TTL_MS, metadata: Metadata::default() };
        let opened = self.apply(self.map().home_of(session.get()), Command::OpenSession(open));
        assert!(opened.result.is_ok(), "{:?}", opened.result);
        self.sessions.push(session);
        session
    }

    fn end(&mut self) {
        let Some(session) = self.one_session() else { return };
        let home = self.map().home_of(session.get());
        let end = Command::EndSession { session, epoch: None, reason: EndReason::Closed };
        if self.apply(home, end).result.is_ok() {
            self.sessions.retain(|known| *known != session);
        }
    }

    fn one_session(&mut self) -> Option<SessionId> {
        let count = self.sessions.len();
        (count > 0).then(|| self.sessions[self.random.random_range(0..count)])
    }

    fn acquire(&mut self) {
        let Some(session) = self.one_session() else { return };
        let name = self.one_name();
        let answer = self.ask(session, &name).result;
        let fine = matches!(
            answer,
            Ok(Outcome::Granted { .. } | Outcome::Queued { .. })
                | Err(Rejection::AlreadyHeld { .. }
                    | Rejection::AlreadyWaiting
                    | Rejection::Sealed { .. }
                    | Rejection::SessionLost { .. }
                    | Rejection::SessionUnknown { .. }
                    | Rejection::NotOwner)
        );
        assert!(fine, "{answer:?}");
    }

    /// An acquire at the group that the map names, with what its home says of the session.
    fn ask(&mut self, session: SessionId, name: &Name) -> Applied {
        let (map, home) = (self.map(), self.map().home_of(session.get()));
        let group = map.locate(name.internal());
        let at_home = self.now.groups[&home].state.session_epoch(session);
        if group != home && at_home.is_some() {
            self.apply(home, Command::AttachSession { session, group });
        }
        let attach = Attach { home, ttl_ms: TTL_MS, metadata: Metadata::default(), term: TERM };
        self.requests += 1;
        let asked = Acquire {
            name: name.clone(),
            session,
            epoch: at_home.unwrap_or(holdfast_locktable::ids::SessionEpoch(u64::MAX)),
            attach: (group != home && at_home.is_some()).then_some(attach),
            request: RequestId::Text(Arc::from(self.requests.to_string())),
            wait: Wait::Unlimited,
            metadata: Metadata::default(),
            value: Bytes::new(),
            repeat: Repeat::Refuse,
        };
        self.apply(group, Command::Acquire(asked))
    }

    fn release(&mut self) {
        let name = self.one_name();
        let group = self.map().locate(name.internal());
        if let Some((session, token, _)) = self.now.groups[&group].state.holder(&name) {
            self.apply(group, Command::Release { name, session, token });
        }
    }

    fn set(&mut self) {
        let name = self.one_name();
        let key = Bytes::from(format!("{}/setting", name.text()));
        let group = self.map().locate(name.internal());
        let put = TxnOp::Put(Put { key: key.clone(), value: Bytes::new(), lease: None });
        let txn = Txn { compare: vec![], success: vec![put], failure: vec![] };
        if self.apply(group, Command::Txn(txn)).result.is_ok() {
            self.written.insert(key);
        }
    }

    fn one_name(&mut self) -> Name {
        let all: Vec<Name> = names().collect();
        all[self.random.random_range(0..all.len())].clone()
    }

    /// The next step of the move under way, or a new one.
    fn advance(&mut self) {
        let Some(Moving { number, moved, stage }) = self.moving.take() else { return self.begin() };
        let next = match stage {
            Stage::Seal => {
                let seal = Seal { move_number: number, range: moved.range.clone(), term: TERM, left: vec![] };
                self.apply(moved.from, Command::Seal(seal)).result.unwrap();
                Stage::Copy
            }
            Stage::Copy => Stage::Decide(self.copy(number, &moved)),
            Stage::Decide(digest) => {
                self.command(MetaCommand::Decide { move_number: number, digest });
                Stage::Activate(digest)
            }
            Stage::Activate(digest) => {
                let (map_epoch, ranges) = (self.map().epoch(), self.map().ranges_of(moved.to));
                let activate = Activate { move_number: number, digest, map_epoch, ranges };
                self.apply(moved.to, Command::Activate(activate)).result.unwrap();
                Stage::Drop
            }
            Stage::Drop => {
                let (map_epoch, ranges) = (self.map().epoch(), self.map().ranges_of(moved.from));
                let dropped = DropRange { move_number: number, map_epoch, ranges };
                self.apply(moved.from, Command::Drop(dropped)).result.unwrap();
                Stage::Finish
            }
            Stage::Finish => {
                self.command(MetaCommand::FinishMove { move_number: number, at_ms: 1 });
                return self.reserve();
            }
        };
        self.moving = Some(Moving { number, moved, stage: next });
    }

    fn copy(&mut self, move_number: MoveNumber, moved: &Moved) -> Digest {
        let source = &self.now.groups[&moved.from].state;
        let part = source.export(move_number, &Cursor::Start, usize::MAX).unwrap();
        let range = moved.range.clone();
        let import = Import { move_number, attempt: 1, range, part: 0, moved: part.moved, last: part.last };
        match self.apply(moved.to, Command::Import(import)).result {
            Ok(Outcome::Imported { complete: Some(digest), .. }) => digest,
            other => panic!("an import was answered with {other:?}"),
        }
    }

    fn begin(&mut self) {
        let prefix = PREFIXES[self.random.random_range(0..PREFIXES.len())].to_owned();
        let to = GroupId(self.random.random_range(1..=3));
        let (map, request) = (self.map(), Request::Move { prefix, to });
        let groups = Groups { usable: numbers(3).into_iter().collect(), ..Groups::default() };
        let registry = Registry::built_in();
        let given = Given { map: &map, groups: &groups, registry: &registry, names: &[] };
        let Ok(change) = change(&given, &request) else { return };
        let (actor, reason) = ("a".to_owned(), "b".to_owned());
        self.command(MetaCommand::BeginChange(NewChange { request, change, actor, reason, at_ms: 1 }));
        self.reserve();
    }

    /// Gives the next step of the change under way its number.
    fn reserve(&mut self) {
        let Some(here) = self.now.meta.state.changes().under_way().cloned() else { return };
        let (change, step) = (here.number, here.done);
        match here.step().and_then(|step| step.moved.clone()) {
            None => {
                self.command(MetaCommand::TakeStep { change, step, at_ms: 1 });
                self.reserve();
            }
            Some(moved) => {
                let MetaOutcome::Reserved { move_number } =
                    self.command(MetaCommand::Reserve { change, step })
                else {
                    panic!("no number for a move")
                };
                self.moving = Some(Moving { number: move_number, moved, stage: Stage::Seal });
            }
        }
    }
}

/// All locks.
fn names() -> impl Iterator<Item = Name> {
    PREFIXES.iter().flat_map(|prefix| (0..NAMES).map(move |n| Name::lock(&format!("{prefix}{n}")).unwrap()))
}
