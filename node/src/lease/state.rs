//! Which sessions of a group are alive, decided by its leader's clock: plain state, driven by `now`.
//!
//! Knows deadlines, marks and stalls (rules R2, R5, R6). Does not know the log, the network or actors: it answers with
//! actions, and somebody else carries them out. It exists only while the member leads the group.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use holdfast_locktable::{
    ids::{SessionEpoch, SessionId, Term},
    mutant,
};

use crate::clock::Moment;

/// How often silent sessions are marked with what they have left, in milliseconds (rule R6).
pub const MARK_INTERVAL_MS: u64 = 2_000;
/// A look at the timers that comes later than this after it was due means that the process stood still, in milliseconds.
pub const STALL_MS: u64 = 300;
/// After a stall keepalives that have been received are answered first: nothing expires for this long, in milliseconds (rule R2).
pub const DRAIN_MS: u64 = 300;
/// How long the end of a session is remembered by a group that did not know it, in milliseconds (rule R4).
pub const REMEMBER_END_MS: u64 = 60_000;
/// Pause before an expiry that was not committed is proposed again, in milliseconds: a leader that is about to lose its
/// leadership is refused at once, again and again.
pub const RETRY_MS: u64 = 100;
/// Most sessions in one expiry or checkpoint entry, so that a mass expiry does not hold up the log.
pub const BATCH: usize = 500;
/// Most expiries that are proposed and not yet decided. The others are decided later: a busy leader is not buried under
/// them, and whoever is heard until then lives on.
pub const EXPIRIES_AT_ONCE: usize = 4;

/// A session as its group's table knows it, for a leader that takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The session.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: SessionEpoch,
    /// TTL in milliseconds.
    pub ttl_ms: u64,
    /// What it had left when it was last marked silent.
    pub marked_ms: Option<u64>,
    /// Whether its home has expired it.
    pub renewal_stopped: bool,
}

/// What shall be proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// These sessions' time is up.
    Expire(Vec<(SessionId, SessionEpoch)>),
    /// These silent sessions have so many milliseconds left.
    Mark(Vec<(SessionId, SessionEpoch, u64)>),
    /// These tombstones are old enough to go.
    Forget(Vec<(SessionId, SessionEpoch)>),
    /// The pause of grants after a restore is over.
    Resume,
}

/// How a keepalive finds its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Alive: its deadline has moved.
    Alive {
        /// TTL in milliseconds.
        ttl_ms: u64,
    },
    /// Alive, but its silence stands in the log: the mark must be cleared there before the answer (rule R6).
    Marked {
        /// Its epoch, for the entry.
        epoch: SessionEpoch,
    },
    /// Its expiry is proposed: the answer waits for the outcome (rule R2).
    Expiring,
    /// Its home has expired it: it is renewed no more here.
    Stopped,
    /// Not known here.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    epoch: SessionEpoch,
    ttl_ms: u64,
    deadline: Moment,
    /// Where the timer set holds it; at or before the deadline, but for the pause after an expiry that failed.
    timer: Moment,
    mark: Mark,
    expiring: bool,
    stopped: bool,
}

/// What the log says, or is about to say, of a session's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Nothing.
    None,
    /// A mark is proposed. It may come into the log behind whatever is proposed to clear it, so that only what is proposed
    /// after it has been seen there clears it.
    Proposed,
    /// A mark stands there, or may.
    Stands,
}

/// The leases of one group in one term of its leader.
#[derive(Debug)]
pub struct Leases {
    term: Term,
    leases: BTreeMap<SessionId, Lease>,
    timers: BTreeSet<(Moment, SessionId)>,
    tombstones: BTreeSet<(Moment, SessionId, SessionEpoch)>,
    /// When to look for silent sessions; `None` while a mark of some is on its way.
    next_mark: Option<Moment>,
    /// Silent sessions up to here have been marked in this round.
    marked_to: Option<SessionId>,
    /// Expiries that are proposed and not decided.
    expiries: usize,
    due: Option<Moment>,
    draining_until: Option<Moment>,
    /// When the pause of grants after a restore is over; `None` where there is none, or its end is on its way.
    resume_at: Option<Moment>,
}

