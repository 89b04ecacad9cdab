//! P4: no group ends a session by itself before the TTL is over that began when the last keepalive was sent which that
//! group has acknowledged, or, for sessions that came with a range, which the range's source had acknowledged when it was
//! sealed (rule R17).
//!
//! Looks at the very entry that ends a session. That ends do not come too late is I5's, and that none is left out is seen
//! when everything has come to rest.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::{
    command::{Command, SessionEndReason},
    event::Fact,
    ids::{MoveNumber, SessionId},
};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;

use super::Findings;
use crate::truth::Step;

/// So much earlier may a TTL be over by the clock of a leader that runs fast, in milliseconds.
const DRIFT_MS: u64 = 10;

/// Until when sessions live at least.
type Until = BTreeMap<SessionId, u64>;

/// What clients were acknowledged. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Renewals(Arc<Mutex<Acknowledged>>);

#[derive(Debug, Default)]
struct Acknowledged {
    groups: BTreeMap<GroupId, Until>,
    /// What the source of each move had acknowledged when it sealed the range.
    sealed: BTreeMap<MoveNumber, Until>,
}

impl Renewals {
    /// A group has acknowledged a keepalive; the session lives there until this moment at least.
    pub fn renewed(&self, session: SessionId, group: GroupId, until_ms: u64) {
        later(self.0.lock().groups.entry(group).or_default(), session, until_ms);
    }

    /// Judges one entry.
    pub fn judge(&self, step: &Step<'_>, findings: &Findings) {
        let mut known = self.0.lock();
        if let (Command::Seal(seal), Ok(_)) = (step.command, &step.applied.result) {
            let until = known.groups.get(&step.group).cloned().unwrap_or_default();
            known.sealed.entry(seal.move_number).or_insert(until);
        }
        for fact in &step.applied.facts {
            match (fact, step.command) {
                (Fact::SessionArrived { session, .. }, Command::Activate(activate)) => {
                    let sealed = known.sealed.get(&activate.move_number);
                    if let Some(until) = sealed.and_then(|until| until.get(session)).copied() {
                        later(known.groups.entry(step.group).or_default(), *session, until);
                    }
                }
                (Fact::SessionEnded { session, reason: SessionEndReason::Expired, .. }, _) => {
                    let until = known.groups.get(&step.group).and_then(|until| until.get(session)).copied();
                    if let Some(until) = until.filter(|until| step.now + DRIFT_MS < *until) {
                        let sentence = format!(
                            "group {} expired session {session}, which was acknowledged until {until} ms",
                            step.group
                        );
                        findings.add("P4", step.now, sentence);
                    }
                }
                _ => {}
            }
        }
    }
}

fn later(until: &mut Until, session: SessionId, until_ms: u64) {
    let known = until.entry(session).or_default();
    *known = (*known).max(until_ms);
}
