//! What is sent, repeated, cancelled and answered (rules R8, R11; promise P5).

use holdfast_proto::v1::{self, acquire};

use super::*;
use crate::{
    acquire_error::AcquireError,
    hold_error::HoldError,
    session::request::MAX_ACQUIRES_ON_THE_WIRE,
    state::{HoldState, LossReason},
};

fn acquire_of(messages: &[(u64, session_request::Body)]) -> (u64, v1::Acquire) {
    let found = messages.iter().find_map(|(sequence, body)| match body {
        session_request::Body::Acquire(acquire) => Some((*sequence, acquire.clone())),
        _ => None,
    });
    found.expect("an acquire")
}

fn released(released: bool) -> session_response::Body {
    session_response::Body::Released(v1::Released { released })
}

#[test]
fn a_repeat_has_the_same_sequence_and_what_remains_of_the_wait() {
    let mut core = core();
    let (sequence, mut answered) = core.acquire(want("a", Wait::AtMost(Duration::from_secs(3))), at(0));
    let first = acquire_of(&sent(&mut core, at(0)));
    assert_eq!((first.0, first.1.wait), (sequence, Some(acquire::Wait::AtMostMs(3_000))));
    core.disconnected("cut".into(), at(1_000));
    let again = acquire_of(&sent(&mut core, at(1_200)));
    assert_eq!((again.0, again.1.wait), (sequence, Some(acquire::Wait::AtMostMs(1_800))));
    answer(&mut core, sequence, granted(7, 1), at(1_300));
    assert!(matches!(answered.try_recv(), Ok(Ok(_))));
}

#[test]
fn an_acquire_that_is_not_answered_is_not_repeated_on_the_same_connection() {
    let mut core = core();
    core.acquire(want("a", Wait::Unlimited), at(0));
    assert_eq!(kinds(&sent(&mut core, at(0))), ["acquire"]);
    assert_eq!(kinds(&sent(&mut core, at(1_000))), [""; 0]);
}

#[test]
fn the_lowest_outstanding_moves_only_with_answers() {
    let mut core = core();
    let (first, mut one) = core.acquire(want("a", Wait::Unlimited), at(0));
    let (second, _two) = core.acquire(want("b", Wait::Unlimited), at(0));
    let lowest: Vec<u64> = sent(&mut core, at(0))
        .iter()
        .filter_map(|(_, body)| match body {
            session_request::Body::Acquire(acquire) => Some(acquire.lowest_outstanding),
            _ => None,
        })
        .collect();
    assert_eq!(lowest, [first, first]);
    answer(&mut core, first, failure("timeout"), at(10));
    assert_eq!(one.try_recv(), Ok(Err(AcquireError::Timeout { name: "a".into() })));
    let (_, _three) = core.acquire(want("c", Wait::Try), at(20));
    assert_eq!(acquire_of(&sent(&mut core, at(20))).1.lowest_outstanding, second);
}

#[test]
fn a_wait_that_stands_in_line_does_not_hold_the_floor_down() {
    let mut core = core();
    let (long, mut answered) = core.acquire(want("a", Wait::Unlimited), at(0));
    sent(&mut core, at(0));
    let (_, _soon) = core.acquire(want("b", Wait::Try), at(4_000));
    assert_eq!(acquire_of(&sent(&mut core, at(4_000))).1.lowest_outstanding, long);
    let (late, _late) = core.acquire(want("c", Wait::Try), at(9_100));
    assert_eq!(acquire_of(&sent(&mut core, at(9_100))).1.lowest_outstanding, late);
    // Its repeat names itself. Where it never reached its group, it is asked anew.
    core.disconnected("cut".into(), at(9_200));
    let repeat = sent(&mut core, at(9_200));
    let lowest = repeat.iter().find_map(|(sequence, body)| match body {
        session_request::Body::Acquire(acquire) if *sequence == long => Some(acquire.lowest_outstanding),
        _ => None,
    });
    assert_eq!(lowest, Some(long));
    answer(&mut core, long, failure("stale_request"), at(9_210));
    assert!(answered.try_recv().is_err());
    core.tick(at(9_300));
    assert!(acquire_of(&sent(&mut core, at(9_300))).0 > late);
}

