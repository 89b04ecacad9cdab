//! I6: every acquire ends exactly once. Also what other checks ask for: the acquires that have not ended.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::{
    event::{Event, Fact, SessionId, Wait},
    sessions::Sessions,
    violation::{Check, Seconds, Violation},
};

/// So many ended acquires of a lock are remembered, to name the first end where there are two.
const REMEMBERED: usize = 16;

/// An acquire that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) client: u32,
    pub(crate) session: SessionId,
    pub(crate) sent: u64,
    pub(crate) wait: Wait,
    /// Whether its caller has begun to give it up.
    pub(crate) given_up: bool,
}

impl Pending {
    /// When its wait limit passes; never, where it has none.
    pub(crate) fn limit(&self) -> u64 {
        match self.wait {
            Wait::Try => self.sent,
            Wait::AtMost(limit) => self.sent.saturating_add(limit),
            Wait::Unlimited => u64::MAX,
        }
    }

    /// The event with which it began.
    pub(crate) fn event(&self, call: u64, lock: &Arc<str>) -> Event {
        let Self { client, session, sent, wait, .. } = *self;
        Event::new(sent, Fact::AcquireSent { call, client, session, lock: lock.clone(), wait })
    }
}

/// The acquires of one lock.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pending: BTreeMap<u64, Pending>,
    ended: VecDeque<(u64, Event)>,
}

impl Calls {
    /// An acquire that has not ended.
    pub(crate) fn get(&self, call: u64) -> Option<&Pending> {
        self.pending.get(&call)
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Pending)> {
        self.pending.iter().map(|(call, pending)| (*call, pending))
    }

    /// Takes in the beginning of an acquire. Comes before the other checks.
    pub(crate) fn begin(&mut self, event: &Event, found: &mut Vec<Violation>) {
        let Fact::AcquireSent { call, client, session, lock, wait } = &event.fact else { return };
        let pending =
            Pending { client: *client, session: *session, sent: event.at, wait: *wait, given_up: false };
        if let Some(before) = self.pending.insert(*call, pending) {
            let sentence = format!("acquire {call} began twice: {event}, and it had not ended");
            let first = Some(before.event(*call, lock));
            found.push(violation(lock, first, event.clone(), sentence));
        }
    }

    /// Takes in that the caller of an acquire gives it up.
    pub(crate) fn give_up(&mut self, event: &Event) {
        let Fact::CancelSent { call, .. } = &event.fact else { return };
        if let Some(pending) = self.pending.get_mut(call) {
            pending.given_up = true;
        }
    }

    /// Takes in the end of an acquire. Comes after the other checks.
    pub(crate) fn end(&mut self, event: &Event, found: &mut Vec<Violation>) {
        let Fact::AcquireEnded { call, lock, .. } = &event.fact else { return };
        if self.pending.remove(call).is_none() {
            let before = self.ended.iter().rev().find(|(ended, _)| ended == call);
            let sentence = match before {
                Some((_, before)) => format!("acquire {call} ended twice: {before}, and then {event}"),
                None => format!("{event}, but no such acquire was under way"),
            };
            found.push(violation(lock, before.map(|(_, before)| before.clone()), event.clone(), sentence));
            return;
        }
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((*call, event.clone()));
    }

    /// The run is drained: whatever is still under way was forgotten. A dead client's calls end with it.
    pub(crate) fn finish(
        &mut self,
        at: u64,
        lock: &Arc<str>,
        sessions: &Sessions,
        found: &mut Vec<Violation>,
    ) {
        for (call, pending) in std::mem::take(&mut self.pending) {
            if sessions.dead_by(pending.session).is_some() {
                continue;
            }
            let sent = pending.event(call, lock);
            let sentence = format!("{sent} and it never ended; the run was over at {}", Seconds(at));
            found.push(violation(lock, None, sent, sentence));
        }
    }
}

fn violation(lock: &Arc<str>, first: Option<Event>, second: Event, sentence: String) -> Violation {
    Violation { check: Check::Ends, lock: Some(lock.clone()), first, second, sentence }
}
