//! Laws that any history must keep, judged from what apply tells: events, facts and outcomes. Knows no rules of
//! commands, only what may never be seen.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_locktable::{
    command::{CancelReason, Command, RequestId},
    event::{Change, Fact, WaitEnd},
    ids::{Revision, SessionEpoch, SessionId, Token},
    name::Name,
    outcome::{Applied, CancelOutcome, Outcome},
};

/// What has been seen so far.
#[derive(Default)]
pub(crate) struct Laws {
    revision: Revision,
    holders: BTreeMap<Name, (SessionId, Token)>,
    /// The highest token ever granted, per name.
    highest: BTreeMap<Name, Token>,
    /// Lock keys that exist, in order of creation.
    line: BTreeMap<Name, BTreeMap<Revision, SessionId>>,
    /// Waits that were told to begin and not to end.
    waiting: BTreeMap<(Name, SessionId), ()>,
    /// Numbered requests that were executed or cancelled, of lives that their homes have not ended.
    used: BTreeSet<(SessionId, SessionEpoch, u64)>,
    /// Sessions whose home is here.
    at_home: BTreeSet<SessionId>,
}

impl Laws {
    /// Looks at one entry.
    pub(crate) fn see(&mut self, command: &Command, applied: &Applied) {
        if applied.result.is_err() {
            assert!(
                applied.events.is_empty() && applied.facts.is_empty(),
                "P7: a refusal has no events and no facts"
            );
        }
        let raised = u64::from(!applied.events.is_empty());
        assert_eq!(
            applied.revision.0,
            self.revision.0 + raised,
            "one revision per entry that changes keys, else none"
        );
        self.revision = applied.revision;
        let held_before = self.holders.clone();
        let mut granted = Vec::new();
        for event in &applied.events {
            assert_eq!(event.revision, applied.revision, "all events of an entry share its revision");
            self.change(&event.change, &held_before, &mut granted);
        }
        self.woken(command, &granted);
        self.facts(applied, &held_before, &granted);
        self.heads_hold();
        self.answer(command, applied);
        self.executed_once(command, applied);
    }

    /// R11: a numbered request makes one key in the life of its session, and none once it was cancelled.
    fn executed_once(&mut self, command: &Command, applied: &Applied) {
        match (command, &applied.result) {
            (Command::OpenSession(open), Ok(_)) => drop(self.at_home.insert(open.session)),
            (Command::LearnEnds { ends }, Ok(_)) => {
                self.used.retain(|(session, epoch, _)| {
                    ends.iter().all(|end| (end.session, end.epoch) != (*session, *epoch))
                });
            }
            (Command::AttachCancel { epoch, cancel, .. }, Ok(Outcome::Cancel(CancelOutcome::None))) => {
                if let (CancelReason::Cancelled, RequestId::Sequence { sequence, .. }) =
                    (cancel.reason, &cancel.request)
                {
                    self.used.insert((cancel.session, *epoch, *sequence));
                }
            }
            (
                Command::Acquire(ask),
                Ok(Outcome::Granted { token: made } | Outcome::Queued { revision: made, .. }),
            ) => {
                let now = *made == applied.revision && !applied.events.is_empty();
                if let (true, RequestId::Sequence { sequence, .. }) = (now, &ask.request) {
                    let new = self.used.insert((ask.session, ask.epoch, *sequence));
                    assert!(new, "R11: request {sequence} of session {} was executed again", ask.session);
                }
            }
            _ => {}
        }
        for fact in &applied.facts {
            if let Fact::SessionEnded { session, .. } = fact
                && self.at_home.remove(session)
            {
                self.used.retain(|(other, ..)| other != session);
            }
        }
    }