#[test]
fn a_wait_without_any_connection_ends_unreachable_at_its_limit() {
    let mut core = core();
    let (_, mut answered) = core.acquire(want("a", Wait::AtMost(Duration::from_secs(2))), at(0));
    core.not_connected("connection refused".into());
    core.tick(at(1_999));
    assert!(answered.try_recv().is_err());
    core.tick(at(2_000));
    let reason = "connection refused".to_owned();
    assert_eq!(answered.try_recv(), Ok(Err(AcquireError::Unreachable { name: "a".into(), reason })));
    assert_eq!(kinds(&sent(&mut core, at(2_000))), [""; 0]);
}

#[test]
fn a_wait_whose_answer_is_lost_ends_unknown_and_is_cancelled_once_there_is_a_connection() {
    let mut core = core();
    let (sequence, mut answered) = core.acquire(want("a", Wait::AtMost(Duration::from_secs(2))), at(0));
    sent(&mut core, at(0));
    core.disconnected("cut".into(), at(1_900));
    core.tick(at(3_000));
    assert!(matches!(answered.try_recv(), Ok(Err(AcquireError::Unknown { .. }))));
    let messages = sent(&mut core, at(3_100));
    assert_eq!(kinds(&messages), ["keepalive", "cancel"]);
    let session_request::Body::Cancel(cancel) = &messages[1].1 else { panic!("{messages:?}") };
    assert_eq!((cancel.acquire_sequence, cancel.release_if_granted), (sequence, true));
}

#[test]
fn dropping_an_acquire_cancels_it_and_the_next_one_of_that_name_waits_for_the_answer() {
    let mut core = core();
    let (first, answered) = core.acquire(want("a", Wait::Unlimited), at(0));
    sent(&mut core, at(0));
    drop(answered);
    core.abandon(first, at(100));
    let (_, _next) = core.acquire(want("a", Wait::Unlimited), at(100));
    let (_, _other) = core.acquire(want("b", Wait::Unlimited), at(100));
    let messages = sent(&mut core, at(100));
    assert_eq!(kinds(&messages), ["cancel", "acquire"]);
    assert_eq!(acquire_of(&messages).1.name.map(|name| name.text), Some("b".into()));
    let done =
        v1::CancelDone { outcome: v1::cancel_done::Outcome::Cancelled.into(), token: 0, released: false };
    answer(&mut core, sequence_of(&messages, "cancel"), session_response::Body::CancelDone(done), at(150));
    assert_eq!(kinds(&sent(&mut core, at(150))), ["acquire"]);
}

#[test]
fn dropping_an_acquire_that_was_never_sent_leaves_nothing() {
    let mut core = core();
    let (first, answered) = core.acquire(want("a", Wait::Unlimited), at(0));
    drop(answered);
    core.abandon(first, at(10));
    assert_eq!(kinds(&sent(&mut core, at(10))), [""; 0]);
}

#[test]
fn a_grant_that_crosses_its_cancel_is_given_back() {
    let mut core = core();
    let (first, answered) = core.acquire(want("a", Wait::Unlimited), at(0));
    sent(&mut core, at(0));
    drop(answered);
    core.abandon(first, at(100));
    let cancel = sequence_of(&sent(&mut core, at(100)), "cancel");
    answer(&mut core, first, granted(7, 1), at(110));
    let done = v1::CancelDone { outcome: v1::cancel_done::Outcome::None.into(), token: 0, released: false };
    answer(&mut core, cancel, session_response::Body::CancelDone(done), at(120));
    let messages = sent(&mut core, at(120));
    assert_eq!(kinds(&messages), ["release"]);
    answer(&mut core, messages[0].0, released(true), at(130));
    assert_eq!(core.ledger().live_holds().count(), 0);
}

