//! Parts in claims, as a session's books of deadlines have them: one hold each, without a token or a release of its own.
//!
//! The other verbs of claims are calls beside the stream; only what is believed, and for how long, is decided here.

use std::sync::Arc;

use super::{
    core::Core,
    hold::{Hold, Standing},
    lease::Place,
};
use crate::clock::Moment;

impl Core {
    /// A session is about to join a claim. Answers the number of the hold that may come of it.
    pub(crate) fn claim_asked(&mut self, now: Moment) -> u64 {
        let hold = self.sequence();
        self.ledger.acquire_sent(hold, now);
        hold
    }

    /// It has joined. The hold is in the books from now on; it may be used once the group's lease stands.
    pub(crate) fn claim_joined(&mut self, hold: u64, name: &Arc<str>, group: u32, now: Moment) {
        let first_send = self.ledger.asked(hold).unwrap_or(now);
        let part = Hold {
            name: name.clone(),
            election: false,
            claim: true,
            token: 0,
            place: Place { group, epoch: 0 },
            first_send,
            standing: Standing::Held,
            confirmed: false,
            orphan: false,
        };
        self.ledger.granted(hold, part, now);
        let overdue = self.ledger.renewal_overdue(hold, self.pulse.interval(), now);
        if overdue || !self.ledger.covered(hold, now) {
            self.pulse.want();
        }
    }

    /// The part is over, or nothing has come of it.
    pub(crate) fn claim_over(&mut self, hold: u64) {
        self.ledger.hold_released(hold);
        self.ledger.orphan(hold);
    }

    /// No copy of the join is executed any more: until here it may have met a group.
    pub(crate) fn claim_settled(&mut self, hold: u64, now: Moment) {
        self.ledger.acquire_ended(hold, true, now);
    }

    /// Somebody says that the session is over; only a keepalive's answer counts.
    pub(crate) fn claim_in_question(&mut self) {
        self.pulse.want();
    }
}
