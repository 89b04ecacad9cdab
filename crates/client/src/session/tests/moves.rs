//! Holds that move to other groups while they are held, and what may come in between (rules R3, R17; promise P8).
//!
//! Group 1 is where they come from, under epoch 1; a move takes place at epoch 2.

use holdfast_proto::v1::{LeaseState, LeaseState::*, place::State};

use super::*;
use crate::state::{HoldState, LossReason, SessionState};

type Line = (u32, u64, LeaseState);

fn lines(groups: &[Line]) -> session_response::Body {
    let line = |(group, epoch, state): &Line| v1::GroupLease {
        group: *group,
        state: (*state).into(),
        epoch: *epoch,
    };
    let groups = groups.iter().map(line).collect();
    session_response::Body::KeepaliveAck(v1::KeepaliveAck { ttl_ms: 10_000, groups })
}

/// Sends what is due at `sent_at`, a keepalive among it, and answers that 10 ms later. Answers what else was sent.
fn renew(core: &mut Core, sent_at: u64, groups: &[Line]) -> Vec<(u64, session_request::Body)> {
    let messages = sent(core, at(sent_at));
    answer(core, sequence_of(&messages, "keepalive"), lines(groups), at(sent_at + 10));
    messages
}

fn hold_at(core: &mut Core, name: &str, place: (u32, u64), now: u64) -> u64 {
    let (sequence, mut answered) = core.acquire(want(name, Wait::Unlimited), at(now));
    sent(core, at(now));
    answer(core, sequence, granted_at(7, place), at(now));
    answered.try_recv().expect("answered").expect("granted")
}

fn granted_at(token: u64, (group, epoch): (u32, u64)) -> session_response::Body {
    session_response::Body::Granted(v1::Granted { token, group, epoch })
}

fn place(state: State, (group, epoch): (u32, u64), what: &str) -> v1::Place {
    v1::Place { state: state.into(), group, epoch, what: what.into() }
}

fn stands(at: (u32, u64)) -> v1::Place {
    place(State::Stands, at, "")
}

fn located(places: Vec<v1::Place>) -> session_response::Body {
    session_response::Body::Located(v1::Located { places })
}

/// Sends what there is to send now, among it a question for holds; answers its number and their tokens.
fn asked(core: &mut Core, now: u64) -> (u64, Vec<u64>) {
    let messages = sent(core, at(now));
    let question = messages.iter().find_map(|(sequence, body)| match body {
        session_request::Body::Locate(locate) => Some((*sequence, locate.holds.clone())),
        _ => None,
    });
    let (sequence, holds) = question.unwrap_or_else(|| panic!("no question in {messages:?}"));
    (sequence, holds.iter().map(|hold| hold.token).collect())
}

/// Has the hold looked for at `now`, and found 10 ms later.
fn found(core: &mut Core, now: u64, place: v1::Place) {
    let (sequence, tokens) = asked(core, now);
    assert_eq!(tokens, [7]);
    answer(core, sequence, located(vec![place]), at(now + 10));
}

fn state(core: &mut Core, hold: u64, now: u64) -> HoldState {
    core.tick(at(now));
    core.ledger().hold_state(hold, at(now))
}

/// Until when the hold is this session's.
fn until(core: &Core, hold: u64) -> u64 {
    let left = core.ledger().hold_remaining(hold, at(0));
    u64::try_from(left.as_millis()).expect("a time") - 9_900
}

/// A hold in group 1 whose last keepalive before the move was sent at 2,500.
fn before_the_move() -> (Core, u64) {
    let mut core = core();
    let hold = hold_at(&mut core, "a", (1, 1), 0);
    renew(&mut core, 2_500, &[(1, 1, Renewed), (2, 1, Unknown)]);
    assert_eq!(until(&core, hold), 2_500);
    (core, hold)
}

