//! Who is attached to which wait of a group: plain state, driven by `now`.
//!
//! Knows that a wait nobody is attached to is given up after a grace (rule R8). Does not know how a wait is granted or
//! what a caller is; `C` is whatever can be answered. It exists only while the member leads the group.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holdfast_locktable::{command::RequestId, event::WaitEnd, ids::SessionId, name::Name};

use crate::clock::Moment;

/// Grace after a caller went away, in milliseconds: what it gave up on is out of the queue within 2 s (P5), the commit of
/// the cancel included.
pub const DETACH_GRACE_MS: u64 = 1_500;
/// Grace after a leader or an endpoint was lost, in milliseconds.
pub const LOST_GRACE_MS: u64 = 5_000;

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

#[derive(Debug)]
struct Slot<C> {
    request: RequestId,
    callers: BTreeMap<CallerId, C>,
    abandon_at: Option<Moment>,
}

/// The waits of one group and who is attached to them.
#[derive(Debug)]
pub struct Waits<C> {
    slots: BTreeMap<WaitKey, Slot<C>>,
    timers: BTreeSet<(Moment, WaitKey)>,
}

impl<C> Default for Waits<C> {
    fn default() -> Self {
        Self { slots: BTreeMap::new(), timers: BTreeSet::new() }
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
        std::mem::take(&mut self.slots).into_values().flat_map(|slot| slot.callers.into_values()).collect()
    }

    /// A caller wants to hear how a request ends. To be called before the request is proposed, so that a grant cannot
    /// overtake it.
    pub fn attach(&mut self, key: WaitKey, request: RequestId, id: CallerId, caller: C) {
        let slot = Self::slot(&mut self.slots, &key, request);
        slot.callers.insert(id, caller);
        if let Some(at) = slot.abandon_at.take() {
            self.timers.remove(&(at, key));
        }
    }

