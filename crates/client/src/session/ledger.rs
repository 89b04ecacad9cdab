//! What a session may believe, and until when: deadlines per group, holds, and how safe each is (rules R3, R7).
//!
//! Pure: moments go in, states come out. Knows no connection and no message.
//!
//! A group's lease counts from the *send* time of the last keepalive that this group acknowledged. A group met by an
//! acquire is counted from the first send of that acquire, or, where others may have met it before, from the earliest of
//! those: the lease began when the group met the session, not when this grant was made. For which holds a group's word
//! counts is the business of [`super::lease`].

use std::{collections::BTreeMap, time::Duration};

use super::{
    hold::{Hold, Standing},
    lease::{Leases, Place},
};
use crate::{
    clock::Moment,
    state::{HoldState, LossReason, SessionState},
};

/// Most contacts kept apart; then those that have ended count as one.
const MAX_CONTACTS: usize = 1_024;

/// What one group said to one keepalive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupAnswer {
    Renewed,
    Unknown,
    Lost,
    Unavailable,
}

/// A request that may have made a group meet the session.
#[derive(Clone, Copy, Debug)]
struct Contact {
    first_send: Moment,
    /// When it was certain that it will not meet another group.
    ended: Option<Moment>,
}

/// Deadlines and holds of one session.
#[derive(Debug)]
pub(crate) struct Ledger {
    opened: Moment,
    leases: Leases,
    contacts: BTreeMap<u64, Contact>,
    holds: BTreeMap<u64, Hold>,
    /// Holds whose state has changed since the last look.
    changed: Vec<u64>,
    shown: SessionState,
    end: Option<LossReason>,
}

impl Ledger {
    /// A session whose opening was sent at `opened`.
    pub(crate) fn new(ttl: Duration, opened: Moment) -> Self {
        // The opening itself met a group, the home, that the answer does not name.
        let contacts = BTreeMap::from([(0, Contact { first_send: opened, ended: Some(opened) })]);
        Self {
            opened,
            leases: Leases::new(ttl),
            contacts,
            holds: BTreeMap::new(),
            changed: Vec::new(),
            shown: SessionState::Safe,
            end: None,
        }
    }

    pub(crate) const fn ttl(&self) -> Duration {
        self.leases.ttl()
    }

    /// Why the session is over.
    pub(crate) const fn end(&self) -> Option<&LossReason> {
        self.end.as_ref()
    }

    /// An acquire goes out for the first time.
    pub(crate) fn acquire_sent(&mut self, sequence: u64, now: Moment) {
        self.contacts.entry(sequence).or_insert(Contact { first_send: now, ended: None });
    }

    /// When an acquire that is not over went out first.
    pub(crate) fn asked(&self, sequence: u64) -> Option<Moment> {
        self.contacts.get(&sequence).map(|contact| contact.first_send)
    }

    /// An acquire is over without a grant. `attached` is false where it certainly met no group (a busy try).
    pub(crate) fn acquire_ended(&mut self, sequence: u64, attached: bool, now: Moment) {
        if !attached {
            self.contacts.remove(&sequence);
        } else if let Some(contact) = self.contacts.get_mut(&sequence) {
            contact.ended = Some(now);
        }
        if self.contacts.len() > MAX_CONTACTS {
            self.merge_contacts();
        }
    }

    /// Makes one of all contacts that have ended: the earliest send, the latest end.
    fn merge_contacts(&mut self) {
        let mut merged: Option<Contact> = None;
        self.contacts.retain(|_, contact| {
            let Some(ended) = contact.ended else { return true };
            let sum = merged.get_or_insert(*contact);
            sum.first_send = sum.first_send.min(contact.first_send);
            sum.ended = sum.ended.max(Some(ended));
            false
        });
        if let Some(merged) = merged {
            self.contacts.insert(0, merged);
        }
    }

    /// An acquire was granted. The hold is in the books from now on; it may be used once [`Self::covered`].
    pub(crate) fn granted(&mut self, sequence: u64, hold: Hold, now: Moment) {
        if self.leases.since(hold.place).is_none() {
            let met = self.contacts.values().map(|contact| contact.first_send).min().unwrap_or(self.opened);
            self.leases.met(hold.place, met, now);
        }
        self.contacts.remove(&sequence);
        self.leases.joins(hold.place);
        self.holds.insert(sequence, hold);
    }

    /// Whether the lease that the hold lives by stands: a grant in a group whose deadline has passed proves nothing before
    /// the group acknowledges a keepalive.
    pub(crate) fn covered(&self, sequence: u64, now: Moment) -> bool {
        self.lease_of(sequence).is_some_and(|since| self.leases.state(since, now) != HoldState::Lost)
    }