impl Leases {
    /// The leader of `term` takes over: marked sessions get what they had left, the others their full TTL.
    pub fn promote(
        term: Term,
        now: Moment,
        known: impl IntoIterator<Item = Known>,
        tombstones: impl IntoIterator<Item = (SessionId, SessionEpoch)>,
    ) -> Self {
        let mut leases = Self {
            term,
            leases: BTreeMap::new(),
            timers: BTreeSet::new(),
            tombstones: BTreeSet::new(),
            next_mark: Some(now.plus_ms(MARK_INTERVAL_MS)),
            marked_to: None,
            expiries: 0,
            due: None,
            draining_until: None,
            resume_at: None,
        };
        for session in known {
            leases.arm(session, now);
        }
        for (session, epoch) in tombstones {
            leases.end_remembered(session, epoch, now);
        }
        leases
    }

    /// The term this state belongs to.
    pub fn term(&self) -> Term {
        self.term
    }

    /// The group was restored and is to grant nothing for so long (rule R20). A new leader begins to wait anew: it does not
    /// know how long the one before it has waited.
    pub fn paused(&mut self, pause_ms: u64, now: Moment) {
        self.resume_at = Some(now.plus_ms(pause_ms));
    }

    /// The end of the pause was not committed: it is proposed again after a moment.
    pub fn resume_failed(&mut self, now: Moment) {
        self.resume_at = Some(now.plus_ms(RETRY_MS));
    }

    /// A session exists from now on.
    pub fn opened(&mut self, session: SessionId, epoch: SessionEpoch, ttl_ms: u64, now: Moment) {
        if self.leases.get(&session).is_some_and(|lease| lease.epoch == epoch) {
            return;
        }
        self.arm(Known { session, epoch, ttl_ms, marked_ms: None, renewal_stopped: false }, now);
    }

    /// A session came with a range from another group, marked with what it has left at least.
    pub fn arrived(&mut self, known: Known, now: Moment) {
        match self.leases.get_mut(&known.session).filter(|lease| lease.epoch == known.epoch) {
            // The later of both deadlines counts; the timer set follows when it comes to look.
            Some(lease) => {
                let left_ms = known.marked_ms.unwrap_or(known.ttl_ms);
                lease.deadline = lease.deadline.max(now.plus_ms(left_ms));
            }
            None => self.arm(known, now),
        }
    }

    fn arm(&mut self, known: Known, now: Moment) {
        self.remove(known.session);
        let left_ms = known.marked_ms.map_or(known.ttl_ms, |left| left.min(known.ttl_ms));
        let deadline = now.plus_ms(left_ms);
        let lease = Lease {
            epoch: known.epoch,
            ttl_ms: known.ttl_ms,
            deadline,
            timer: deadline,
            mark: if known.marked_ms.is_some() { Mark::Stands } else { Mark::None },
            expiring: false,
            stopped: known.renewal_stopped,
        };
        self.timers.insert((deadline, known.session));
        self.leases.insert(known.session, lease);
    }

    fn remove(&mut self, session: SessionId) {
        if let Some(lease) = self.leases.remove(&session) {
            self.timers.remove(&(lease.timer, session));
        }
    }

    /// A session is gone.
    pub fn ended(&mut self, session: SessionId, epoch: SessionEpoch) {
        if self.leases.get(&session).is_some_and(|lease| lease.epoch == epoch) {
            self.remove(session);
        }
    }

    /// The home has expired the session: it keeps its deadline and is renewed no more (rule R5).
    pub fn renewal_stopped(&mut self, session: SessionId, epoch: SessionEpoch) {
        if let Some(lease) = self.leases.get_mut(&session).filter(|lease| lease.epoch == epoch) {
            lease.stopped = true;
        }
    }

