//! Checks that look at the log: each is shown an entry that breaks its promise.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_history::End;
use holdfast_locktable::{
    command::{Acquire, Command, OpenSession, Own, Proposal, Repeat, RequestId, SessionEndReason, Wait},
    event::{Change, Fact},
    ids::{SessionEpoch, SessionId, Term, Token},
    metadata::Metadata,
    name::Name,
    outcome::{Applied, Outcome},
    table::{LockTable, Position},
};
use holdfast_partitioner::{GroupId, MapEpoch, Range};
use holdfast_sim::{
    check::{
        Findings,
        answers::{Answers, Asked, Telling},
        handover, refusals,
        sessions::Renewals,
        tokens::Tokens,
    },
    coverage::Coverage,
    truth::Step,
};

const HERE: GroupId = GroupId(1);

/// A table and how far its log goes.
struct Log {
    table: LockTable,
    index: u64,
}

/// An entry as checks are shown it.
struct Entry {
    at: Position,
    command: Command,
    applied: Applied,
    unchanged: Option<bool>,
    table: LockTable,
}

impl Entry {
    fn step(&self, now: u64) -> Step<'_> {
        let (at, unchanged) = (self.at, self.unchanged);
        Step {
            now,
            group: HERE,
            at,
            command: &self.command,
            applied: &self.applied,
            unchanged,
            table: &self.table,
        }
    }
}

impl Log {
    fn new() -> Self {
        let mut log = Self { table: LockTable::new(HERE), index: 0 };
        let ranges = vec![Range::everything()];
        log.take(Command::Own(Own { group: HERE, map_epoch: MapEpoch::FIRST, ranges }));
        for number in [1, 2] {
            let open = OpenSession { session: session(number), ttl_ms: 5_000, metadata: Metadata::default() };
            log.take(Command::OpenSession(open));
        }
        log
    }

    fn take(&mut self, command: Command) -> Entry {
        self.index += 1;
        let at = Position { index: self.index, term: Term(1) };
        let before = self.table.clone();
        let applied = self.table.apply(at, &Proposal { at_ms: 0, command: command.clone() });
        let unchanged = Some(before == self.table);
        Entry { at, command, applied, unchanged, table: self.table.clone() }
    }

    fn acquire(&mut self, number: u64, wait: Wait) -> Entry {
        let epoch = self.table.session_epoch(session(number)).unwrap();
        self.take(acquire(number, epoch, wait))
    }

    fn release(&mut self, number: u64, token: Token) -> Entry {
        self.take(Command::Release { name: name(), session: session(number), token })
    }
}

fn session(number: u64) -> SessionId {
    SessionId::new(number).unwrap()
}

fn name() -> Name {
    Name::lock("l").unwrap()
}

fn acquire(number: u64, epoch: SessionEpoch, wait: Wait) -> Command {
    Command::Acquire(Acquire {
        name: name(),
        session: session(number),
        epoch,
        attach: None,
        request: RequestId::Sequence { sequence: 1, lowest: 1 },
        wait,
        metadata: Metadata::default(),
        value: Bytes::new(),
        repeat: Repeat::Refuse,
    })
}

fn token_of(entry: &Entry) -> Token {
    let Ok(Outcome::Granted { token }) = entry.applied.result else { panic!("{:?}", entry.applied) };
    token
}

fn found(judge: impl FnOnce(&Findings)) -> usize {
    let findings = Findings::default();
    judge(&findings);
    findings.all().len()
}

fn is_grant(change: &Change) -> bool {
    matches!(change, Change::Grant { .. })
}

#[test]
fn a_hand_over_that_grants_nobody_or_two_is_found() {
    let mut log = Log::new();
    let token = token_of(&log.acquire(1, Wait::Unlimited));
    log.acquire(2, Wait::Unlimited);
    let right = log.release(1, token);
    assert_eq!(found(|findings| handover::judge(&right.step(1), findings)), 0);

    let mut nobody = log.acquire(2, Wait::Unlimited);
    nobody.applied = right.applied.clone();
    nobody.applied.events.retain(|event| !is_grant(&event.change));
    assert_eq!(found(|findings| handover::judge(&nobody.step(1), findings)), 1);

    let mut twice = nobody;
    twice.applied = right.applied.clone();
    let grant = twice.applied.events.iter().find(|event| is_grant(&event.change)).cloned().unwrap();
    twice.applied.events.push(grant);
    assert_eq!(found(|findings| handover::judge(&twice.step(1), findings)), 1);
}

