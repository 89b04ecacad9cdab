//! What groups have acknowledged, and for which holds that counts: leases by place (rules R3, R7, R17).
//!
//! Ranges of names move between groups with the holds in them. A *place* is a group from one change of its ranges to the
//! next; within it no hold comes or goes with a range. What a group acknowledges counts for its places of that time and
//! later ones: there the session's lease in the group has gone on, and a hold that came later came into it. It does not
//! count for earlier places, whose holds may have left: these are astray until somebody says where they stand now.
//!
//! Pure, and knows no holds but their number.

use std::{collections::BTreeMap, time::Duration};

use holdfast_mutants::mutant;

use super::ledger::GroupAnswer;
use crate::{clock::Moment, state::HoldState};

/// The map epoch under which no range has moved yet.
const FIRST_EPOCH: u64 = 1;
/// Least time between the local deadline and the end of the lease.
const MIN_MARGIN: Duration = Duration::from_millis(100);

/// A group between two changes of its ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) group: u32,
    /// The map epoch of the change that began it; 0 where nobody said.
    pub(crate) epoch: u64,
}

impl Place {
    /// All places of the group up to this one.
    fn until(self) -> std::ops::RangeInclusive<Self> {
        Self { group: self.group, epoch: 0 }..=self
    }

    /// All places of the group from this one on.
    fn onwards(self) -> std::ops::RangeInclusive<Self> {
        self..=Self { group: self.group, epoch: u64::MAX }
    }
}

/// The lease of one place.
#[derive(Clone, Copy, Debug)]
struct Lease {
    /// What it counts from.
    since: Moment,
    /// Live holds there.
    holds: usize,
    /// The state that its holds were last told.
    shown: HoldState,
    /// When a later place of the group was heard of.
    superseded: Option<Moment>,
}

/// What a group has said of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// The newest epoch, once it has said one.
    epoch: Option<u64>,
    /// It did not answer the last keepalive.
    silent: bool,
}

/// The leases of one session.
#[derive(Debug)]
pub(crate) struct Leases {
    ttl: Duration,
    leases: BTreeMap<Place, Lease>,
    said: BTreeMap<u32, Said>,
    /// When a group last said that its ranges have changed.
    last_news: Option<Moment>,
}

impl Leases {
    pub(crate) const fn new(ttl: Duration) -> Self {
        Self { ttl, leases: BTreeMap::new(), said: BTreeMap::new(), last_news: None }
    }

    pub(crate) const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How long a lease is believed: the TTL less a margin.
    pub(crate) fn trusted(&self) -> Duration {
        self.ttl.saturating_sub(MIN_MARGIN.max(self.ttl / 1_000))
    }

    /// How safe a lease is that counts from `since`.
    pub(crate) fn state(&self, since: Moment, now: Moment) -> HoldState {
        let age = now.since(since);
        if age >= self.trusted() {
            HoldState::Lost
        } else if age >= self.ttl / 2 {
            HoldState::InDoubt
        } else {
            HoldState::Safe
        }
    }

    /// What holds in a place count from.
    pub(crate) fn since(&self, place: Place) -> Option<Moment> {
        self.leases.get(&place).map(|lease| lease.since)
    }

    /// A hold stands in a place that nothing was heard of under this epoch yet; `met` is when the group may have met the
    /// session by the client's own doing.
    ///
    /// A group that is known counts on. Any other may have got it with a range, from a group that has heard nothing for long;
    /// also where it has said under this very epoch that it does not know the session, since the epoch of a grant is one from
    /// before it, and a range may have come in between.
    pub(crate) fn met(&mut self, place: Place, met: Moment, now: Moment) {
        let known = self.leases.range(place.until()).map(|(_, lease)| lease.since).max();
        let oldest = self.leases.values().map(|lease| lease.since).min();
        let moved = oldest.map_or(met, |oldest| oldest.min(met));
        self.begin(place, known.unwrap_or(moved), now);
    }

    /// A hold that counted from `since` stands in a place: the later of both deadlines counts there (rule R17).
    pub(crate) fn arrived(&mut self, place: Place, since: Moment, now: Moment) {
        let known = self.leases.range(place.until()).map(|(_, lease)| lease.since).max();
        self.begin(place, known.map_or(since, |known| known.max(since)), now);
    }

    fn begin(&mut self, place: Place, since: Moment, now: Moment) {
        let shown = self.state(since, now);
        let lease = self.leases.entry(place).or_insert(Lease { since, holds: 0, shown, superseded: None });
        lease.since = lease.since.max(since);
        self.heard_of(place, now);
    }