    /// Whether the lease of a hold counts from so long ago that a keepalive should not wait for its turn.
    pub(crate) fn renewal_overdue(&self, sequence: u64, interval: Duration, now: Moment) -> bool {
        self.lease_of(sequence).is_some_and(|since| now.since(since) > interval)
    }

    fn lease_of(&self, sequence: u64) -> Option<Moment> {
        self.leases.since(self.holds.get(&sequence)?.place)
    }

    /// A group answered a keepalive that was sent at `sent`, under one ownership epoch.
    pub(crate) fn group_answered(&mut self, place: Place, answer: GroupAnswer, sent: Moment, now: Moment) {
        if answer == GroupAnswer::Lost {
            self.place_lost(place, sent);
        }
        self.leases.answered(place, answer, sent, now);
    }

    /// A group has ended the session. That is the end of what stands there under that very epoch: what was there before may
    /// have moved away in time, and what came later was not meant.
    fn place_lost(&mut self, place: Place, sent: Moment) {
        let lost: Vec<u64> = self
            .holds
            .iter()
            .filter(|(_, hold)| hold.place == place && hold.first_send <= sent && hold.is_live())
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in lost {
            let reason = format!("group {} has ended it", place.group);
            self.hold_lost(sequence, LossReason::SessionEnded(reason));
        }
    }

    /// Somebody who knows says where a hold stands now.
    pub(crate) fn located(&mut self, sequence: u64, place: Place, now: Moment) {
        let Some(hold) = self.holds.get_mut(&sequence).filter(|hold| hold.is_live()) else { return };
        let left = std::mem::replace(&mut hold.place, place);
        let since = self.leases.since(left).unwrap_or(self.opened);
        self.leases.arrived(place, since, now);
        self.leases.leaves(left);
        self.leases.joins(place);
        self.changed.push(sequence);
    }

    /// Whether any hold may stand elsewhere by now.
    pub(crate) fn any_astray(&self) -> bool {
        self.end.is_none() && self.leases.any_astray()
    }

    /// Holds after this one that may stand elsewhere by now, at most so many.
    pub(crate) fn astray_after(&self, sequence: u64, most: usize) -> Vec<u64> {
        let after = self.holds.range(sequence.saturating_add(1)..);
        let astray = after.filter(|(_, hold)| hold.is_live() && self.leases.astray(hold.place));
        astray.map(|(sequence, _)| *sequence).take(most).collect()
    }

    /// Every group answered the keepalive sent at `sent`. Where no range has moved meanwhile, what had ended before that met no
    /// group that is not known now; else the group that it met may have passed the session on between two answers.
    pub(crate) fn all_groups_answered(&mut self, sent: Moment) {
        if self.leases.unchanged_since(sent) {
            self.contacts.retain(|_, contact| contact.ended.is_none_or(|ended| ended > sent));
        }
        self.leases.all_answered(sent);
    }

    /// A release goes out: from now on nobody can be sure of the hold.
    pub(crate) fn release_sent(&mut self, sequence: u64) {
        if let Some(hold) = self.holds.get_mut(&sequence).filter(|hold| hold.standing == Standing::Held) {
            hold.standing = Standing::Releasing;
            self.changed.push(sequence);
        }
    }

    /// The server says that the hold was released by this session.
    pub(crate) fn hold_released(&mut self, sequence: u64) {
        self.hold_ends(sequence, Standing::Released);
    }

    /// The hold is over in some other way.
    pub(crate) fn hold_lost(&mut self, sequence: u64, reason: LossReason) {
        self.hold_ends(sequence, Standing::Lost(reason));
    }

    fn hold_ends(&mut self, sequence: u64, standing: Standing) {
        let Some(hold) = self.holds.get_mut(&sequence).filter(|hold| hold.is_live()) else { return };
        hold.standing = standing;
        let (place, orphan) = (hold.place, hold.orphan);
        self.leases.leaves(place);
        if orphan {
            self.holds.remove(&sequence);
        } else {
            self.changed.push(sequence);
        }
    }

