//! Who is attached to which wait, who is given up, and who is not.

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
    waits.detached(key("s"), request("s"), Caller { owner: back.owner, ..by(2) }, Moment(0), LOST_GRACE_MS);
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
