//! Each lock is linearizable: with what clients saw there is an order of moments, each between question and answer, in which
//! a lock behaves like one that one process keeps: granted only while free, found busy only while another holds it, seen as
//! held or free only while it is so.
//!
//! The tokens give the order of holds. So each hold has a span in which it may have stood, and one in which it must have;
//! every other answer must find its place among them, first each for itself, which is easier to read, then all at once.
//! Looks at clients only, never at a table or log. What a client does not know of is taken to have happened if that helps.

use std::collections::BTreeMap;

use holdfast_history::{End, Event, Fact, ReleaseEnd, SessionEnd, SessionId};

use super::moments::{Either, Moments};

/// The end of all time.
const NEVER: u64 = u64::MAX;
/// So much earlier may a TTL be over by the clock of a leader that runs fast, in nanoseconds.
const DRIFT: u64 = 10_000_000;

/// One hold that a client knows of.
#[derive(Clone, Debug)]
struct Hold {
    token: u64,
    session: SessionId,
    /// When it was asked for, and when it was told.
    sent: u64,
    told: u64,
    /// From when on it may be over, and from when on it must be.
    may_end: u64,
    must_end: u64,
}

/// A span in which a session may have held without anybody knowing.
#[derive(Clone, Copy, Debug)]
struct Perhaps {
    session: SessionId,
    from: u64,
    to: u64,
}

/// Something that was seen of a lock by somebody who does not hold it.
#[derive(Clone, Debug)]
struct Look {
    from: u64,
    to: u64,
    saw: Saw,
    event: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saw {
    /// Somebody else than this session holds.
    HeldByOther(SessionId),
    /// This session holds.
    HeldBy(SessionId),
    /// Nobody holds.
    Free,
}

impl Look {
    /// Whether it can have seen this session hold.
    fn can_be_of(&self, session: SessionId) -> bool {
        match self.saw {
            Saw::HeldByOther(own) => session != own,
            Saw::HeldBy(holder) => session == holder,
            Saw::Free => false,
        }
    }

    /// Whether it can have seen what it saw in this phase: even ones are free, odd ones are the holds in their order.
    fn sees(&self, phase: usize, sessions: &[SessionId]) -> bool {
        let holder = if phase % 2 == 1 { sessions.get(phase / 2) } else { None };
        holder.map_or(self.saw == Saw::Free, |holder| self.can_be_of(*holder))
    }

    fn meets(&self, from: u64, to: u64) -> bool {
        from <= self.to && self.from <= to
    }
}

/// What was seen of one lock.
#[derive(Clone, Debug, Default)]
struct Lock {
    holds: BTreeMap<u64, Hold>,
    perhaps: Vec<Perhaps>,
    looks: Vec<Look>,
}

/// What all clients saw of all locks.
#[derive(Clone, Debug, Default)]
pub struct Linear {
    locks: BTreeMap<String, Lock>,
    /// When each acquire was sent that has not ended.
    sent: BTreeMap<u64, (u64, SessionId, String)>,
    /// From when on a session may be over: its TTL after the last keepalive that was acknowledged, or its close.
    may_end: BTreeMap<SessionId, u64>,
    ttl: BTreeMap<SessionId, u64>,
}

impl Linear {
    /// Takes in one event.
    pub fn observe(&mut self, event: &Event) {
        let at = event.at;
        match &event.fact {
            Fact::SessionOpened { session, ttl, sent, .. } => {
                self.ttl.insert(*session, *ttl);
                self.may_end.insert(*session, sent + ttl);
            }
            Fact::KeepaliveAcknowledged { session, sent } => {
                let ttl = self.ttl.get(session).copied().unwrap_or_default();
                let until = self.may_end.entry(*session).or_default();
                *until = (*until).max(sent + ttl);
            }
            Fact::SessionEnded { session, end } => self.session_ends(*session, *end, at),
            Fact::AcquireSent { call, session, lock, .. } => {
                self.sent.insert(*call, (at, *session, lock.to_string()));
            }
            Fact::AcquireEnded { call, end, .. } => self.acquire_ended(*call, *end, event),
            Fact::ReleaseSent { session, lock, token, .. } => {
                self.hold(lock, *session, *token, |hold| hold.may_end = hold.may_end.min(at));
            }
            Fact::ReleaseEnded { session, lock, token, end: ReleaseEnd::Released, .. } => {
                self.hold(lock, *session, *token, |hold| hold.must_end = hold.must_end.min(at));
            }
            Fact::QueueObserved { lock, asked, holder, .. } => {
                let saw = holder.map_or(Saw::Free, Saw::HeldBy);
                self.look(lock, *asked, saw, event);
            }
            Fact::HoldLost { session, lock, token, .. } => self.hold_lost(lock, *session, *token, at),
            Fact::CancelSent { .. }
            | Fact::ReleaseEnded { .. }
            | Fact::SessionSilent { .. }
            | Fact::FencedWrite { .. } => {}
        }
    }