    /// The session is over; so is everything it holds.
    pub(crate) fn session_ended(&mut self, reason: &LossReason) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(reason.clone());
        let live: Vec<u64> =
            self.holds.iter().filter(|(_, hold)| hold.is_live()).map(|(seq, _)| *seq).collect();
        for sequence in live {
            self.hold_lost(sequence, reason.clone());
        }
    }

    /// Nobody will ask about the hold any more: it stays in the books only until it is over.
    pub(crate) fn orphan(&mut self, sequence: u64) {
        let Some(hold) = self.holds.get_mut(&sequence) else { return };
        hold.orphan = true;
        if !hold.is_live() {
            self.holds.remove(&sequence);
        }
    }

    pub(crate) fn hold(&self, sequence: u64) -> Option<&Hold> {
        self.holds.get(&sequence)
    }

    /// The hold of this name and token.
    pub(crate) fn hold_of(&self, name: &str, election: bool, token: u64) -> Option<u64> {
        let same = |hold: &Hold| hold.token == token && hold.election == election && *hold.name == *name;
        self.holds.iter().find(|(_, hold)| same(hold)).map(|(sequence, _)| *sequence)
    }

    /// Holds that are not over.
    pub(crate) fn live_holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.values().filter(|hold| hold.is_live())
    }

    /// How safe a hold is now.
    pub(crate) fn hold_state(&self, sequence: u64, now: Moment) -> HoldState {
        let Some(hold) = self.holds.get(&sequence) else { return HoldState::Lost };
        let lease = self.leases.since(hold.place).map(|since| self.leases.state(since, now));
        match (&hold.standing, lease) {
            (Standing::Released, _) => HoldState::Released,
            (Standing::Lost(_), _) | (_, None | Some(HoldState::Lost | HoldState::Released)) => {
                HoldState::Lost
            }
            (Standing::Releasing, Some(HoldState::Safe | HoldState::InDoubt)) => HoldState::InDoubt,
            (Standing::Held, Some(state)) => state,
        }
    }

    /// How long the hold is still this session's if nothing more is heard.
    pub(crate) fn hold_remaining(&self, sequence: u64, now: Moment) -> Duration {
        let Some(hold) = self.holds.get(&sequence).filter(|hold| hold.is_live()) else {
            return Duration::ZERO;
        };
        let since = self.leases.since(hold.place);
        since.map_or(Duration::ZERO, |since| since.plus(self.leases.trusted()).since(now))
    }

    /// How safe the session is: in doubt as soon as one group is, lost only when no group's lease stands.
    pub(crate) fn session_state(&self, now: Moment) -> SessionState {
        if self.end.is_some() {
            return SessionState::Lost;
        }
        let states: Vec<HoldState> = self.counted_from().map(|since| self.leases.state(since, now)).collect();
        if states.iter().all(|state| *state == HoldState::Lost) {
            SessionState::Lost
        } else if states.iter().all(|state| *state == HoldState::Safe) {
            SessionState::Safe
        } else {
            SessionState::InDoubt
        }
    }

    /// What the session's state counts from: its leases, or its opening while no group is known.
    fn counted_from(&self) -> impl Iterator<Item = Moment> {
        let unknown = self.leases.current().next().is_none();
        self.leases.current().chain(unknown.then_some(self.opened))
    }

    /// Lets time pass: leases whose deadline is over lose their holds. Answers which, and whether that was the last lease, so
    /// that the session is over.
    pub(crate) fn tick(&mut self, now: Moment) -> (Vec<u64>, bool) {
        let mut lapsed = Vec::new();
        if self.end.is_some() {
            return (lapsed, false);
        }
        for (place, state) in self.leases.take_turned(now) {
            let live = |hold: &Hold| hold.place == place && hold.is_live();
            let concerned: Vec<u64> =
                self.holds.iter().filter(|(_, hold)| live(hold)).map(|(sequence, _)| *sequence).collect();
            for sequence in concerned {
                // A grant that no keepalive has confirmed yet was never believed, so it cannot be lost either.
                let confirmed = self.holds.get(&sequence).is_some_and(|hold| hold.confirmed);
                if state == HoldState::Lost && confirmed {
                    self.hold_lost(sequence, LossReason::Deadline);
                    lapsed.push(sequence);
                } else {
                    self.changed.push(sequence);
                }
            }
        }
        (lapsed, self.session_state(now) == SessionState::Lost)
    }

    /// A hold was handed to its caller.
    pub(crate) fn confirm(&mut self, sequence: u64) {
        if let Some(hold) = self.holds.get_mut(&sequence) {
            hold.confirmed = true;
        }
    }

    /// The next moment at which some state turns by itself.
    pub(crate) fn next_turn(&self, now: Moment) -> Option<Moment> {
        if self.end.is_some() {
            return None;
        }
        let (half, trusted) = (self.leases.ttl() / 2, self.leases.trusted());
        self.counted_from()
            .flat_map(|since| [since.plus(half), since.plus(trusted)])
            .filter(|moment| *moment > now)
            .min()
    }

    /// Holds whose state has changed since the last call, and the session's state where it has.
    pub(crate) fn take_changes(&mut self, now: Moment) -> (Vec<u64>, Option<SessionState>) {
        let state = self.session_state(now);
        let turned = (state != self.shown).then_some(state);
        self.shown = state;
        (std::mem::take(&mut self.changed), turned)
    }
}