#[test]
fn a_token_that_does_not_grow_is_found() {
    let (mut log, mut tokens) = (Log::new(), Tokens::default());
    let first = log.acquire(1, Wait::Unlimited);
    assert_eq!(found(|findings| tokens.judge(&first.step(1), findings)), 0);
    assert_eq!(found(|findings| tokens.judge(&first.step(2), findings)), 1);
}

#[test]
fn a_refusal_that_changes_something_is_found() {
    let mut log = Log::new();
    log.acquire(1, Wait::Unlimited);
    let mut busy = log.acquire(2, Wait::Try);
    assert!(busy.applied.result.is_err());
    assert_eq!(found(|findings| refusals::judge(&busy.step(1), findings)), 0);
    busy.unchanged = Some(false);
    assert_eq!(found(|findings| refusals::judge(&busy.step(1), findings)), 1);
}

#[test]
fn a_session_that_is_expired_before_its_time_is_found() {
    let (mut log, renewals) = (Log::new(), Renewals::default());
    let mut end = log.acquire(1, Wait::Unlimited);
    let (session, epoch, reason) = (session(1), SessionEpoch(2), SessionEndReason::Expired);
    end.applied.facts = vec![Fact::SessionEnded { session, epoch, reason }];
    renewals.renewed(session, HERE, 5_000);
    assert_eq!(found(|findings| renewals.judge(&end.step(5_001), findings)), 0);
    assert_eq!(found(|findings| renewals.judge(&end.step(4_900), findings)), 1);
    let reason = SessionEndReason::Closed;
    end.applied.facts = vec![Fact::SessionEnded { session, epoch, reason }];
    assert_eq!(found(|findings| renewals.judge(&end.step(4_900), findings)), 0);
}

#[test]
fn an_acquire_that_is_executed_after_its_end_was_told_is_found() {
    let mut log = Log::new();
    let telling = Telling::default();
    let mut answers = Answers::new(telling.clone());
    let asked = Asked { session: session(1), name: name(), sequence: 1 };
    telling.told(10, asked, End::Busy);
    answers.hear(&BTreeMap::from([(HERE, log.index)]));
    let late = log.acquire(1, Wait::Try);
    assert_eq!(found(|findings| answers.judge(&late.step(20), findings)), 1);
}

#[test]
fn a_grant_that_the_log_does_not_know_is_found() {
    let mut log = Log::new();
    let telling = Telling::default();
    let mut answers = Answers::new(telling.clone());
    let granted = log.acquire(1, Wait::Unlimited);
    assert_eq!(found(|findings| answers.judge(&granted.step(5), findings)), 0);
    let asked = Asked { session: session(1), name: name(), sequence: 1 };
    telling.told(10, asked.clone(), End::Granted(token_of(&granted).0));
    answers.hear(&BTreeMap::from([(HERE, log.index)]));
    assert_eq!(found(|findings| answers.finish(30, true, findings)), 0);
    telling.told(10, asked, End::Granted(token_of(&granted).0 + 1));
    answers.hear(&BTreeMap::from([(HERE, log.index)]));
    assert_eq!(found(|findings| answers.finish(30, true, findings)), 1);
}

#[test]
fn commands_and_answers_are_counted_by_their_names() {
    let (mut log, mut coverage) = (Log::new(), Coverage::default());
    for entry in [log.acquire(1, Wait::Unlimited), log.acquire(2, Wait::Try)] {
        coverage.count(&entry.command, &entry.applied.result);
    }
    assert_eq!(coverage.lines()[0], "acquire: !Busy 1, Granted 1");
}
