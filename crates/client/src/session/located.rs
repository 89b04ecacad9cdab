//! Finding holds again that may have moved to another group: what is asked, and what the answer does. Part of
//! [`super::core`].
//!
//! A hold that is looked for lives by what its last place has acknowledged, until it is found or its deadline has passed.

use holdfast_proto::v1::{self, place::State, session_request::Body};

use super::{
    core::{Core, hold_message},
    hold::Standing,
    lease::Place,
    search::BATCH,
};
use crate::{clock::Moment, state::LossReason};

impl Core {
    /// Whether holds are to be asked for now.
    pub(super) fn may_locate(&self, now: Moment) -> bool {
        self.search.may_ask(now) && self.ledger.any_astray()
    }

    /// Asks for the next holds that may stand elsewhere.
    pub(super) fn locate_message(&mut self, now: Moment) -> v1::SessionRequest {
        let mut numbers = self.ledger.astray_after(self.search.asked_to, BATCH);
        if numbers.is_empty() {
            numbers = self.ledger.astray_after(0, BATCH);
        }
        let holds = numbers.iter().filter_map(|number| self.ledger.hold(*number)).map(hold_message).collect();
        let sequence = self.sequence();
        self.search.asked(sequence, numbers, now);
        self.request(sequence, Body::Locate(v1::Locate { holds }))
    }

    pub(super) fn on_located(&mut self, sequence: u64, located: v1::Located, now: Moment) {
        let Some(holds) = self.search.answered(sequence) else { return };
        for (hold, place) in holds.into_iter().zip(located.places) {
            match place.state() {
                State::Stands => {
                    self.ledger.located(hold, Place { group: place.group, epoch: place.epoch }, now)
                }
                State::Ended => self.found_ended(hold, place.what),
                State::Unknown | State::Unspecified => {}
            }
        }
        if self.ledger.astray_after(self.search.asked_to, 1).is_empty() {
            self.search.pause(now);
        }
        // What has been found has the time that it had when it moved: its new group is asked for more at once.
        self.pulse.want();
        self.deliver_covered(now);
    }

    fn found_ended(&mut self, hold: u64, what: String) {
        // Our own release is under way: its answer tells more.
        let releasing = self.ledger.hold(hold).is_some_and(|hold| hold.standing == Standing::Releasing);
        if releasing && matches!(what.as_str(), "released" | "") {
            return;
        }
        let reason = if what.is_empty() { LossReason::NotHolder } else { LossReason::Ended(what) };
        self.ledger.hold_lost(hold, reason);
    }
}
