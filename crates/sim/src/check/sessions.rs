//! P4: no group ends a session by itself before the TTL is over that began when the last keepalive was sent which that
//! group has acknowledged.
//!
//! Looks at the very entry that ends a session. That ends do not come too late is I5's, and that none is left out is seen
//! when everything has come to rest.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::{command::SessionEndReason, event::Fact, ids::SessionId};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;

use super::Findings;
use crate::truth::Step;

/// So much earlier may a TTL be over by the clock of a leader that runs fast, in milliseconds.
const DRIFT_MS: u64 = 10;

/// What clients were acknowledged. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Renewals(Arc<Mutex<BTreeMap<(SessionId, GroupId), u64>>>);

impl Renewals {
    /// A group has acknowledged a keepalive; the session lives there until this moment at least.
    pub fn renewed(&self, session: SessionId, group: GroupId, until_ms: u64) {
        let mut renewals = self.0.lock();
        let until = renewals.entry((session, group)).or_default();
        *until = (*until).max(until_ms);
    }

    /// Judges one entry.
    pub fn judge(&self, step: &Step<'_>, findings: &Findings) {
        for fact in &step.applied.facts {
            let Fact::SessionEnded { session, reason: SessionEndReason::Expired, .. } = fact else {
                continue;
            };
            let until = self.0.lock().get(&(*session, step.group)).copied();
            if let Some(until) = until.filter(|until| step.now + DRIFT_MS < *until) {
                let sentence = format!(
                    "group {} expired session {session}, which it had acknowledged until {until} ms",
                    step.group
                );
                findings.add("P4", step.now, sentence);
            }
        }
    }
}