#[test]
fn the_source_renews_nothing_that_may_have_left_it() {
    let (mut core, hold) = before_the_move();
    let mut now = 5_000;
    while now < 12_390 {
        // Asked for again and again, and not answered.
        renew(&mut core, now, &[(1, 2, Renewed), (2, 2, Renewed)]);
        assert_eq!(until(&core, hold), 2_500);
        now += 2_500;
    }
    assert_eq!(state(&mut core, hold, 12_399), HoldState::InDoubt);
    assert_eq!(state(&mut core, hold, 12_400), HoldState::Lost);
    assert_eq!(core.loss_of(hold), LossReason::Deadline);
    assert_eq!(core.ledger().session_state(at(12_400)), SessionState::Safe);
    assert!(!core.ledger().any_astray());
}

#[test]
fn a_hold_that_is_found_lives_by_its_new_group() {
    let (mut core, hold) = before_the_move();
    renew(&mut core, 5_000, &[(1, 2, Renewed), (2, 1, Unknown)]);
    found(&mut core, 5_010, stands((2, 2)));
    // It has what it had, and its group is asked for more at once.
    assert_eq!(until(&core, hold), 2_500);
    assert_eq!(core.ledger().hold(hold).map(|hold| hold.place.group), Some(2));
    renew(&mut core, 5_020, &[(1, 2, Renewed), (2, 2, Renewed)]);
    assert_eq!(until(&core, hold), 5_020);
    assert!(!core.ledger().any_astray());
    // Group 1 counts for it no more, in whatever way it answers.
    renew(&mut core, 7_600, &[(1, 2, Lost), (2, 2, Unavailable)]);
    assert_eq!(until(&core, hold), 5_020);
    assert_eq!(state(&mut core, hold, 7_610), HoldState::Safe);
}

#[test]
fn the_later_deadline_counts_where_the_new_group_knew_the_session() {
    for (first, second) in [(1, 2), (2, 1)] {
        let mut core = core();
        let other = hold_at(&mut core, "b", (2, 1), 0);
        let hold = hold_at(&mut core, "a", (1, 1), 0);
        core.ledger_mut().release_sent(other);
        core.ledger_mut().hold_released(other);
        renew(&mut core, 2_500, &[(first, 1, Renewed), (second, 0, Unavailable)]);
        renew(&mut core, 3_200, &[(first, 0, Unavailable), (second, 1, Renewed)]);
        renew(&mut core, 3_900, &[(1, 2, Renewed), (2, 0, Unavailable)]);
        found(&mut core, 3_910, stands((2, 2)));
        assert_eq!(until(&core, hold), 3_200, "{first} before {second}");
    }
}

#[test]
fn a_hold_that_is_found_where_it_was_takes_what_its_group_acknowledged_meanwhile() {
    let (mut core, hold) = before_the_move();
    renew(&mut core, 5_000, &[(1, 2, Renewed), (2, 2, Unknown)]);
    assert_eq!(until(&core, hold), 2_500);
    found(&mut core, 5_010, stands((1, 2)));
    assert_eq!(until(&core, hold), 5_000);
}

#[test]
fn what_the_source_no_longer_knows_is_looked_for_before_it_is_lost() {
    for end in [Unknown, Lost] {
        let (mut core, hold) = before_the_move();
        renew(&mut core, 5_000, &[(1, 2, end), (2, 2, Renewed)]);
        assert_eq!(state(&mut core, hold, 5_010), HoldState::Safe, "{end:?}");
        found(&mut core, 5_010, stands((2, 2)));
        assert_eq!(until(&core, hold), 5_000, "{end:?}");
        // Under the epoch in which it is known to stand there, it is lost at once.
        let was = renew(&mut core, 5_020, &[(1, 2, Unknown), (2, 2, Lost)]);
        assert_eq!(kinds(&was), ["keepalive"]);
        assert_eq!(state(&mut core, hold, 5_030), HoldState::Lost, "{end:?}");
    }
}

#[test]
fn a_hold_that_has_ended_is_told_so() {
    for (what, reason) in
        [("session_expired", LossReason::Ended("session_expired".into())), ("", LossReason::NotHolder)]
    {
        let (mut core, hold) = before_the_move();
        renew(&mut core, 5_000, &[(1, 2, Unknown), (2, 2, Unknown)]);
        found(&mut core, 5_010, place(State::Ended, (0, 0), what));
        assert_eq!(state(&mut core, hold, 5_020), HoldState::Lost);
        assert_eq!(core.loss_of(hold), reason);
    }
}

