//! P5: an acquire ends once, and the log knows of no other end: what was told as granted was executed and gave that token,
//! and what a client was told the end of is not executed after that.
//!
//! Compares what clients were told with what the log says.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_history::End;
use holdfast_locktable::{
    command::{Command, RequestId},
    ids::{Revision, SessionId},
    name::Name,
    outcome::Outcome,
};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;

use super::Findings;
use crate::truth::Step;

/// One acquire, as the log names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// With which session.
    pub session: SessionId,
    /// For which lock.
    pub name: Name,
    /// Its number within the session.
    pub sequence: u64,
}

#[derive(Debug)]
struct Told {
    asked: Asked,
    end: End,
    at_ms: u64,
}

/// What clients were told lately. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Telling(Arc<Mutex<Vec<Told>>>);

impl Telling {
    /// A client was told how an acquire ended, or has decided it.
    pub fn told(&self, at_ms: u64, asked: Asked, end: End) {
        self.0.lock().push(Told { asked, end, at_ms });
    }
}

/// What is known of one acquire.
#[derive(Debug, Default)]
struct Known {
    /// The create revisions of the keys that it made.
    executed: Vec<Revision>,
    told: Option<(End, u64, BTreeMap<GroupId, u64>)>,
}

/// All acquires of a run.
#[derive(Debug, Default)]
pub struct Answers {
    known: BTreeMap<Asked, Known>,
    telling: Telling,
}

impl Answers {
    /// Compares with what is told here.
    #[must_use]
    pub fn new(telling: Telling) -> Self {
        Self { known: BTreeMap::new(), telling }
    }

    /// Takes in what was told since the last call; `logged` is how far the log of each group reaches on any disk.
    pub fn hear(&mut self, logged: &BTreeMap<GroupId, u64>) {
        for Told { asked, end, at_ms } in std::mem::take(&mut *self.telling.0.lock()) {
            self.known.entry(asked).or_default().told = Some((end, at_ms, logged.clone()));
        }
    }

    /// Judges one entry.
    pub fn judge(&mut self, step: &Step<'_>, findings: &Findings) {
        let Command::Acquire(ask) = step.command else { return };
        let RequestId::Sequence { sequence, .. } = ask.request else { return };
        let revision = match step.applied.result {
            Ok(Outcome::Granted { token }) => token,
            Ok(Outcome::Queued { revision, .. }) => revision,
            Ok(_) | Err(_) => return,
        };
        let asked = Asked { session: ask.session, name: ask.name.clone(), sequence };
        let known = self.known.entry(asked).or_default();
        if !known.executed.contains(&revision) {
            if !known.executed.is_empty() {
                let sentence = format!(
                    "acquire {sequence} of session {} for {:?} was executed twice",
                    ask.session,
                    ask.name.text()
                );
                findings.add("P5", step.now, sentence);
            }
            known.executed.push(revision);
        }
        // A repeat that only finds what stands there writes nothing.
        let executed_now = revision == step.applied.revision && !step.applied.events.is_empty();
        let Some((end, at_ms, logged)) = &known.told else { return };
        let told_before = logged.get(&step.group).is_some_and(|logged| *logged < step.at.index);
        if executed_now && told_before && *end != End::Unknown {
            let sentence = format!(
                "acquire {sequence} of session {} for {:?} was executed at index {} of group {}, after its client was \
                 told {end:?} at {at_ms} ms",
                ask.session,
                ask.name.text(),
                step.at.index,
                step.group
            );
            findings.add("P5", step.now, sentence);
        }
    }

    /// The run is over; `complete` says whether the log is known without a gap.
    pub fn finish(&self, now: u64, complete: bool, findings: &Findings) {
        for (asked, known) in &self.known {
            let Some((End::Granted(token), at_ms, _)) = &known.told else { continue };
            if !known.executed.contains(&Revision(*token)) && (complete || !known.executed.is_empty()) {
                let sentence = format!(
                    "acquire {} of session {} for {:?} was told granted with token {token} at {at_ms} ms, the log says {:?}",
                    asked.sequence,
                    asked.session,
                    asked.name.text(),
                    known.executed
                );
                findings.add("P5", now, sentence);
            }
        }
    }

    /// How many ends were compared with the log.
    #[must_use]
    pub fn compared(&self) -> usize {
        self.known.values().filter(|known| known.told.is_some()).count()
    }
}
