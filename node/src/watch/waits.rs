//! Who is attached to which wait of a group: plain state, driven by `now`.
//!
//! Knows that a wait nobody is attached to is given up after a grace (rule R8), and that a grant is never given up of which
//! somebody was told, or may have been told by an earlier leader, and who has not gone. Does not know how a wait is granted
//! or what a caller is; `C` is whatever can be answered. It exists only while the member leads the group.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use holdfast_locktable::{command::RequestId, event::WaitEnd, ids::SessionId, mutant, name::Name};
use holdfast_partitioner::{MapEpoch, Range};

use super::told::{AttemptId, Others, Told};
use crate::clock::Moment;

/// Grace after a caller went away, in milliseconds: what it gave up on is out of the queue within 2 s (P5), the commit of
/// the cancel included.
pub const DETACH_GRACE_MS: u64 = 1_500;
/// Grace after a leader or an endpoint was lost, in milliseconds.
pub const LOST_GRACE_MS: u64 = 5_000;
/// Departures of ranges that are remembered: a message that was sent before one is handled within moments.
const DEPARTURES: usize = 64;

/// Which request a wait belongs to. The floor that a native request also carries does not distinguish requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKey {
    /// A native request, by its sequence number.
    Sequence(u64),
    /// A request over HTTP, by its text.
    Text(Arc<str>),
}

impl From<&RequestId> for RequestKey {
    fn from(id: &RequestId) -> Self {
        match id {
            RequestId::Sequence { sequence, .. } => Self::Sequence(*sequence),
            RequestId::Text(text) => Self::Text(text.clone()),
        }
    }
}

/// One wait: a queue, a session and its request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitKey {
    /// The queue.
    pub name: Name,
    /// Who waits.
    pub session: SessionId,
    /// Under which request.
    pub request: RequestKey,
}

/// Tells one caller of a wait from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallerId(pub u64);

/// One caller, and the call at an endpoint that it works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The caller; `None` where an endpoint reports that its client has gone, after or before an answer.
    pub id: Option<CallerId>,
    /// The call at the endpoint.
    pub attempt: AttemptId,
    /// Whether the request held when the caller came or went, as the leader's table had it.
    pub held: bool,
    /// The group's ownership epoch at that moment; `None` where the group did not have the name's range.
    pub owner: Option<MapEpoch>,
}

#[derive(Debug)]
struct Slot<C> {
    request: RequestId,
    callers: BTreeMap<CallerId, (AttemptId, C)>,
    abandon_at: Option<Moment>,
    /// Whether somebody has been told of its grant, or may have been before this leader.
    told: bool,
}

/// The waits of one group and who is attached to them.
#[derive(Debug)]
pub struct Waits<C> {
    slots: BTreeMap<WaitKey, Slot<C>>,
    timers: BTreeSet<(Moment, WaitKey)>,
    told: Told,
    /// Ranges that have gone to other groups, and since which map epoch; the newest last.
    departures: VecDeque<(Range, MapEpoch)>,
}

impl<C> Default for Waits<C> {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
            timers: BTreeSet::new(),
            told: Told::default(),
            departures: VecDeque::new(),
        }
    }
}

impl<C> Waits<C> {
    /// This member takes over: waits that stand in the log and have no caller yet are given `LOST_GRACE_MS` to find one.
    pub fn promote(&mut self, waits: impl IntoIterator<Item = (Name, SessionId, RequestId)>, now: Moment) {
        for (name, session, request) in waits {
            self.waiting(name, session, request, now);
        }
    }

    /// This member leads no more: whoever waits here must ask the next leader.
    pub fn demote(&mut self) -> Vec<C> {
        self.timers.clear();
        self.told.clear();
        let callers =
            std::mem::take(&mut self.slots).into_values().flat_map(|slot| slot.callers.into_values());
        callers.map(|(_, caller)| caller).collect()
    }

    /// A range has another owner since this map epoch: who waits for a name in it must ask there, and what was told here of its
    /// grants says nothing any more, should it come back.
    pub fn left(&mut self, range: &Range, epoch: MapEpoch) -> Vec<C> {
        self.told.forget(range);
        if self.departures.len() >= DEPARTURES {
            self.departures.pop_front();
        }
        self.departures.push_back((range.clone(), epoch));
        let keys: Vec<WaitKey> =
            self.slots.keys().filter(|key| range.contains(key.name.internal())).cloned().collect();
        let mut callers = Vec::new();
        for key in keys {
            if let Some(slot) = self.slots.get_mut(&key) {
                callers.extend(std::mem::take(&mut slot.callers).into_values().map(|(_, caller)| caller));
            }
            self.drop_slot(&key);
        }
        callers
    }

    /// Since which map epoch the name's range is, or was last, with another group.
    pub fn departed(&self, name: &Name) -> Option<MapEpoch> {
        let left = self.departures.iter().rev().find(|(range, _)| range.contains(name.internal()));
        left.map(|(_, epoch)| *epoch)
    }

    /// Whether somebody came or went while the group did not have the name, or before it last left: the group that had it
    /// then, or has it now, is asked or told of that as well.
    fn is_of_another_time(&self, name: &Name, who: Caller) -> bool {
        who.owner.is_none_or(|owner| self.departed(name).is_some_and(|since| owner < since))
    }