#[test]
fn a_lost_release_is_repeated_until_it_is_answered() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    let (_, mut answered) = core.release(hold, at(100));
    sent(&mut core, at(100));
    core.disconnected("cut".into(), at(200));
    let messages = sent(&mut core, at(300));
    assert_eq!(kinds(&messages), ["keepalive", "release"]);
    answer(&mut core, sequence_of(&messages, "release"), released(false), at(310));
    assert_eq!(answered.try_recv(), Ok(Ok(false)));
    assert_eq!(core.ledger().hold_state(hold, at(310)), HoldState::Released);
}

#[test]
fn a_release_without_connection_fails_and_the_guard_stays_responsible() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    core.disconnected("cut".into(), at(50));
    let (_, mut answered) = core.release(hold, at(100));
    core.tick(at(5_100));
    assert!(matches!(answered.try_recv(), Ok(Err(HoldError::Unreachable { .. }))));
    // Nothing of it is sent later; the next call is.
    assert_eq!(kinds(&sent(&mut core, at(5_200))), ["keepalive"]);
    let (_, mut answered) = core.release(hold, at(5_300));
    let release = sequence_of(&sent(&mut core, at(5_300)), "release");
    answer(&mut core, release, released(true), at(5_310));
    assert_eq!(answered.try_recv(), Ok(Ok(true)));
}

#[test]
fn a_release_whose_answer_comes_after_its_caller_gave_up_still_ends_the_hold() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    let (sequence, mut answered) = core.release(hold, at(100));
    sent(&mut core, at(100));
    core.tick(at(5_100));
    assert!(matches!(answered.try_recv(), Ok(Err(HoldError::Unknown { .. }))));
    assert_eq!(core.ledger().hold_state(hold, at(5_100)), HoldState::InDoubt);
    answer(&mut core, sequence, released(true), at(5_200));
    assert_eq!(core.ledger().hold_state(hold, at(5_200)), HoldState::Released);
}

#[test]
fn an_acquire_does_not_overtake_the_release_of_a_dropped_guard() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    core.give_back(hold, at(100));
    core.acquire(want("a", Wait::Try), at(100));
    let messages = sent(&mut core, at(100));
    assert_eq!(kinds(&messages), ["release"]);
    answer(&mut core, messages[0].0, released(true), at(110));
    assert_eq!(kinds(&sent(&mut core, at(110))), ["acquire"]);
}

#[test]
fn what_passes_its_deadline_while_the_session_lives_on_is_released() {
    for dropped in [false, true] {
        let mut core = core();
        let hold = hold(&mut core, "a", 7, 1, 0);
        for (sent_at, answered_at) in [(2_500, 2_510), (5_000, 5_010), (7_500, 7_510)] {
            keepalive(
                &mut core,
                sent_at,
                &[(1, v1::LeaseState::Unavailable), (2, v1::LeaseState::Renewed)],
                answered_at,
            );
        }
        core.tick(at(9_900));
        assert_eq!(core.loss_of(hold), LossReason::Deadline);
        if dropped {
            core.give_back(hold, at(9_901));
        }
        // Its group may be back in time by its own clock and keep the lock: the next acquire must find it free.
        let (acquire, _answered) = core.acquire(want("a", Wait::Try), at(9_902));
        let messages = sent(&mut core, at(9_902));
        assert!(!kinds(&messages).contains(&"acquire"), "dropped: {dropped}");
        let release = sequence_of(&messages, "release");
        let token = messages.iter().find_map(|(_, body)| match body {
            session_request::Body::Release(release) => Some(release.token),
            _ => None,
        });
        assert_eq!(token, Some(7));
        answer(&mut core, release, released(true), at(9_950));
        assert_eq!(sequence_of(&sent(&mut core, at(9_950)), "acquire"), acquire);
    }
}

