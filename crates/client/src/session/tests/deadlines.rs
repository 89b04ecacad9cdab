//! What is safe, in doubt or lost, and when (rules R3, R7; promise P8).

use holdfast_proto::v1::{self, LeaseState::*};

use super::*;
use crate::state::{HoldState, LossReason, SessionState};

fn state(core: &mut Core, hold: u64, now: u64) -> HoldState {
    core.tick(at(now));
    core.ledger().hold_state(hold, at(now))
}

fn session_state(core: &mut Core, now: u64) -> SessionState {
    core.tick(at(now));
    core.ledger().session_state(at(now))
}

#[test]
fn a_lock_is_in_doubt_at_half_its_ttl_and_lost_a_margin_before_its_end() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    assert_eq!(state(&mut core, hold, 4_999), HoldState::Safe);
    assert_eq!(state(&mut core, hold, 5_000), HoldState::InDoubt);
    assert_eq!(state(&mut core, hold, 9_899), HoldState::InDoubt);
    assert_eq!(state(&mut core, hold, 9_900), HoldState::Lost);
    assert_eq!(core.loss_of(hold), LossReason::Deadline);
    assert_eq!(session_state(&mut core, 9_900), SessionState::Lost);
}

#[test]
fn the_margin_of_a_long_ttl_is_a_thousandth_of_it() {
    let hour = Duration::from_secs(3_600);
    let mut core = Core::new(SessionId::from_wire(1), hour, at(0), Duration::from_secs(5), 1);
    assert_eq!(session_state(&mut core, 3_596_399), SessionState::InDoubt);
    assert_eq!(session_state(&mut core, 3_596_400), SessionState::Lost);
}

#[test]
fn a_keepalive_counts_from_its_send_time_however_late_its_answer() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    keepalive(&mut core, 2_500, &[(1, Renewed)], 9_000);
    assert_eq!(state(&mut core, hold, 9_000), HoldState::InDoubt);
    assert_eq!(state(&mut core, hold, 12_399), HoldState::InDoubt);
    assert_eq!(state(&mut core, hold, 12_400), HoldState::Lost);
}

#[test]
fn an_older_answer_that_comes_later_takes_nothing_back() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    let first = sequence_of(&sent(&mut core, at(2_500)), "keepalive");
    let second = sequence_of(&sent(&mut core, at(5_000)), "keepalive");
    answer(&mut core, second, ack(&[(1, Renewed)]), at(5_010));
    answer(&mut core, first, ack(&[(1, Renewed)]), at(5_020));
    assert_eq!(state(&mut core, hold, 9_999), HoldState::Safe);
}

#[test]
fn each_lock_lives_by_its_own_group_and_the_session_shows_the_worst() {
    let mut core = core();
    let one = hold(&mut core, "a", 7, 1, 0);
    let two = hold(&mut core, "b", 8, 2, 0);
    for (sent_at, answered_at) in [(2_500, 2_510), (5_000, 5_010), (7_500, 7_510)] {
        keepalive(&mut core, sent_at, &[(1, Renewed), (2, Unavailable)], answered_at);
    }
    assert_eq!(state(&mut core, one, 9_899), HoldState::Safe);
    assert_eq!(state(&mut core, two, 9_899), HoldState::InDoubt);
    assert_eq!(session_state(&mut core, 9_899), SessionState::InDoubt);
    assert_eq!(state(&mut core, two, 9_900), HoldState::Lost);
    assert_eq!(state(&mut core, one, 9_900), HoldState::Safe);
    assert_eq!(session_state(&mut core, 9_900), SessionState::InDoubt);
    // The group is back: what was lost stays lost, the session is whole again.
    keepalive(&mut core, 10_000, &[(1, Renewed), (2, Renewed)], 10_010);
    assert_eq!(state(&mut core, two, 10_010), HoldState::Lost);
    assert_eq!(session_state(&mut core, 10_010), SessionState::Safe);
}

#[test]
fn a_group_that_says_lost_ends_its_locks_and_no_others() {
    let mut core = core();
    let one = hold(&mut core, "a", 7, 1, 0);
    let two = hold(&mut core, "b", 8, 2, 0);
    keepalive(&mut core, 2_500, &[(1, Renewed), (2, Lost)], 2_510);
    assert_eq!(state(&mut core, one, 2_510), HoldState::Safe);
    assert_eq!(state(&mut core, two, 2_510), HoldState::Lost);
}

#[test]
fn an_unknown_from_a_keepalive_that_overtook_the_acquire_does_not_end_the_lock() {
    let mut core = core();
    let first = sequence_of(&sent(&mut core, at(2_500)), "keepalive");
    let hold = hold(&mut core, "a", 7, 1, 2_501);
    answer(&mut core, first, ack(&[(1, Unknown), (2, Renewed)]), at(2_600));
    assert_eq!(state(&mut core, hold, 2_600), HoldState::Safe);
}