    /// What its client or an operator ends is over from then on if the service hears of it. One that lapses is over once
    /// its TTL has passed, which [`Self::finish`] reckons.
    fn session_ends(&mut self, session: SessionId, end: SessionEnd, at: u64) {
        if matches!(end, SessionEnd::Closed | SessionEnd::Forced) {
            let until = self.may_end.entry(session).or_default();
            *until = (*until).min(at);
        }
    }

    /// A hold that was lost may have ended with the lease that was acknowledged last before, although the session lives on
    /// elsewhere; its client may have noticed later.
    fn hold_lost(&mut self, lock: &str, session: SessionId, token: u64, at: u64) {
        let lease = self.may_end.get(&session).map_or(0, |until| until.saturating_sub(DRIFT));
        self.hold(lock, session, token, |hold| hold.may_end = hold.may_end.min(lease.min(at)));
    }

    /// A session may have held a lock from some moment until now although its client was told otherwise.
    pub fn perhaps(&mut self, lock: &str, session: SessionId, from: u64, to: u64) {
        self.locks.entry(lock.to_owned()).or_default().perhaps.push(Perhaps { session, from, to });
    }

    fn hold(&mut self, lock: &str, session: SessionId, token: u64, change: impl FnOnce(&mut Hold)) {
        let lock = self.locks.entry(lock.to_owned()).or_default();
        if let Some(hold) = lock.holds.get_mut(&token).filter(|hold| hold.session == session) {
            change(hold);
        }
    }

    fn look(&mut self, lock: &str, from: u64, saw: Saw, event: &Event) {
        let look = Look { from, to: event.at, saw, event: event.to_string() };
        self.locks.entry(lock.to_owned()).or_default().looks.push(look);
    }

    fn acquire_ended(&mut self, call: u64, end: End, event: &Event) {
        let Some((sent, session, name)) = self.sent.remove(&call) else { return };
        let at = event.at;
        let lock = self.locks.entry(name.clone()).or_default();
        match end {
            End::Granted(token) => {
                let hold = Hold { token, session, sent, told: at, may_end: NEVER, must_end: NEVER };
                lock.holds.insert(token, hold);
            }
            End::Busy | End::TimedOut => self.look(&name, sent, Saw::HeldByOther(session), event),
            // What was given up may have been granted in between.
            End::Cancelled => lock.perhaps.push(Perhaps { session, from: sent, to: at }),
            End::SessionLost | End::Unknown => {
                lock.perhaps.push(Perhaps { session, from: sent, to: NEVER });
            }
            End::Error => {}
        }
    }

