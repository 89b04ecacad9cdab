//! Laws of claims under random histories: a partition changes hands only when its owner has given it back, left or ended, and
//! then with a higher token; nothing else is ever seen. `HOLDFAST_SOAK=1` runs fifty times as many.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{collections::BTreeMap, env};

use holdfast_locktable::{
    assign::Owner,
    codec,
    command::{
        AckRevoked, Attach, Command, EndReason, JoinClaim, LearnedEnd, OpenSession, Own, Proposal,
        SessionEndReason,
    },
    event::Fact,
    ids::{Revision, SessionEpoch, SessionId, Term, Token},
    invariants,
    metadata::Metadata,
    name::Name,
    outcome::{Bound, Outcome, Rejection},
    table::{LockTable, Position},
};
use holdfast_partitioner::{GroupId, MapEpoch, Range};
use proptest::{prelude::*, test_runner::Config};

const TERM: Term = Term(1);
const NAMES: u8 = 2;
const PARTITIONS: u32 = 7;

fn config() -> Config {
    let soak = if env::var_os("HOLDFAST_SOAK").is_some() { 50 } else { 1 };
    Config { cases: 600 * soak, max_shrink_iters: 20_000, failure_persistence: None, ..Config::default() }
}

/// Sessions 1 to 3 have their home here, 4 and 5 elsewhere.
#[derive(Clone, Debug)]
enum Step {
    Open {
        session: u8,
    },
    Join {
        session: u8,
        name: u8,
        weight: u32,
        other: bool,
    },
    Leave {
        session: u8,
        name: u8,
    },
    Drain {
        session: u8,
        name: u8,
    },
    /// A member gives back what is revoked: all, or every second.
    GiveBack {
        session: u8,
        name: u8,
        half: bool,
        wrong: bool,
    },
    Close {
        session: u8,
    },
    Expire {
        session: u8,
    },
    Learn {
        session: u8,
    },
    /// A command of before comes again.
    Repeat {
        back: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let who = || (1..=5_u8, 0..NAMES);
    prop_oneof![
        4 => (1..=5_u8).prop_map(|session| Step::Open { session }),
        12 => (who(), prop_oneof![3 => Just(1_u32), 1 => 0..5_u32], prop::bool::weighted(0.05))
            .prop_map(|((session, name), weight, other)| Step::Join { session, name, weight, other }),
        3 => who().prop_map(|(session, name)| Step::Leave { session, name }),
        2 => who().prop_map(|(session, name)| Step::Drain { session, name }),
        14 => (who(), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|((session, name), half, wrong)| Step::GiveBack { session, name, half, wrong }),
        1 => (1..=5_u8).prop_map(|session| Step::Close { session }),
        2 => (1..=5_u8).prop_map(|session| Step::Expire { session }),
        1 => (4..=5_u8).prop_map(|session| Step::Learn { session }),
        3 => (0..6_u8).prop_map(|back| Step::Repeat { back }),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_history_keeps_the_laws(history in prop::collection::vec(step(), 1..=80)) {
        let mut world = World::new();
        for step in &history {
            world.take(step);
        }
    }
}

/// The laws mean little where the histories do not go.
#[test]
fn random_histories_reach_every_answer() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = BTreeMap::new();
    for _ in 0..200 {
        let history = prop::collection::vec(step(), 1..=80);
        let history = proptest::strategy::Strategy::new_tree(&history, &mut runner).unwrap();
        let mut world = World::new();
        for step in &proptest::strategy::ValueTree::current(&history) {
            *seen.entry(world.take(step)).or_insert(0) += 1;
        }
    }
    let wanted = [
        "Done",
        "ClaimLeft true",
        "ClaimLeft false",
        "ClaimPartitions",
        "NotMember",
        "SessionLost",
        "OutOfBounds",
        "given",
        "revoked",
        "gave back",
        "drained",
    ];
    let missing: Vec<&&str> =
        wanted.iter().filter(|kind| !seen.keys().any(|seen| seen.contains(**kind))).collect();
    assert!(missing.is_empty(), "never seen: {missing:?} in {seen:?}");
}

type Owners = Vec<Option<Owner>>;

struct World {
    table: LockTable,
    index: u64,
    said: Vec<Command>,
    /// The highest token of each partition, for ever.
    highest: BTreeMap<(Name, usize), Token>,
    /// When each member was told last that it should look.
    told: BTreeMap<(Name, SessionId), Revision>,
}

impl World {
    fn new() -> Self {
        let mut table = LockTable::new(GroupId(1));
        let own = Own { group: GroupId(1), map_epoch: MapEpoch::FIRST, ranges: vec![Range::everything()] };
        let proposal = Proposal { at_ms: 0, command: Command::Own(own) };
        table.apply(Position { index: 1, term: TERM }, &proposal).result.unwrap();
        Self { table, index: 1, said: Vec::new(), highest: BTreeMap::new(), told: BTreeMap::new() }
    }