#[test]
fn a_first_contact_counts_from_the_first_send_of_its_request() {
    let mut core = core();
    let (sequence, mut answered) = core.acquire(want("a", Wait::Unlimited), at(2_400));
    sent(&mut core, at(2_400));
    // What group 2 has was acknowledged later than that: it may have passed the session on, and takes nothing away.
    keepalive(&mut core, 2_500, &[(1, Unknown), (2, Renewed)], 2_510);
    core.disconnected("cut".into(), at(3_500));
    sent(&mut core, at(4_000));
    answer(&mut core, sequence, granted(7, 1), at(6_000));
    let hold = answered.try_recv().expect("answered").expect("granted");
    assert_eq!(core.ledger().hold_remaining(hold, at(6_000)), Duration::from_millis(6_300));
}

#[test]
fn a_first_contact_counts_from_what_another_group_has_that_may_have_passed_the_session_on() {
    let mut core = core();
    keepalive(&mut core, 2_500, &[(1, Unknown), (2, Renewed)], 2_510);
    let hold = hold(&mut core, "a", 7, 1, 4_000);
    assert_eq!(core.ledger().hold_remaining(hold, at(4_000)), Duration::from_millis(8_400));
}

#[test]
fn a_contact_that_another_request_may_have_made_counts_from_that_one() {
    let mut core = core();
    // The first request may have met group 1, and has been cancelled since.
    let (first, answered) = core.acquire(want("x", Wait::Unlimited), at(2_400));
    sent(&mut core, at(2_400));
    keepalive(&mut core, 2_500, &[(1, Unknown), (2, Renewed)], 2_510);
    drop(answered);
    core.abandon(first, at(3_500));
    let cancel = sequence_of(&sent(&mut core, at(3_500)), "cancel");
    let done =
        v1::CancelDone { outcome: v1::cancel_done::Outcome::Cancelled.into(), token: 0, released: false };
    answer(&mut core, cancel, session_response::Body::CancelDone(done), at(3_600));
    let hold = hold(&mut core, "a", 7, 1, 4_000);
    assert_eq!(core.ledger().hold_remaining(hold, at(4_000)), Duration::from_millis(8_300));
}

#[test]
fn before_the_first_answer_any_group_may_be_the_home_that_counts_from_the_opening() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 2_400);
    assert_eq!(core.ledger().hold_remaining(hold, at(2_400)), Duration::from_millis(7_500));
}

#[test]
fn a_grant_in_a_group_whose_deadline_has_passed_waits_for_that_groups_word() {
    let mut core = core();
    let old = hold(&mut core, "a", 7, 1, 0);
    for (sent_at, answered_at) in [(2_500, 2_510), (5_000, 5_010), (7_500, 7_510), (10_000, 10_010)] {
        keepalive(&mut core, sent_at, &[(1, Unavailable), (2, Renewed)], answered_at);
    }
    assert_eq!(state(&mut core, old, 10_020), HoldState::Lost);
    let (sequence, mut answered) = core.acquire(want("b", Wait::Unlimited), at(10_100));
    sent(&mut core, at(10_100));
    answer(&mut core, sequence, granted(9, 1), at(10_200));
    assert!(answered.try_recv().is_err(), "nothing proves that the lease in group 1 stands");
    keepalive(&mut core, 10_201, &[(1, Renewed), (2, Renewed)], 10_250);
    let hold = answered.try_recv().expect("answered").expect("granted");
    assert_eq!(state(&mut core, hold, 10_250), HoldState::Safe);
}

#[test]
fn a_lock_whose_release_is_under_way_is_not_safe() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    let (_, _answered) = core.release(hold, at(100));
    assert_eq!(state(&mut core, hold, 100), HoldState::Safe);
    sent(&mut core, at(101));
    assert_eq!(state(&mut core, hold, 101), HoldState::InDoubt);
}

#[test]
fn the_session_ends_everything_when_the_server_says_so() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    let (_, mut waiting) = core.acquire(want("b", Wait::Unlimited), at(10));
    let keepalive = sequence_of(&sent(&mut core, at(2_500)), "keepalive");
    answer(&mut core, keepalive, failure("session_lost"), at(2_600));
    assert_eq!(state(&mut core, hold, 2_600), HoldState::Lost);
    assert!(matches!(waiting.try_recv(), Ok(Err(crate::AcquireError::SessionLost { .. }))));
    assert!(core.finished());
}

#[test]
fn a_session_that_missed_its_deadline_is_closed_at_the_server_once_more() {
    let mut core = core();
    core.tick(at(9_900));
    assert_eq!(core.ledger().end(), Some(&LossReason::Deadline));
    assert_eq!(kinds(&sent(&mut core, at(9_900))), ["close"]);
    assert!(!core.finished());
    core.tick(at(14_900));
    assert!(core.finished());
}

#[test]
fn a_forced_end_is_told_at_once_and_another_token_is_another_hold() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    let ended = |token| {
        let name = v1::Name { text: "a".into(), election: false };
        session_response::Body::HoldEnded(v1::HoldEnded {
            name: Some(name),
            token,
            what: "force_released".into(),
        })
    };
    answer(&mut core, 0, ended(6), at(100));
    assert_eq!(state(&mut core, hold, 100), HoldState::Safe);
    answer(&mut core, 0, ended(7), at(101));
    assert_eq!(state(&mut core, hold, 101), HoldState::Lost);
    assert_eq!(core.loss_of(hold), LossReason::Ended("force_released".into()));
    // And a keepalive finds out whether the session went with it.
    assert_eq!(kinds(&sent(&mut core, at(102))), ["keepalive"]);
}