    /// The run is over: what finds no place. Acquires that have not ended may have been granted at any time.
    #[must_use]
    pub fn finish(mut self) -> Vec<String> {
        for (sent, session, name) in std::mem::take(&mut self.sent).into_values() {
            let perhaps = Perhaps { session, from: sent, to: NEVER };
            self.locks.entry(name).or_default().perhaps.push(perhaps);
        }
        let may_end = self.may_end;
        let wrong = self.locks.into_iter().flat_map(|(name, mut lock)| {
            for hold in lock.holds.values_mut() {
                let session = may_end.get(&hold.session).copied().unwrap_or_default();
                hold.may_end = hold.may_end.min(session.saturating_sub(DRIFT));
            }
            lock.judge().into_iter().map(move |wrong| format!("{name:?}: {wrong}"))
        });
        wrong.collect()
    }
}

impl Lock {
    /// Holds in the order of their tokens, each with the earliest moment at which it can have begun, the earliest at which
    /// it can have ended, and the latest.
    fn judge(&self) -> Vec<String> {
        let (mut wrong, mut spans) = (Vec::new(), Vec::<(&Hold, u64, u64)>::new());
        let mut free_from = 0;
        for hold in self.holds.values() {
            let begins = hold.sent.max(free_from);
            if begins > hold.told {
                wrong.push(format!(
                    "token {} of session {} was told at {} ns, and the hold before it stood until {begins} ns at least",
                    hold.token, hold.session, hold.told
                ));
            }
            // The one before it was over when this one was told.
            if let Some(last) = spans.last_mut() {
                last.2 = last.2.min(hold.told);
            }
            free_from = begins.max(hold.may_end);
            spans.push((hold, begins, hold.must_end));
        }
        for look in &self.looks {
            if !self.fits(look, &spans) {
                wrong.push(format!(
                    "{}, and at no moment since {} ns can that have been so",
                    look.event, look.from
                ));
            }
        }
        // One finding is enough: what has no moment of its own has none beside the others.
        if wrong.is_empty() { self.judge_together().into_iter().collect() } else { wrong }
    }

    /// Holds begin and end one after the other, and between them the lock is free: these are the phases of a lock, and each
    /// look must meet one of those in which it can have seen what it saw. It meets none if its time lies between the end of
    /// one such phase and the beginning of the next. Whether the ends can be chosen so that this is nowhere so is decided for
    /// all looks at once.
    fn judge_together(&self) -> Option<String> {
        let bounds = self
            .holds
            .values()
            .flat_map(|hold| [(hold.sent, hold.told), (hold.may_end.min(hold.must_end), hold.must_end)]);
        // Before everything and after everything, so that each phase has two ends.
        let bounds = [(0, 0)].into_iter().chain(bounds).chain([(NEVER, NEVER)]);
        let sessions: Vec<SessionId> = self.holds.values().map(|hold| hold.session).collect();
        let (mut pairs, mut whose) = (Vec::new(), Vec::new());
        for look in self.looks.iter().filter(|look| !self.perhaps_seen(look)) {
            let seen = (0..=2 * sessions.len()).filter(|phase| look.sees(*phase, &sessions));
            // Phase p lasts from boundary p to boundary p + 1. The last one ended too early, the next one began too late.
            let mut ended = 0;
            for phase in seen.chain([2 * sessions.len() + 1]) {
                pairs.push(Either { late: ended, not_before: look.from, early: phase, not_after: look.to });
                whose.push(look);
                ended = phase + 1;
            }
        }
        let failed = Moments::new(bounds).fit(&pairs).err()?;
        let what = failed.and_then(|pair| whose.get(pair)).map_or("its holds", |look| &look.event);
        Some(format!("what was seen of it cannot all have been so, whatever the moments: {what}"))
    }

    /// Whether somebody may have held unknown to all whom the look can have seen.
    fn perhaps_seen(&self, look: &Look) -> bool {
        self.perhaps
            .iter()
            .any(|perhaps| look.can_be_of(perhaps.session) && look.meets(perhaps.from, perhaps.to))
    }

    fn fits(&self, look: &Look, spans: &[(&Hold, u64, u64)]) -> bool {
        if look.saw == Saw::Free {
            // Held for certain from its telling until it may end.
            return !spans.iter().any(|(hold, ..)| hold.told < look.from && look.to < hold.may_end);
        }
        let seen =
            |(hold, from, to): &(&Hold, u64, u64)| look.can_be_of(hold.session) && look.meets(*from, *to);
        spans.iter().any(seen) || self.perhaps_seen(look)
    }
}