    fn change(
        &mut self,
        change: &Change,
        held_before: &BTreeMap<Name, (SessionId, Token)>,
        granted: &mut Vec<(Name, SessionId, Token)>,
    ) {
        match change {
            Change::Put { name: Some(name), lease, create_revision, version, .. } => {
                let line = self.line.entry(name.clone()).or_default();
                let before = line.insert(*create_revision, lease.unwrap());
                assert_eq!(before.is_none(), *version == 1, "only a first put creates");
            }
            Change::Put { name: None, .. } | Change::Delete { name: None, .. } => {}
            Change::Delete { name: Some(name), lease, create_revision, held, .. } => {
                let session = lease.unwrap();
                let gone = self.line.get_mut(name).and_then(|line| line.remove(create_revision));
                assert_eq!(gone, Some(session), "only what exists is deleted");
                let was = held_before.get(name) == Some(&(session, *create_revision));
                assert_eq!(*held, was, "a delete says whether it ended a hold");
                if was {
                    self.holders.remove(name);
                }
            }
            Change::Grant { name, session, token } => {
                assert!(!self.holders.contains_key(name), "P1: {name:?} granted while held");
                let oldest = self.line.get(name).and_then(|line| line.first_key_value());
                assert_eq!(oldest, Some((token, session)), "FIFO: the oldest key is granted");
                let highest = self.highest.insert(name.clone(), *token);
                assert!(highest.is_none_or(|highest| highest < *token), "P2: tokens of {name:?} only grow");
                self.holders.insert(name.clone(), (*session, *token));
                granted.push((name.clone(), *session, *token));
            }
        }
    }

    /// P6: an entry grants each queue at most once, and a release only its own.
    fn woken(&self, command: &Command, granted: &[(Name, SessionId, Token)]) {
        for (at, (name, ..)) in granted.iter().enumerate() {
            assert!(
                granted[at + 1..].iter().all(|(other, ..)| other != name),
                "P6: {name:?} granted twice in one entry"
            );
        }
        if let Command::Release { name, .. } | Command::ForceRelease { name, .. } = command {
            assert!(
                granted.iter().all(|(woken, ..)| woken == name),
                "P6: a release wakes only its own queue"
            );
        }
    }

    /// P5: waits and holds begin and end exactly once, and are told.
    fn facts(
        &mut self,
        applied: &Applied,
        held_before: &BTreeMap<Name, (SessionId, Token)>,
        granted: &[(Name, SessionId, Token)],
    ) {
        let mut ended = 0;
        for fact in &applied.facts {
            match fact {
                Fact::Waiting { name, session, .. } => {
                    let before = self.waiting.insert((name.clone(), *session), ());
                    assert!(before.is_none(), "P5: a wait begins once");
                }
                Fact::WaitEnded { name, session, end, .. } => {
                    let before = self.waiting.remove(&(name.clone(), *session));
                    assert!(before.is_some(), "P5: only a wait that began ends, and once");
                    let token = match end {
                        WaitEnd::Granted { token } => Some((name.clone(), *session, *token)),
                        WaitEnd::Removed(_) => None,
                    };
                    assert!(
                        token.is_none_or(|grant| granted.contains(&grant)),
                        "a waiter is granted by an event"
                    );
                }
                Fact::HoldEnded { name, session, token, .. } => {
                    assert_eq!(held_before.get(name), Some(&(*session, *token)), "P5: only a hold ends");
                    assert_ne!(
                        self.holders.get(name),
                        Some(&(*session, *token)),
                        "P5: an ended hold is over"
                    );
                    ended += 1;
                }
                _ => {}
            }
        }
        let over = held_before.iter().filter(|(name, hold)| self.holders.get(*name) != Some(hold)).count();
        assert_eq!(ended, over, "P5: every end of a hold is told, once");
        let waiting: usize = self.line.values().map(|line| line.len().saturating_sub(1)).sum();
        assert_eq!(self.waiting.len(), waiting, "P5: every key behind a holder waits");
    }

    fn heads_hold(&self) {
        for (name, line) in &self.line {
            let oldest = line.first_key_value().map(|(token, session)| (*session, *token));
            assert_eq!(
                self.holders.get(name).copied(),
                oldest,
                "{name:?}: the oldest key holds, and only it"
            );
        }
    }

    /// What the caller is told is so.
    fn answer(&self, command: &Command, applied: &Applied) {
        let Command::Acquire(ask) = command else { return };
        let holder = self.holders.get(&ask.name).copied();
        match &applied.result {
            Ok(Outcome::Granted { token }) => {
                assert_eq!(holder, Some((ask.session, *token)), "granted means held")
            }
            Ok(Outcome::Queued { revision, ahead }) => {
                let line = &self.line[&ask.name];
                assert_eq!(line.range(..revision).count(), *ahead as usize);
                assert_eq!(line.get(revision), Some(&ask.session));
                assert!(*ahead > 0 && self.waiting.contains_key(&(ask.name.clone(), ask.session)));
            }
            Ok(other) => panic!("an acquire answered {other:?}"),
            Err(_) => {}
        }
    }
}