    /// A place is known to have begun, and so the ones before it to have ended.
    fn heard_of(&mut self, place: Place, now: Moment) {
        let said = self.said.entry(place.group).or_default();
        // A group that has said nothing yet may have had its ranges since the cluster began.
        if said.epoch.unwrap_or(FIRST_EPOCH) < place.epoch {
            self.last_news = Some(now);
        }
        said.epoch = said.epoch.max(Some(place.epoch));
        let newest = Place { group: place.group, epoch: said.epoch.unwrap_or(place.epoch) };
        for (older, lease) in self.leases.range_mut(newest.until()) {
            if *older != newest {
                lease.superseded.get_or_insert(now);
            }
        }
    }

    /// A group answered a keepalive that was sent at `sent`, under the epoch of this place.
    pub(crate) fn answered(&mut self, place: Place, answer: GroupAnswer, sent: Moment, now: Moment) {
        if answer == GroupAnswer::Unavailable {
            self.said.entry(place.group).or_default().silent = true;
            return;
        }
        self.heard_of(place, now);
        self.said.entry(place.group).or_default().silent = false;
        match answer {
            GroupAnswer::Renewed => {
                if self.leases.range(place.onwards()).next().is_none() {
                    self.arrived(place, sent, now);
                }
                let first = if mutant!("acknowledged-where-it-was") { 0 } else { place.epoch };
                for (_, lease) in self.leases.range_mut(Place { epoch: first, ..place }.onwards()) {
                    lease.since = lease.since.max(sent);
                }
            }
            // Not renewed. Where it holds nothing there, the next grant meets the group anew.
            GroupAnswer::Unknown | GroupAnswer::Lost => {
                let over = |other: &Place, lease: &Lease| {
                    place.until().contains(other) && lease.holds == 0 && lease.since <= sent
                };
                self.leases.retain(|other, lease| !over(other, lease));
            }
            GroupAnswer::Unavailable => {}
        }
    }

    /// Whether no group was heard of under another epoch since this moment: then all answers to what was sent at it are of one
    /// map.
    pub(crate) fn unchanged_since(&self, sent: Moment) -> bool {
        self.last_news.is_none_or(|news| news < sent)
    }

    /// Every group answered a keepalive that was sent at `sent`. Places that were known then to have ended are of no more
    /// use, but for the holds that are not found yet: the groups that got the session from there have answered, too.
    pub(crate) fn all_answered(&mut self, sent: Moment) {
        self.leases.retain(|_, lease| lease.holds > 0 || lease.superseded.is_none_or(|at| at >= sent));
    }

    /// One hold more in a place.
    pub(crate) fn joins(&mut self, place: Place) {
        if let Some(lease) = self.leases.get_mut(&place) {
            lease.holds += 1;
        }
    }

    /// One hold less.
    pub(crate) fn leaves(&mut self, place: Place) {
        if let Some(lease) = self.leases.get_mut(&place) {
            lease.holds = lease.holds.saturating_sub(1);
        }
    }

    /// Whether holds in a place may stand elsewhere by now: its group has other ranges since; or does not answer, while
    /// somewhere ranges have changed since.
    pub(crate) fn astray(&self, place: Place) -> bool {
        let Some(said) = self.said.get(&place.group) else { return false };
        let later = |said: &Said| said.epoch > Some(place.epoch);
        later(said) || (said.silent && self.said.values().any(later))
    }

    /// Whether any hold is astray.
    pub(crate) fn any_astray(&self) -> bool {
        self.leases.iter().any(|(place, lease)| lease.holds > 0 && self.astray(*place))
    }

    /// What the leases count from that the session's state depends on: those with holds, and each group's newest.
    pub(crate) fn current(&self) -> impl Iterator<Item = Moment> {
        let counts = |lease: &&Lease| lease.holds > 0 || lease.superseded.is_none();
        self.leases.values().filter(counts).map(|lease| lease.since)
    }

    /// Places whose state has turned since it was last asked for.
    pub(crate) fn take_turned(&mut self, now: Moment) -> Vec<(Place, HoldState)> {
        let states = self.leases.iter().map(|(place, lease)| (*place, self.state(lease.since, now)));
        let states: BTreeMap<Place, HoldState> = states.collect();
        let mut turned = Vec::new();
        for (place, lease) in &mut self.leases {
            if let Some(state) = states.get(place).filter(|state| **state != lease.shown) {
                lease.shown = *state;
                turned.push((*place, *state));
            }
        }
        turned
    }
}