    /// A caller has its answer.
    pub fn settled(&mut self, key: &WaitKey, id: CallerId) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        slot.callers.remove(&id);
        if slot.callers.is_empty() {
            self.drop_slot(key);
        }
    }

    /// A caller went away without an answer. With nobody left, the request is given up after `grace_ms`, granted or not.
    pub fn detached(
        &mut self,
        key: WaitKey,
        request: RequestId,
        id: Option<CallerId>,
        now: Moment,
        grace_ms: u64,
    ) {
        let slot = Self::slot(&mut self.slots, &key, request);
        if let Some(id) = id {
            slot.callers.remove(&id);
        }
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
        let slot = Self::slot(&mut self.slots, &key, request);
        if slot.callers.is_empty() && slot.abandon_at.is_none() {
            let at = now.plus_ms(LOST_GRACE_MS);
            slot.abandon_at = Some(at);
            self.timers.insert((at, key));
        }
    }

    /// A wait has ended: these callers are to be told. A grant that nobody hears of stays timed, so that it is given back.
    pub fn ended(&mut self, key: &WaitKey, end: WaitEnd) -> Vec<C> {
        let Some(slot) = self.slots.get_mut(key) else { return Vec::new() };
        let callers = std::mem::take(&mut slot.callers).into_values().collect();
        match end {
            WaitEnd::Granted { .. } if slot.abandon_at.is_some() => {}
            WaitEnd::Granted { .. } | WaitEnd::Removed(_) => self.drop_slot(key),
        }
        callers
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
        self.detached(key, request, None, now, DETACH_GRACE_MS);
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
    ) -> &'a mut Slot<C> {
        slots.entry(key.clone()).or_insert_with(|| Slot {
            request,
            callers: BTreeMap::new(),
            abandon_at: None,
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
mod tests {
    use holdfast_locktable::{event::Removal, ids::Revision};

    use super::*;

    const GRANT: WaitEnd = WaitEnd::Granted { token: Revision(9) };

    fn request(text: &str) -> RequestId {
        RequestId::Text(Arc::from(text))
    }

    fn key(text: &str) -> WaitKey {
        WaitKey {
            name: Name::lock("job").unwrap(),
            session: SessionId::new(1).unwrap(),
            request: RequestKey::from(&request(text)),
        }
    }

    fn begin(waits: &mut Waits<&'static str>, text: &str, now: u64) {
        waits.waiting(key(text).name, key(text).session, request(text), Moment(now));
    }

    fn due_keys(waits: &mut Waits<&'static str>, now: u64) -> Vec<WaitKey> {
        waits.due(Moment(now)).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn an_attached_caller_hears_the_grant_and_nothing_is_given_up() {
        let mut waits = Waits::default();
        waits.attach(key("r"), request("r"), CallerId(1), "A");
        begin(&mut waits, "r", 0);
        assert_eq!(waits.ended(&key("r"), GRANT), ["A"]);
        assert_eq!(waits.next_due(), None);
    }

    #[test]
    fn a_caller_that_left_is_given_up_within_two_seconds() {
        let mut waits = Waits::default();
        waits.attach(key("r"), request("r"), CallerId(1), "A");
        begin(&mut waits, "r", 0);
        waits.detached(key("r"), request("r"), Some(CallerId(1)), Moment(100), DETACH_GRACE_MS);
        assert_eq!(due_keys(&mut waits, 1_599), []);
        assert_eq!(due_keys(&mut waits, 1_600), [key("r")]);
        assert_eq!(due_keys(&mut waits, 9_000), []);
    }

    #[test]
    fn what_was_given_up_in_vain_is_given_up_again_unless_somebody_came_back() {
        let mut waits = Waits::default();
        waits.detached(key("r"), request("r"), None, Moment(0), DETACH_GRACE_MS);
        assert_eq!(due_keys(&mut waits, 1_500), [key("r")]);
        waits.given_up_in_vain(key("r"), request("r"), Moment(1_600));
        assert_eq!(due_keys(&mut waits, 3_099), [], "never at once");
        assert_eq!(due_keys(&mut waits, 3_100), [key("r")]);
        waits.attach(key("r"), request("r"), CallerId(1), "A");
        waits.given_up_in_vain(key("r"), request("r"), Moment(3_200));
        assert_eq!(waits.next_due(), None);
    }

    #[test]
    fn the_same_request_comes_back_in_time_and_keeps_its_place() {
        let mut waits = Waits::default();
        waits.attach(key("r"), request("r"), CallerId(1), "A");
        waits.detached(key("r"), request("r"), Some(CallerId(1)), Moment(0), DETACH_GRACE_MS);
        waits.attach(key("r"), request("r"), CallerId(2), "A again");
        assert_eq!(waits.next_due(), None);
        assert_eq!(waits.ended(&key("r"), GRANT), ["A again"]);
    }

    #[test]
    fn a_grant_that_nobody_heard_is_given_up_too() {
        let mut waits = Waits::default();
        waits.attach(key("r"), request("r"), CallerId(1), "A");
        waits.detached(key("r"), request("r"), Some(CallerId(1)), Moment(0), DETACH_GRACE_MS);
        assert_eq!(waits.ended(&key("r"), GRANT), Vec::<&str>::new());
        assert_eq!(due_keys(&mut waits, 2_000), [key("r")]);
    }

    #[test]
    fn a_removed_wait_needs_no_giving_up() {
        let mut waits = Waits::default();
        begin(&mut waits, "r", 0);
        assert_eq!(waits.next_due(), Some(Moment(LOST_GRACE_MS)));
        waits.ended(&key("r"), WaitEnd::Removed(Removal::Cancelled));
        assert_eq!(waits.next_due(), None);
    }

    #[test]
    fn a_new_leader_waits_five_seconds_for_callers_to_come_back() {
        let mut waits = Waits::default();
        waits.attach(key("early"), request("early"), CallerId(1), "A");
        let standing = ["early", "late"].map(|text| (key(text).name, key(text).session, request(text)));
        waits.promote(standing, Moment(1_000));
        assert_eq!(due_keys(&mut waits, 5_999), []);
        assert_eq!(due_keys(&mut waits, 6_000), [key("late")]);
    }

    #[test]
    fn a_leader_that_lost_its_term_sends_all_callers_on() {
        let mut waits = Waits::default();
        waits.attach(key("r"), request("r"), CallerId(1), "A");
        waits.attach(key("r"), request("r"), CallerId(2), "B");
        assert_eq!(waits.callers(), 2);
        assert_eq!(waits.demote(), ["A", "B"]);
        assert_eq!(waits.callers(), 0);
    }

    #[test]
    fn the_endpoint_of_an_answered_call_can_still_report_its_client_gone() {
        let mut waits = Waits::<&str>::default();
        waits.detached(key("r"), request("r"), None, Moment(0), DETACH_GRACE_MS);
        assert_eq!(due_keys(&mut waits, 2_000), [key("r")]);
    }

    #[test]
    fn the_floor_of_a_native_request_does_not_make_it_another_one() {
        let repeat = |lowest| RequestId::Sequence { sequence: 7, lowest };
        assert_eq!(RequestKey::from(&repeat(1)), RequestKey::from(&repeat(5)));
    }
}