#[test]
fn no_leader_is_retried_under_the_same_sequence() {
    let mut core = core();
    let (sequence, mut answered) = core.acquire(want("a", Wait::Unlimited), at(0));
    sent(&mut core, at(0));
    answer(&mut core, sequence, failure("no_leader"), at(10));
    core.tick(at(10));
    assert_eq!(kinds(&sent(&mut core, at(10))), [""; 0]);
    core.tick(at(100));
    assert_eq!(acquire_of(&sent(&mut core, at(100))).0, sequence);
    answer(&mut core, sequence, granted(7, 1), at(120));
    assert!(matches!(answered.try_recv(), Ok(Ok(_))));
}

#[test]
fn a_wait_that_was_given_up_during_a_break_is_asked_anew_while_its_caller_is_there() {
    let mut core = core();
    let (first, mut answered) = core.acquire(want("a", Wait::AtMost(Duration::from_secs(60))), at(0));
    sent(&mut core, at(0));
    core.disconnected("cut".into(), at(100));
    sent(&mut core, at(9_000));
    answer(&mut core, first, failure("cancelled"), at(9_010));
    assert!(answered.try_recv().is_err());
    core.tick(at(9_100));
    let (second, acquire) = acquire_of(&sent(&mut core, at(9_100)));
    assert!(second > first);
    assert_eq!(acquire.wait, Some(acquire::Wait::AtMostMs(50_900)));
    assert_eq!(acquire.lowest_outstanding, second);
    // The caller knows it by its first number.
    drop(answered);
    core.abandon(first, at(9_200));
    let messages = sent(&mut core, at(9_200));
    let session_request::Body::Cancel(cancel) = &messages[0].1 else { panic!("{messages:?}") };
    assert_eq!(cancel.acquire_sequence, second);
}

#[test]
fn a_try_that_was_only_ever_refused_ends_with_the_refusal() {
    let mut core = core();
    let (sequence, mut answered) = core.acquire(want("a", Wait::Try), at(0));
    for now in (0..5_000).step_by(10) {
        core.tick(at(now));
        if !sent(&mut core, at(now)).is_empty() {
            answer(&mut core, sequence, failure("overloaded"), at(now));
        }
    }
    core.tick(at(5_000));
    assert!(matches!(answered.try_recv(), Ok(Err(AcquireError::Refused(_)))));
}

#[test]
fn more_acquires_than_a_group_keeps_results_for_wait_for_their_turn() {
    let mut core = core();
    let mut first = None;
    for number in 0..=MAX_ACQUIRES_ON_THE_WIRE {
        let (sequence, _) = core.acquire(want(&format!("lock {number}"), Wait::Try), at(0));
        first.get_or_insert(sequence);
    }
    assert_eq!(sent(&mut core, at(0)).len(), MAX_ACQUIRES_ON_THE_WIRE);
    answer(&mut core, first.expect("one"), failure("busy"), at(10));
    assert_eq!(sent(&mut core, at(10)).len(), 1);
}

#[test]
fn a_refused_try_that_went_out_twice_is_ended_by_name() {
    let mut core = core();
    let (sequence, mut answered) = core.acquire(want("a", Wait::Try), at(0));
    sent(&mut core, at(0));
    core.disconnected("cut".into(), at(100));
    assert_eq!(kinds(&sent(&mut core, at(200))), ["keepalive", "acquire"]);
    answer(&mut core, sequence, failure("busy"), at(210));
    assert!(matches!(answered.try_recv(), Ok(Err(AcquireError::Busy { .. }))));
    let messages = sent(&mut core, at(210));
    let Some((cancel, session_request::Body::Cancel(body))) = messages.first() else {
        panic!("{messages:?}")
    };
    assert_eq!((body.acquire_sequence, body.release_if_granted), (sequence, true));
    // The next acquire of the same name does not overtake it.
    let (_, _next) = core.acquire(want("a", Wait::Try), at(220));
    assert_eq!(kinds(&sent(&mut core, at(220))), [""; 0]);
    let done = session_response::Body::CancelDone(v1::CancelDone::default());
    answer(&mut core, *cancel, done, at(230));
    assert_eq!(kinds(&sent(&mut core, at(230))), ["acquire"]);
}