    fn command(&self, step: &Step) -> Command {
        match step {
            Step::Open { session } => {
                let (session, metadata) = (id(*session), Metadata::default());
                Command::OpenSession(OpenSession { session, ttl_ms: 10_000, metadata })
            }
            Step::Join { session, name, weight, other } => Command::JoinClaim(JoinClaim {
                name: claim(*name),
                session: id(*session),
                epoch: self.epoch(*session),
                attach: (*session > 3).then(|| Attach {
                    home: GroupId(2),
                    ttl_ms: 10_000,
                    metadata: Metadata::default(),
                    term: TERM,
                }),
                partitions: if *other { 3 } else { PARTITIONS },
                weight: *weight,
                metadata: Metadata::default(),
            }),
            Step::Leave { session, name } => {
                let epoch = self.epoch(*session);
                Command::LeaveClaim { name: claim(*name), session: id(*session), epoch }
            }
            Step::Drain { session, name } => {
                Command::DrainClaim { name: claim(*name), session: id(*session) }
            }
            Step::GiveBack { session, name, half, wrong } => {
                let (name, session, epoch) = (claim(*name), id(*session), self.epoch(*session));
                let stakes = self.table.membership(&name, session).map(|m| m.stakes).unwrap_or_default();
                let revoked = stakes.iter().filter(|stake| stake.revoking != *wrong);
                let revoked = revoked.map(|stake| (stake.partition, stake.token));
                let partitions = revoked.step_by(1 + usize::from(*half)).collect();
                Command::AckRevoked(AckRevoked { name, session, epoch, partitions })
            }
            Step::Close { session } => {
                Command::EndSession { session: id(*session), epoch: None, reason: EndReason::Closed }
            }
            Step::Expire { session } => {
                Command::ExpireSessions { sessions: vec![(id(*session), self.epoch(*session))], term: TERM }
            }
            Step::Learn { session } => Command::LearnEnds {
                ends: vec![LearnedEnd {
                    session: id(*session),
                    epoch: self.epoch(*session),
                    reason: SessionEndReason::Closed,
                }],
            },
            Step::Repeat { back } => match self.said.iter().rev().nth(usize::from(*back)) {
                Some(said) => said.clone(),
                None => Command::Compact { keep_from: Revision(0) },
            },
        }
    }

    fn epoch(&self, session: u8) -> SessionEpoch {
        self.table.session_epoch(id(session)).unwrap_or(SessionEpoch(2))
    }

    fn owners(&self, name: &Name) -> Owners {
        self.table.claim(name).map(|claim| claim.owners).unwrap_or_default()
    }

    /// Applies a step to the table and to a twin read from its snapshot. Answers what was seen, in words.
    fn take(&mut self, step: &Step) -> String {
        self.index += 1;
        let proposal = Proposal { at_ms: self.index, command: self.command(step) };
        assert_eq!(codec::decode_proposal(&codec::encode_proposal(&proposal)).as_ref(), Ok(&proposal));
        self.said.push(proposal.command.clone());
        let names: Vec<Name> = (0..NAMES).map(claim).collect();
        let before: Vec<Owners> = names.iter().map(|name| self.owners(name)).collect();
        let (bytes, revision) = (self.table.encode(), self.table.revision());
        let mut twin = LockTable::decode(&bytes).unwrap();
        let at = Position { index: self.index, term: TERM };

        let applied = self.table.apply(at, &proposal);
        assert_eq!(twin.apply(at, &proposal), applied, "a snapshot changes nothing: {proposal:?}");
        assert!(twin == self.table, "a snapshot changes nothing: {proposal:?}");
        assert!(applied.result.is_ok() || self.table.encode() == bytes, "refused, but changed: {proposal:?}");
        invariants::check(&self.table).unwrap_or_else(|broken| panic!("{broken}: {proposal:?}"));
        let after: Vec<Owners> = names.iter().map(|name| self.owners(name)).collect();
        let looked: Vec<(Name, SessionId)> = applied.facts.iter().filter_map(looks).collect();
        let raised = u64::from(!looked.is_empty());
        assert_eq!(
            self.table.revision().0,
            revision.0 + raised,
            "one revision per entry that changes a claim"
        );
        let mut seen = words(&applied.result);
        for ((name, before), after) in names.iter().zip(&before).zip(&after) {
            self.compare(name, before, after, &proposal.command, &looked, &mut seen);
        }
        self.views(&looked);
        seen
    }