#[test]
fn a_hold_that_is_released_while_it_is_looked_for_stays_released() {
    let (mut core, hold) = before_the_move();
    renew(&mut core, 5_000, &[(1, 2, Renewed), (2, 2, Renewed)]);
    let (question, _) = asked(&mut core, 5_010);
    let (_, mut done) = core.release(hold, at(5_011));
    let release = sequence_of(&sent(&mut core, at(5_011)), "release");
    // It is found to have ended before the release is answered, by that very release: the answer tells more.
    answer(&mut core, question, located(vec![place(State::Ended, (0, 0), "released")]), at(5_012));
    assert_eq!(state(&mut core, hold, 5_012), HoldState::InDoubt);
    answer(&mut core, release, session_response::Body::Released(v1::Released { released: true }), at(5_020));
    assert_eq!(done.try_recv(), Ok(Ok(true)));
    assert_eq!(state(&mut core, hold, 5_020), HoldState::Released);
    assert!(!core.ledger().any_astray());
    // The other way round, what is found comes too late.
    let (mut core, hold) = before_the_move();
    renew(&mut core, 5_000, &[(1, 2, Renewed), (2, 2, Renewed)]);
    let (question, _) = asked(&mut core, 5_010);
    core.ledger_mut().release_sent(hold);
    core.ledger_mut().hold_released(hold);
    answer(&mut core, question, located(vec![stands((2, 2))]), at(5_020));
    assert_eq!(state(&mut core, hold, 5_020), HoldState::Released);
    assert_eq!(core.ledger().session_state(at(5_020)), SessionState::Safe);
}

#[test]
fn holds_are_looked_for_until_they_are_found() {
    let (mut core, hold) = before_the_move();
    renew(&mut core, 5_000, &[(1, 2, Renewed), (2, 2, Renewed)]);
    let (first, _) = asked(&mut core, 5_010);
    assert!(!kinds(&sent(&mut core, at(7_500))).contains(&"locate"), "one question at a time");
    // No answer within the time of a keepalive.
    let (second, _) = asked(&mut core, 7_510);
    answer(&mut core, first, located(vec![stands((3, 3))]), at(7_511));
    assert_eq!(core.ledger().hold(hold).map(|hold| hold.place.group), Some(1), "an answer to nothing");
    // Nobody could tell: again, after a pause.
    answer(&mut core, second, located(vec![place(State::Unknown, (0, 0), "")]), at(7_520));
    assert!(!kinds(&sent(&mut core, at(8_100))).contains(&"locate"));
    assert_eq!(core.next_moment(at(8_100), true).map(|moment| moment <= at(8_145)), Some(true));
    let (_, tokens) = asked(&mut core, 8_145);
    assert_eq!(tokens, [7]);
    // A new connection is asked at once.
    core.disconnected("cut".into(), at(8_200));
    let (fourth, _) = asked(&mut core, 8_210);
    answer(&mut core, fourth, failure("overloaded"), at(8_220));
    assert!(!kinds(&sent(&mut core, at(8_230))).contains(&"locate"));
    found(&mut core, 8_900, stands((2, 2)));
    assert_eq!(core.ledger().hold(hold).map(|hold| hold.place.group), Some(2));
}

#[test]
fn answers_from_before_a_move_that_come_after_it_count() {
    let (mut core, hold) = before_the_move();
    let early = sequence_of(&sent(&mut core, at(5_000)), "keepalive");
    let late = sequence_of(&sent(&mut core, at(7_500)), "keepalive");
    answer(&mut core, late, lines(&[(1, 2, Renewed), (2, 2, Renewed)]), at(7_510));
    answer(&mut core, early, lines(&[(1, 1, Renewed), (2, 1, Unknown)]), at(7_520));
    assert_eq!(until(&core, hold), 5_000);
    found(&mut core, 7_530, stands((2, 2)));
    assert_eq!(until(&core, hold), 7_500);
    // And an early end says nothing of what came later.
    let early = sequence_of(&sent(&mut core, at(7_540)), "keepalive");
    answer(&mut core, early, lines(&[(1, 2, Renewed), (2, 1, Lost)]), at(7_550));
    assert_eq!(state(&mut core, hold, 7_550), HoldState::Safe);
}

