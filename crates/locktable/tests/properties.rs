//! Laws under random histories, against a naive model. `HOLDFAST_SOAK=1` runs fifty times as many.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod laws;
mod model;
mod steps;

use std::{collections::BTreeSet, env};

use holdfast_locktable::{
    codec,
    command::{Command, Own, Proposal},
    ids::{Revision, Term},
    invariants,
    outcome::{Applied, Outcome, Rejection},
    table::{LockTable, Position},
    txn::TxnAnswer,
};
use holdfast_partitioner::{MapEpoch, Range};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};

use self::{
    laws::Laws,
    model::Model,
    steps::{HERE, Step, TERM},
};

const CASES: u32 = 2_000;

fn config() -> Config {
    let soak = if env::var_os("HOLDFAST_SOAK").is_some() { 50 } else { 1 };
    Config { cases: CASES * soak, max_shrink_iters: 20_000, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_history_keeps_the_laws_and_answers_as_the_model(history in steps::history()) {
        let mut world = World::new();
        for step in &history {
            world.take(step);
        }
    }
}

/// The laws mean little where the histories do not go: every answer that they can give is given.
#[test]
fn random_histories_reach_every_answer() {
    let mut seen = BTreeSet::new();
    let mut runner = TestRunner::deterministic();
    for _ in 0..600 {
        let history = steps::history().new_tree(&mut runner).unwrap().current();
        let mut world = World::new();
        for step in &history {
            seen.insert(kind(&world.take(step).result));
        }
    }
    let missing: Vec<&&str> = KINDS.iter().filter(|kind| !seen.contains(**kind)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
    let unknown: Vec<&String> = seen.iter().filter(|kind| !KINDS.contains(&kind.as_str())).collect();
    assert!(unknown.is_empty(), "not in the list: {unknown:?}");
}

const KINDS: [&str; 36] = [
    "AlreadyHeld",
    "AlreadyWaiting",
    "Busy",
    "Cancel Cancelled",
    "Cancel Granted false",
    "Cancel Granted true",
    "Cancel None",
    "Changed None",
    "Changed Some",
    "Done",
    "ForceReleased",
    "Granted",
    "InvalidTxn LockKeyLease",
    "InvalidTxn UnknownLease",
    "NotHolder",
    "OutOfBounds Ttl",
    "Proclaimed",
    "Queued",
    "Released false",
    "Released true",
    "SessionAttached",
    "SessionEnded",
    "SessionExists",
    "SessionLost",
    "SessionOpened",
    "SessionUnknown",
    "SessionsExpired",
    "StaleRequest None",
    "StaleRequest Some Cancelled",
    "StaleRequest Some Released",
    "StaleRequest Some Removed",
    "StaleRequest Some SessionEnded",
    "StaleRequest Some TimedOut",
    "StaleTerm",
    "Txn TxnOutcome false",
    "Txn TxnOutcome true",
];

/// What kind of answer it is, without numbers.
fn kind(answer: &Result<Outcome, Rejection>) -> String {
    let text = match answer {
        Ok(outcome) => format!("{outcome:?}"),
        Err(rejection) => format!("{rejection:?}"),
    };
    let words = text.split(|c: char| !c.is_ascii_alphabetic() && c != '_');
    words
        .filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()) || ["true", "false"].contains(word))
        .filter(|word| !["Revision", "SessionEpoch", "SessionId", "GroupId", "Metadata"].contains(word))
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A table, its bytes, the model, and the laws.
struct World {
    table: LockTable,
    bytes: Vec<u8>,
    model: Model,
    laws: Laws,
    index: u64,
    /// All acquires that were proposed.
    asked: Vec<Command>,
}

impl World {
    fn new() -> Self {
        let mut table = LockTable::new(HERE);
        let own = Own { group: HERE, map_epoch: MapEpoch::FIRST, ranges: vec![Range::everything()] };
        let proposal = Proposal { at_ms: 0, command: Command::Own(own) };
        table.apply(Position { index: 1, term: Term(1) }, &proposal).result.unwrap();
        let bytes = table.encode();
        Self { table, bytes, model: Model::new(HERE), laws: Laws::default(), index: 1, asked: Vec::new() }
    }

    /// Applies a step to the table and to a twin read from its snapshot, and looks at what came of it.
    fn take(&mut self, step: &Step) -> Applied {
        self.index += 1;
        let proposal = Proposal { at_ms: self.index, command: step.command(&self.table, &self.asked) };
        if let Command::Acquire(_) = &proposal.command {
            self.asked.push(proposal.command.clone());
        }
        let at = Position { index: self.index, term: TERM };
        let mut twin = LockTable::decode(&self.bytes).unwrap();

        let applied = self.table.apply(at, &proposal);
        let after = self.table.encode();
        let told = || format!("{:?}\n-> {:?}", proposal.command, applied.result);
        assert_eq!(codec::decode_proposal(&codec::encode_proposal(&proposal)).as_ref(), Ok(&proposal));
        assert_eq!(twin.apply(at, &proposal), applied, "a snapshot changes nothing: {}", told());
        assert!(twin == self.table && twin.encode() == after, "a snapshot changes nothing: {}", told());
        assert!(applied.result.is_ok() || after == self.bytes, "refused, but changed: {}", told());
        if let Err(broken) = invariants::check(&self.table) {
            panic!("{broken}: {}", told());
        }
        self.bytes = after;
        self.laws.see(&proposal.command, &applied);
        self.compare(at, &proposal.command, &applied);
        applied
    }

    fn compare(&mut self, at: Position, command: &Command, applied: &Applied) {
        let expected = self.model.answer(at.index, at.term, command);
        assert_eq!(bare(&applied.result), bare(&expected), "{command:?}");
        assert_eq!(self.table.revision(), self.model.revision(), "{command:?}");
        for name in 0..4 {
            let name = steps::lock(name);
            let queue = self.table.queue(&name).map(|queue| queue.entries).unwrap_or_default();
            let queue: Vec<_> = queue.iter().map(|entry| (entry.session, entry.revision)).collect();
            assert_eq!(queue, self.model.queue(&name), "{command:?}");
        }
        let counts = self.table.counts();
        assert_eq!(counts.keys, self.model.keys() as u64);
        let queues: Vec<usize> = (0..4).map(|n| self.model.queue(&steps::lock(n)).len()).collect();
        assert_eq!(counts.held, queues.iter().filter(|n| **n > 0).count() as u64);
        assert_eq!(counts.contended, queues.iter().filter(|n| **n > 1).count() as u64);
        assert_eq!(counts.longest_queue, queues.iter().max().unwrap().saturating_sub(1) as u64);
        assert_eq!(self.table.waits().count() as u64, counts.waiting);
        assert!(self.table.oldest_revision() <= Revision(self.table.revision().0 + 1));
    }
}

/// An answer without the keys that a transaction read, which the model does not keep.
fn bare(answer: &Result<Outcome, Rejection>) -> impl PartialEq + std::fmt::Debug {
    let mut answer = answer.clone();
    if let Ok(Outcome::Txn(txn)) = &mut answer {
        for answer in &mut txn.answers {
            match answer {
                TxnAnswer::Put { previous } => *previous = None,
                TxnAnswer::Delete { previous } => previous.clear(),
                TxnAnswer::Range { .. } | TxnAnswer::Txn(_) => {}
            }
        }
    }
    answer
}