    /// A caller wants to hear how a request ends; one that does not fit the range's whereabouts is dropped, and asks again. To be
    /// called before the request is proposed, so that a grant cannot
    /// overtake it.
    pub fn attach(&mut self, key: WaitKey, request: RequestId, id: CallerId, who: Caller, caller: C) {
        if self.is_of_another_time(&key.name, who) {
            return;
        }
        let slot = Self::slot(&mut self.slots, &key, request, who.held);
        slot.callers.insert(id, (who.attempt, caller));
        if let Some(at) = slot.abandon_at.take() {
            self.timers.remove(&(at, key));
        }
    }

    /// A caller has its answer.
    pub fn settled(&mut self, key: &WaitKey, id: CallerId, attempt: AttemptId, granted: bool) {
        if granted {
            self.told.add(key, attempt);
        }
        let Some(slot) = self.slots.get_mut(key) else { return };
        slot.told |= granted;
        slot.callers.remove(&id);
        if slot.callers.is_empty() {
            self.drop_slot(key);
        }
    }

    /// A caller went away without an answer, or the client of a call did. With nobody left who waits or was told, the
    /// request is given up after `grace_ms`, granted or not.
    pub fn detached(&mut self, key: WaitKey, request: RequestId, who: Caller, now: Moment, grace_ms: u64) {
        if self.is_of_another_time(&key.name, who) {
            return;
        }
        let others = self.told.gone(&key, who.attempt);
        let slot = self.slots.get_mut(&key).map(|slot| {
            if let Some(id) = who.id {
                slot.callers.remove(&id);
            }
            (slot.callers.is_empty(), slot.told)
        });
        let counted_on = match (others, slot) {
            (_, Some((false, _))) => return,
            _ if mutant!("grant-given-back-by-another-call") => false,
            (Others::Some, _) => true,
            (Others::None, _) => false,
            (Others::Unknown, slot) => slot.map_or(who.held, |(_, told)| told),
        };
        if counted_on {
            self.drop_slot(&key);
        } else {
            self.give_up_in(key, request, now, grace_ms);
        }
    }

    fn give_up_in(&mut self, key: WaitKey, request: RequestId, now: Moment, grace_ms: u64) {
        let slot = Self::slot(&mut self.slots, &key, request, false);
        if !slot.callers.is_empty() {
            return;
        }
        let at = now.plus_ms(grace_ms);
        let at = match slot.abandon_at.take() {
            Some(old) => {
                self.timers.remove(&(old, key.clone()));
                old.min(at)
            }
            None => at,
        };
        slot.abandon_at = Some(at);
        self.timers.insert((at, key));
    }

    /// A wait began in the log. Where nobody is attached (its proposer is gone) the grace begins.
    pub fn waiting(&mut self, name: Name, session: SessionId, request: RequestId, now: Moment) {
        let key = WaitKey { name, session, request: RequestKey::from(&request) };
        let slot = Self::slot(&mut self.slots, &key, request, false);
        if slot.callers.is_empty() && slot.abandon_at.is_none() {
            let at = now.plus_ms(LOST_GRACE_MS);
            slot.abandon_at = Some(at);
            self.timers.insert((at, key));
        }
    }

    /// A wait has ended: these callers are to be told. A grant that nobody hears of stays timed, so that it is given back.
    pub fn ended(&mut self, key: &WaitKey, end: WaitEnd) -> Vec<C> {
        let Some(slot) = self.slots.get_mut(key) else { return Vec::new() };
        let callers = std::mem::take(&mut slot.callers);
        match end {
            WaitEnd::Granted { .. } if slot.abandon_at.is_some() => {}
            WaitEnd::Granted { .. } => {
                callers.values().for_each(|(attempt, _)| self.told.add(key, *attempt));
                self.drop_slot(key);
            }
            WaitEnd::Removed(_) => self.drop_slot(key),
        }
        callers.into_values().map(|(_, caller)| caller).collect()
    }

    /// Requests that are to be given up now.
    pub fn due(&mut self, now: Moment) -> Vec<(WaitKey, RequestId)> {
        let mut due = Vec::new();
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.timers.pop_first() else { break };
            if let Some(slot) = self.slots.remove(&key) {
                due.push((key, slot.request));
            }
        }
        due
    }

    /// A request was to be given up and that was not agreed on: where nobody has come back for it, it is tried again after
    /// another grace.
    pub fn given_up_in_vain(&mut self, key: WaitKey, request: RequestId, now: Moment) {
        self.give_up_in(key, request, now, DETACH_GRACE_MS);
    }

    /// When the next grace ends.
    pub fn next_due(&self) -> Option<Moment> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// How many callers are attached.
    pub fn callers(&self) -> usize {
        self.slots.values().map(|slot| slot.callers.len()).sum()
    }

    fn slot<'a>(
        slots: &'a mut BTreeMap<WaitKey, Slot<C>>,
        key: &WaitKey,
        request: RequestId,
        held: bool,
    ) -> &'a mut Slot<C> {
        slots.entry(key.clone()).or_insert_with(|| Slot {
            request,
            callers: BTreeMap::new(),
            abandon_at: None,
            told: held,
        })
    }

    fn drop_slot(&mut self, key: &WaitKey) {
        if let Some(slot) = self.slots.remove(key)
            && let Some(at) = slot.abandon_at
        {
            self.timers.remove(&(at, key.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