#[test]
fn a_hold_that_moves_twice_is_found_twice() {
    let (mut core, hold) = before_the_move();
    renew(&mut core, 5_000, &[(1, 2, Renewed), (2, 3, Renewed), (3, 3, Unknown)]);
    // What is found is older than what group 2 has said since: it may have gone on to group 3.
    found(&mut core, 5_010, stands((2, 2)));
    assert_eq!(until(&core, hold), 2_500);
    assert!(core.ledger().any_astray());
    renew(&mut core, 5_020, &[(1, 2, Renewed), (2, 3, Renewed), (3, 3, Unknown)]);
    found(&mut core, 6_000, stands((3, 3)));
    assert_eq!(until(&core, hold), 2_500);
    renew(&mut core, 6_010, &[(1, 2, Renewed), (2, 3, Renewed), (3, 3, Renewed)]);
    assert_eq!(until(&core, hold), 6_010);
    // And back.
    renew(&mut core, 8_510, &[(1, 4, Renewed), (2, 3, Renewed), (3, 4, Renewed)]);
    found(&mut core, 8_520, stands((1, 4)));
    assert_eq!(until(&core, hold), 8_510);
}

#[test]
fn a_group_that_does_not_answer_may_have_given_its_holds_away() {
    let (mut core, hold) = before_the_move();
    renew(&mut core, 5_000, &[(1, 0, Unavailable), (2, 1, Unknown)]);
    assert!(!core.ledger().any_astray(), "no range has changed anywhere");
    renew(&mut core, 7_500, &[(1, 0, Unavailable), (2, 2, Renewed)]);
    found(&mut core, 7_510, stands((2, 2)));
    assert_eq!(until(&core, hold), 7_500);
}

#[test]
fn a_session_that_may_have_come_with_a_range_counts_from_its_oldest_lease() {
    // Also under the epoch under which the group did not know the session: that of a grant may be one from before it.
    for (epoch, expected) in [(1, 2_500), (2, 2_500)] {
        let (mut core, _) = before_the_move();
        let (sequence, mut answered) = core.acquire(want("b", Wait::Unlimited), at(6_000));
        sent(&mut core, at(6_000));
        answer(&mut core, sequence, granted_at(9, (2, epoch)), at(6_000));
        let hold = answered.try_recv().expect("answered").expect("granted");
        assert_eq!(until(&core, hold), expected);
    }
}

#[test]
fn a_place_without_holds_counts_until_all_groups_have_answered_after_its_end() {
    let mut core = core();
    renew(&mut core, 2_500, &[(1, 1, Renewed), (2, 1, Unknown)]);
    renew(&mut core, 5_000, &[(1, 2, Renewed), (2, 0, Unavailable)]);
    // The session may have come to group 2 at epoch 2, with what it had at 2,500.
    let first = hold_at(&mut core, "a", (2, 2), 5_100);
    assert_eq!(until(&core, first), 2_500);
    core.ledger_mut().release_sent(first);
    core.ledger_mut().hold_released(first);
    renew(&mut core, 5_200, &[(1, 2, Renewed), (2, 2, Unknown)]);
    let second = hold_at(&mut core, "b", (2, 3), 5_300);
    assert_eq!(until(&core, second), 5_200);
}

#[test]
fn a_grant_that_is_older_than_the_last_move_is_looked_for_at_once() {
    let mut core = core();
    renew(&mut core, 2_500, &[(1, 1, Renewed), (2, 1, Unknown)]);
    renew(&mut core, 5_000, &[(1, 2, Renewed), (2, 2, Unknown)]);
    let hold = hold_at(&mut core, "a", (1, 1), 5_100);
    assert_eq!(until(&core, hold), 2_500, "by what was acknowledged before its range moved");
    found(&mut core, 5_110, stands((2, 2)));
    assert_eq!(until(&core, hold), 2_500);
    assert_eq!(state(&mut core, hold, 5_120), HoldState::Safe);
}