    /// The mark of a session stands in the log.
    pub fn marked(&mut self, session: SessionId) {
        if let Some(lease) = self.leases.get_mut(&session) {
            lease.mark = Mark::Stands;
        }
    }

    /// The mark of a session is out of the log again.
    pub fn cleared(&mut self, session: SessionId) {
        if let Some(lease) = self.leases.get_mut(&session).filter(|lease| lease.mark == Mark::Stands) {
            lease.mark = Mark::None;
        }
    }

    /// The mark that was proposed last is decided: the next silent sessions may be looked for.
    pub fn mark_done(&mut self, now: Moment) {
        self.next_mark = Some(now);
    }

    /// The mark that was proposed last was not committed, or not in time; the next round begins anew. Where it is certain
    /// that it never will be, these are its sessions.
    pub fn mark_failed(&mut self, certainly: &[(SessionId, SessionEpoch, u64)], now: Moment) {
        for (session, ..) in certainly {
            if let Some(lease) = self.leases.get_mut(session).filter(|lease| lease.mark == Mark::Proposed) {
                // An earlier mark may stand.
                lease.mark = Mark::Stands;
            }
        }
        self.end_mark_round(now);
    }

    fn end_mark_round(&mut self, now: Moment) {
        self.marked_to = None;
        self.next_mark = Some(now.plus_ms(MARK_INTERVAL_MS));
    }

    /// The end of a session is remembered here.
    pub fn end_remembered(&mut self, session: SessionId, epoch: SessionEpoch, now: Moment) {
        self.tombstones.insert((now.plus_ms(REMEMBER_END_MS), session, epoch));
    }

    /// A proposed expiry is decided, one way or the other: there is room for the next one. Sessions that have not ended by it,
    /// because it was not agreed on or they were passed over in a sealed range, live on until it is proposed again after a
    /// pause. The facts of those that did may still be on their way.
    ///
    /// Where it is not `certain` how it went, it may still come: a keepalive is answered only behind an entry of its own, as
    /// where a mark stands.
    pub fn expiry_done(&mut self, sessions: &[(SessionId, SessionEpoch)], certain: bool, now: Moment) {
        self.expiries = self.expiries.saturating_sub(1);
        for (session, epoch) in sessions {
            let left = self.leases.get_mut(session).filter(|lease| lease.epoch == *epoch && lease.expiring);
            if let Some(lease) = left {
                lease.expiring = false;
                if !certain {
                    lease.mark = Mark::Stands;
                }
                lease.timer = now.plus_ms(RETRY_MS);
                self.timers.insert((lease.timer, *session));
            }
        }
    }

    /// A keepalive was received at `at`. Moves the deadline; the timer set follows when it comes to look.
    pub fn heard(&mut self, session: SessionId, at: Moment) -> Heard {
        let Some(lease) = self.leases.get_mut(&session) else { return Heard::Unknown };
        if lease.stopped {
            return Heard::Stopped;
        }
        if lease.expiring {
            return Heard::Expiring;
        }
        lease.deadline = lease.deadline.max(at.plus_ms(lease.ttl_ms));
        let on_its_way = lease.mark == Mark::Proposed;
        if lease.mark != Mark::None && !(on_its_way && mutant!("mark-on-its-way-ignored")) {
            Heard::Marked { epoch: lease.epoch }
        } else {
            Heard::Alive { ttl_ms: lease.ttl_ms }
        }
    }

    /// Whether nothing is proposed and not decided.
    pub fn is_quiet(&self) -> bool {
        self.expiries == 0 && self.next_mark.is_some()
    }

    /// Milliseconds a session has left.
    pub fn left_ms(&self, session: SessionId, now: Moment) -> Option<u64> {
        self.leases.get(&session).map(|lease| lease.deadline.since_ms(now))
    }

