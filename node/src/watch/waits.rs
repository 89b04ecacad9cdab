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

    fn by(call: u64) -> Caller {
        let owner = Some(MapEpoch(1));
        Caller { id: Some(CallerId(call)), attempt: AttemptId(call), held: false, owner }
    }

    /// An endpoint's report that the client of a call has gone.
    fn client(call: u64) -> Caller {
        Caller { id: None, ..by(call) }
    }

    fn attach(waits: &mut Waits<&'static str>, text: &str, call: u64, caller: &'static str) {
        waits.attach(key(text), request(text), CallerId(call), by(call), caller);
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
        attach(&mut waits, "r", 1, "A");
        begin(&mut waits, "r", 0);
        assert_eq!(waits.ended(&key("r"), GRANT), ["A"]);
        assert_eq!(waits.next_due(), None);
    }

    #[test]
    fn a_caller_that_left_is_given_up_within_two_seconds() {
        let mut waits = Waits::default();
        attach(&mut waits, "r", 1, "A");
        begin(&mut waits, "r", 0);
        waits.detached(key("r"), request("r"), by(1), Moment(100), DETACH_GRACE_MS);
        assert_eq!(due_keys(&mut waits, 1_599), []);
        assert_eq!(due_keys(&mut waits, 1_600), [key("r")]);
        assert_eq!(due_keys(&mut waits, 9_000), []);
    }

    #[test]
    fn what_was_given_up_in_vain_is_given_up_again_unless_somebody_came_back() {
        let mut waits = Waits::default();
        waits.detached(key("r"), request("r"), client(1), Moment(0), DETACH_GRACE_MS);
        assert_eq!(due_keys(&mut waits, 1_500), [key("r")]);
        waits.given_up_in_vain(key("r"), request("r"), Moment(1_600));
        assert_eq!(due_keys(&mut waits, 3_099), [], "never at once");
        assert_eq!(due_keys(&mut waits, 3_100), [key("r")]);
        attach(&mut waits, "r", 1, "A");
        waits.given_up_in_vain(key("r"), request("r"), Moment(3_200));
        assert_eq!(waits.next_due(), None);
    }

    #[test]
    fn the_same_request_comes_back_in_time_and_keeps_its_place() {
        let mut waits = Waits::default();
        attach(&mut waits, "r", 1, "A");
        waits.detached(key("r"), request("r"), by(1), Moment(0), DETACH_GRACE_MS);
        attach(&mut waits, "r", 2, "A again");
        assert_eq!(waits.next_due(), None);
        assert_eq!(waits.ended(&key("r"), GRANT), ["A again"]);
    }

    #[test]
    fn a_grant_that_nobody_heard_is_given_up_too() {
        let mut waits = Waits::default();
        attach(&mut waits, "r", 1, "A");
        waits.detached(key("r"), request("r"), by(1), Moment(0), DETACH_GRACE_MS);
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
        attach(&mut waits, "early", 1, "A");
        let standing = ["early", "late"].map(|text| (key(text).name, key(text).session, request(text)));
        waits.promote(standing, Moment(1_000));
        assert_eq!(due_keys(&mut waits, 5_999), []);
        assert_eq!(due_keys(&mut waits, 6_000), [key("late")]);
    }

    #[test]
    fn a_leader_that_lost_its_term_sends_all_callers_on() {
        let mut waits = Waits::default();
        attach(&mut waits, "r", 1, "A");
        attach(&mut waits, "r", 2, "B");
        assert_eq!(waits.callers(), 2);
        assert_eq!(waits.demote(), ["A", "B"]);
        assert_eq!(waits.callers(), 0);
    }

    #[test]
    fn the_endpoint_of_an_answered_call_can_still_report_its_client_gone() {
        let mut waits = Waits::<&str>::default();
        waits.detached(key("r"), request("r"), client(1), Moment(0), DETACH_GRACE_MS);
        assert_eq!(due_keys(&mut waits, 2_000), [key("r")]);
    }

    #[test]
    fn a_grant_that_another_call_was_told_of_is_not_given_up() {
        let mut waits = Waits::default();
        // The second call is answered at once; the first one was lost on its way, and then its client is reported gone.
        attach(&mut waits, "r", 2, "second");
        waits.settled(&key("r"), CallerId(2), AttemptId(2), true);
        let late = Caller { held: true, ..client(1) };
        waits.detached(key("r"), request("r"), late, Moment(0), DETACH_GRACE_MS);
        assert_eq!(waits.next_due(), None);
        // The same where the first call is at the leader, and where the second one has waited.
        attach(&mut waits, "s", 1, "first");
        attach(&mut waits, "s", 2, "second");
        waits.settled(&key("s"), CallerId(2), AttemptId(2), true);
        waits.detached(key("s"), request("s"), by(1), Moment(0), LOST_GRACE_MS);
        attach(&mut waits, "t", 2, "second");
        assert_eq!(waits.ended(&key("t"), GRANT), ["second"]);
        waits.detached(key("t"), request("t"), late, Moment(0), DETACH_GRACE_MS);
        assert_eq!(waits.next_due(), None);
        // Once the second client has gone as well, nobody counts on it.
        let both = Caller { held: true, ..client(2) };
        waits.detached(key("t"), request("t"), both, Moment(10), DETACH_GRACE_MS);
        assert_eq!(due_keys(&mut waits, 10 + DETACH_GRACE_MS), [key("t")]);
    }

    #[test]
    fn a_grant_of_an_earlier_leader_is_not_given_up() {
        let mut waits = Waits::default();
        let held = |who| Caller { held: true, ..who };
        waits.detached(key("r"), request("r"), held(client(1)), Moment(0), DETACH_GRACE_MS);
        assert_eq!(waits.next_due(), None);
        // Nor where a repeat of it has been here, and has gone.
        waits.attach(key("r"), request("r"), CallerId(3), held(by(3)), "repeat");
        waits.detached(key("r"), request("r"), held(by(3)), Moment(0), LOST_GRACE_MS);
        assert_eq!(waits.next_due(), None);
    }

    #[test]
    fn a_refused_call_leaves_nothing_and_a_granted_one_whose_client_is_gone_is_given_up() {
        let mut waits = Waits::default();
        attach(&mut waits, "r", 1, "refused");
        waits.settled(&key("r"), CallerId(1), AttemptId(1), false);
        attach(&mut waits, "s", 1, "granted");
        waits.settled(&key("s"), CallerId(1), AttemptId(1), true);
        assert_eq!(waits.callers(), 0);
        let gone = Caller { held: true, ..client(1) };
        waits.detached(key("s"), request("s"), gone, Moment(0), DETACH_GRACE_MS);
        assert_eq!(due_keys(&mut waits, DETACH_GRACE_MS), [key("s")]);
    }

    #[test]
    fn a_client_that_went_while_the_range_was_elsewhere_gives_nothing_up_once_it_is_back() {
        let mut waits = Waits::<&str>::default();
        let granted_here = Caller { held: true, ..client(1) };
        waits.settled(&key("r"), CallerId(1), AttemptId(1), true);
        assert_eq!(waits.left(&Range::everything(), MapEpoch(2)), Vec::<&str>::new());
        // Said before the range left and heard after; said while it was away.
        waits.detached(key("r"), request("r"), granted_here, Moment(0), DETACH_GRACE_MS);
        let away = Caller { owner: None, ..granted_here };
        waits.detached(key("r"), request("r"), away, Moment(0), LOST_GRACE_MS);
        assert_eq!(waits.next_due(), None);
        // Back again: the other group's grants may have been told to anybody.
        let back = Caller { owner: Some(MapEpoch(3)), ..granted_here };
        waits.detached(key("r"), request("r"), back, Moment(0), DETACH_GRACE_MS);
        assert_eq!(waits.next_due(), None);
        // What waits here again is given up as ever.
        waits.attach(key("s"), request("s"), CallerId(2), Caller { owner: back.owner, ..by(2) }, "again");
        waits.detached(
            key("s"),
            request("s"),
            Caller { owner: back.owner, ..by(2) },
            Moment(0),
            LOST_GRACE_MS,
        );
        assert_eq!(due_keys(&mut waits, LOST_GRACE_MS), [key("s")]);
    }

    #[test]
    fn a_caller_of_another_time_is_not_attached() {
        let mut waits = Waits::default();
        waits.left(&Range::everything(), MapEpoch(2));
        attach(&mut waits, "r", 1, "late");
        waits.attach(key("r"), request("r"), CallerId(2), Caller { owner: None, ..by(2) }, "away");
        assert_eq!(waits.callers(), 0);
        assert_eq!(waits.departed(&key("r").name), Some(MapEpoch(2)));
    }

    #[test]
    fn the_floor_of_a_native_request_does_not_make_it_another_one() {
        let repeat = |lowest| RequestId::Sequence { sequence: 7, lowest };
        assert_eq!(RequestKey::from(&repeat(1)), RequestKey::from(&repeat(5)));
    }
}