#[test]
fn a_grant_that_waits_for_its_groups_word_is_found_and_handed_over() {
    let (mut core, old) = before_the_move();
    for sent_at in [5_000, 7_500, 10_000] {
        renew(&mut core, sent_at, &[(1, 0, Unavailable), (2, 1, Renewed)]);
    }
    assert_eq!(state(&mut core, old, 12_400), HoldState::Lost);
    renew(&mut core, 12_405, &[(1, 0, Unavailable), (2, 1, Renewed)]);
    let (sequence, mut answered) = core.acquire(want("b", Wait::Unlimited), at(12_410));
    sent(&mut core, at(12_410));
    answer(&mut core, sequence, granted_at(7, (1, 1)), at(12_420));
    assert!(answered.try_recv().is_err());
    renew(&mut core, 12_500, &[(1, 2, Renewed), (2, 2, Renewed)]);
    assert!(answered.try_recv().is_err(), "it may have left before group 1 renewed anything");
    found(&mut core, 12_510, stands((2, 2)));
    let hold = answered.try_recv().expect("answered").expect("granted");
    assert_eq!(until(&core, hold), 12_500);
}

#[test]
fn many_holds_are_looked_for_in_batches_one_after_the_other() {
    let mut core = core();
    let mut holds = Vec::new();
    for number in 1..=2_500 {
        let (sequence, mut answered) = core.acquire(want(&format!("n{number}"), Wait::Unlimited), at(0));
        sent(&mut core, at(0));
        answer(&mut core, sequence, granted_at(number, (1, 1)), at(0));
        holds.push(answered.try_recv().expect("answered").expect("granted"));
    }
    renew(&mut core, 2_500, &[(1, 2, Renewed), (2, 2, Renewed)]);
    let mut sizes = Vec::new();
    for round in 0..3 {
        let (sequence, tokens) = asked(&mut core, 2_510 + round);
        sizes.push(tokens.len());
        let places = tokens.iter().map(|token| stands(if token % 2 == 0 { (1, 2) } else { (2, 2) }));
        answer(&mut core, sequence, located(places.collect()), at(2_511 + round));
    }
    assert_eq!(sizes, [1_000, 1_000, 500]);
    assert!(!core.ledger().any_astray());
    assert!(holds.iter().all(|hold| until(&core, *hold) == 2_500));
}

#[test]
fn resuming_tells_under_which_epoch_holds_are_known() {
    let (mut core, _) = before_the_move();
    let Some(session_request::Body::Resume(resume)) = core.resume_message().body else { panic!("no resume") };
    assert_eq!(resume.holds.iter().map(|hold| hold.epoch).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_group_that_does_not_renew_while_its_ranges_move_costs_no_connection() {
    let mut core = core();
    hold_at(&mut core, "a", (1, 1), 0);
    for now in (2_600..5_000).step_by(700) {
        renew(&mut core, now, &[(1, 0, Moving), (2, 1, Unknown)]);
        assert!(!core.stalled(at(now + 20)), "at {now}");
    }
    // One that does not answer at all does.
    for now in (5_400..8_300).step_by(700) {
        renew(&mut core, now, &[(1, 0, Unavailable), (2, 1, Unknown)]);
    }
    assert!(core.stalled(at(8_900)));
}

#[test]
fn a_contact_counts_until_all_groups_have_answered_under_one_map() {
    let mut core = core();
    renew(&mut core, 2_500, &[(1, 1, Unknown), (2, 1, Unknown), (3, 1, Renewed)]);
    // It meets group 1 at 3,000, and is over.
    let (over, _) = core.acquire(want("x", Wait::Unlimited), at(3_000));
    sent(&mut core, at(3_000));
    answer(&mut core, over, failure("timeout"), at(3_900));
    let (waits, mut answered) = core.acquire(want("w", Wait::Unlimited), at(4_900));
    sent(&mut core, at(4_900));
    // The range of `w` moves while they answer: group 2 before it has come, group 1 when it has gone.
    renew(&mut core, 5_000, &[(2, 1, Unknown), (1, 2, Unknown), (3, 1, Renewed)]);
    answer(&mut core, waits, granted_at(9, (2, 2)), at(5_100));
    let hold = answered.try_recv().expect("answered").expect("granted");
    assert_eq!(until(&core, hold), 3_000, "group 2 counts from when group 1 was met");
}