    /// When to look at the timers next.
    pub fn next_look(&self) -> Moment {
        let room = self.expiries < EXPIRIES_AT_ONCE;
        let first = self.timers.first().map(|(at, _)| *at).filter(|_| room);
        let tombstone = self.tombstones.first().map(|(at, ..)| *at);
        let next = [self.next_mark, first, tombstone, self.resume_at]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Moment(u64::MAX));
        self.draining_until.map_or(next, |until| next.max(until))
    }

    /// Tells when the caller means to look again, so that a late look is known for a stall.
    pub fn look_due(&mut self, at: Moment) {
        self.due = Some(at);
    }

    /// Looks at the timers: what is to be proposed now. After a stall nothing expires until received keepalives had
    /// their turn.
    pub fn look(&mut self, now: Moment) -> Vec<Action> {
        if self.due.take().is_some_and(|due| now.since_ms(due) > STALL_MS) && self.draining_until.is_none() {
            self.draining_until = Some(now.plus_ms(DRAIN_MS));
        }
        if self.draining_until.is_some_and(|until| now < until) {
            return Vec::new();
        }
        self.draining_until = None;
        let mut actions = Vec::new();
        while self.expiries < EXPIRIES_AT_ONCE {
            let expired = self.take_expired(now);
            if expired.is_empty() {
                break;
            }
            self.expiries += 1;
            actions.push(Action::Expire(expired));
        }
        if self.next_mark.is_some_and(|at| now >= at) {
            actions.extend(self.mark_silent(now));
        }
        if self.resume_at.take_if(|at| *at <= now).is_some() {
            actions.push(Action::Resume);
        }
        let forgotten = self.take_tombstones(now);
        actions.extend(forgotten.chunks(BATCH).map(|batch| Action::Forget(batch.to_vec())));
        actions
    }

    fn take_expired(&mut self, now: Moment) -> Vec<(SessionId, SessionEpoch)> {
        let mut expired = Vec::new();
        while expired.len() < BATCH
            && let Some((at, session)) = self.timers.first().copied().filter(|(at, _)| *at <= now)
        {
            self.timers.remove(&(at, session));
            let Some(lease) = self.leases.get_mut(&session) else { continue };
            if lease.deadline <= now {
                lease.expiring = true;
                expired.push((session, lease.epoch));
            } else {
                lease.timer = lease.deadline;
                self.timers.insert((lease.timer, session));
            }
        }
        expired
    }

    /// Marks the next silent sessions, one batch at a time; after the last one it pauses.
    fn mark_silent(&mut self, now: Moment) -> Option<Action> {
        let after = self.marked_to.map_or(Bound::Unbounded, Bound::Excluded);
        // Silent for more than half its TTL. One that was marked before a change of leaders counts as silent since then.
        let awaited_ms = |lease: &Lease| lease.ttl_ms - lease.ttl_ms / 2;
        let quiet = |lease: &Lease| !lease.expiring && lease.deadline.since_ms(now) < awaited_ms(lease);
        let rest = self.leases.range_mut((after, Bound::Unbounded)).filter(|(_, lease)| quiet(lease));
        let mark = |(session, lease): (&SessionId, &mut Lease)| {
            lease.mark = Mark::Proposed;
            (*session, lease.epoch, lease.deadline.since_ms(now))
        };
        let batch: Vec<_> = rest.take(BATCH).map(mark).collect();
        let Some((last, ..)) = batch.last() else {
            self.end_mark_round(now);
            return None;
        };
        self.marked_to = Some(*last);
        self.next_mark = None;
        Some(Action::Mark(batch))
    }

    fn take_tombstones(&mut self, now: Moment) -> Vec<(SessionId, SessionEpoch)> {
        let mut old = Vec::new();
        while let Some((_, session, epoch)) = self.tombstones.first().copied().filter(|(at, ..)| *at <= now) {
            self.tombstones.pop_first();
            old.push((session, epoch));
        }
        old
    }
}

#[cfg(test)]
mod tests;