    /// What may become of each partition.
    fn compare(
        &mut self,
        name: &Name,
        before: &Owners,
        after: &Owners,
        command: &Command,
        looked: &[(Name, SessionId)],
        seen: &mut String,
    ) {
        let none = vec![None; before.len().max(after.len())];
        let before = if before.is_empty() { &none } else { before };
        let after = if after.is_empty() { &none } else { after };
        for (at, (was, is)) in before.iter().zip(after).enumerate() {
            if was == is {
                continue;
            }
            for owner in [was, is].into_iter().flatten() {
                assert!(looked.contains(&(name.clone(), owner.session)), "{:?} was not told", owner.session);
            }
            let stays =
                was.zip(*is).is_some_and(|(was, is)| (was.session, was.token) == (is.session, is.token));
            if stays {
                let (was, is) = (was.unwrap(), is.unwrap());
                assert!(!was.revoking && is.revoking, "a revocation is not taken back");
                *seen += " revoked";
                continue;
            }
            if let Some(was) = was {
                let gave = gave_back(command, name, at, was);
                let gone = !self.table.is_member(name, was.session) && !gave;
                assert!(gave || gone, "taken from one that uses it: {was:?} by {command:?}");
                *seen += if gave { " gave back" } else { " gone" };
                if gave && !self.table.is_member(name, was.session) {
                    *seen += " drained";
                }
            }
            if let Some(is) = is {
                let highest = self.highest.insert((name.clone(), at), is.token);
                assert!(highest.is_none_or(|highest| highest < is.token), "tokens of a partition only grow");
                assert_eq!(is.token, self.table.revision());
                *seen += " given";
            }
        }
    }

    /// A member's view has a higher revision whenever it is told to look, and only then.
    fn views(&mut self, looked: &[(Name, SessionId)]) {
        for name in (0..NAMES).map(claim) {
            for session in (1..=5).map(id) {
                let view = self.table.membership(&name, session);
                let revision = view.as_ref().map(|view| view.revision);
                assert_eq!(revision, self.table.membership_revision(&name, session));
                let key = (name.clone(), session);
                let before = self.told.get(&key).copied();
                match revision {
                    Some(now) => {
                        assert_eq!(looked.contains(&key), before != Some(now), "{key:?}");
                        self.told.insert(key, now);
                    }
                    None => assert_eq!(
                        self.told.remove(&key).is_some(),
                        before.is_some() && looked.contains(&key)
                    ),
                }
            }
        }
    }
}

fn looks(fact: &Fact) -> Option<(Name, SessionId)> {
    match fact {
        Fact::ClaimChanged { name, session } => Some((name.clone(), *session)),
        _ => None,
    }
}

fn gave_back(command: &Command, of: &Name, at: usize, was: &Owner) -> bool {
    match command {
        Command::AckRevoked(AckRevoked { name, session, partitions, .. }) => {
            was.revoking
                && name == of
                && *session == was.session
                && partitions.contains(&(u32::try_from(at).unwrap(), was.token))
        }
        _ => false,
    }
}

fn words(result: &Result<Outcome, Rejection>) -> String {
    match result {
        Ok(Outcome::Done) => "Done".into(),
        Ok(Outcome::ClaimLeft { left }) => format!("ClaimLeft {left}"),
        Ok(other) => format!("{other:?}"),
        Err(refused) => format!("{refused:?}"),
    }
}

fn id(session: u8) -> SessionId {
    SessionId::new(u64::from(session)).unwrap()
}

/// Two claims, one of which begins the other's name.
fn claim(name: u8) -> Name {
    Name::claim(if name == 0 { "a" } else { "a/b" }).unwrap()
}

#[test]
fn a_session_takes_part_in_so_many_claims_and_no_more() {
    let mut table = LockTable::new(GroupId(1));
    let mut index = 0;
    let mut apply = |command: Command| {
        index += 1;
        table.apply(Position { index, term: TERM }, &Proposal { at_ms: 1, command }).result
    };
    let ranges = vec![Range::everything()];
    apply(Command::Own(Own { group: GroupId(1), map_epoch: MapEpoch::FIRST, ranges })).unwrap();
    let open = OpenSession { session: id(1), ttl_ms: 10_000, metadata: Metadata::default() };
    let Ok(Outcome::SessionOpened { epoch }) = apply(Command::OpenSession(open)) else {
        panic!("not opened")
    };
    let name = |n: u32| Name::claim(&format!("claim-{n}")).unwrap();
    let join = |n| {
        Command::JoinClaim(JoinClaim {
            name: name(n),
            session: id(1),
            epoch,
            attach: None,
            partitions: 1,
            weight: 1,
            metadata: Metadata::default(),
        })
    };
    for n in 0..256 {
        apply(join(n)).unwrap();
    }
    assert_eq!(apply(join(256)), Err(Rejection::OutOfBounds(Bound::Claims)));
    assert_eq!(apply(join(7)), Ok(Outcome::Done), "it takes part in this one");
    apply(Command::LeaveClaim { name: name(0), session: id(1), epoch }).unwrap();
    apply(join(256)).unwrap();
}