#[test]
fn every_refusal_without_a_record_ends_what_went_out_twice_by_name() {
    for code in ["busy", "already_held", "already_waiting", "too_many_outstanding"] {
        let mut core = core();
        let (sequence, mut answered) = core.acquire(want("a", Wait::Unlimited), at(0));
        sent(&mut core, at(0));
        core.disconnected("cut".into(), at(100));
        sent(&mut core, at(200));
        answer(&mut core, sequence, failure(code), at(210));
        assert!(matches!(answered.try_recv(), Ok(Err(_))), "{code}");
        assert_eq!(kinds(&sent(&mut core, at(210))).first(), Some(&"cancel"), "{code}");
    }
}

#[test]
fn a_refused_try_that_went_out_once_needs_no_cancel() {
    let mut core = core();
    let (sequence, _answered) = core.acquire(want("a", Wait::Try), at(0));
    sent(&mut core, at(0));
    answer(&mut core, sequence, failure("busy"), at(10));
    assert_eq!(kinds(&sent(&mut core, at(10))), [""; 0]);
}

#[test]
fn resuming_names_the_holds_that_are_to_be_watched() {
    let mut core = core();
    let kept = hold(&mut core, "a", 7, 1, 0);
    let gone = hold(&mut core, "b", 8, 1, 0);
    core.give_back(gone, at(10));
    let release = sequence_of(&sent(&mut core, at(10)), "release");
    answer(&mut core, release, released(true), at(20));
    let Some(session_request::Body::Resume(resume)) = core.resume_message().body else { panic!("no resume") };
    assert_eq!(resume.holds.iter().map(|hold| hold.token).collect::<Vec<_>>(), [7]);
    assert_eq!(core.ledger().hold_state(kept, at(20)), HoldState::Safe);
}

#[test]
fn closing_answers_everybody_and_nothing_is_sent_after_it() {
    let mut core = core();
    let hold = hold(&mut core, "a", 7, 1, 0);
    let (_, mut waiting) = core.acquire(want("b", Wait::Unlimited), at(0));
    let mut closed = core.close(at(10));
    let messages = sent(&mut core, at(10));
    answer(&mut core, sequence_of(&messages, "close"), session_response::Body::Closed(v1::Closed {}), at(20));
    assert_eq!(closed.try_recv(), Ok(Ok(())));
    assert!(matches!(waiting.try_recv(), Ok(Err(AcquireError::SessionLost { .. }))));
    assert_eq!(core.ledger().hold_state(hold, at(20)), HoldState::Lost);
    assert!(core.finished());
    assert_eq!(kinds(&sent(&mut core, at(9_000))), [""; 0]);
}

#[test]
fn refusals_are_told_apart() {
    let refused = |code: &str| {
        let mut core = core();
        let (sequence, mut answered) = core.acquire(want("a", Wait::Unlimited), at(0));
        sent(&mut core, at(0));
        answer(&mut core, sequence, failure(code), at(10));
        answered.try_recv().expect("answered").expect_err("refused")
    };
    assert!(matches!(refused("busy"), AcquireError::Busy { .. }));
    assert!(matches!(refused("timeout"), AcquireError::Timeout { .. }));
    assert!(matches!(refused("already_held"), AcquireError::AlreadyHeld { .. }));
    assert!(matches!(refused("already_waiting"), AcquireError::AlreadyWaiting { .. }));
    assert!(matches!(refused("removed"), AcquireError::Removed { .. }));
    assert!(matches!(refused("session_lost"), AcquireError::SessionLost { .. }));
    assert!(matches!(refused("invalid_argument"), AcquireError::Invalid(_)));
    assert!(matches!(refused("internal"), AcquireError::Unknown { .. }));
}
