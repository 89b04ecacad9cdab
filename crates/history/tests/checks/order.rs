//! First come, first served where positions are known (order), and nobody in line who gave up (I7).

use holdfast_history::{Check, End, Limits, ReleaseEnd, SessionEnd, Wait, judge};

use crate::story::{MS, Story};

/// Sessions 2 and 3 are seen to wait in this order behind 1, which releases at 100.
fn line() -> Story {
    Story::new()
        .open(0, 1, 60_000)
        .open(0, 2, 60_000)
        .open(0, 3, 60_000)
        .hold(0, 1, 5)
        .ask(10, 2, 12, Wait::Unlimited)
        .ask(11, 3, 13, Wait::Unlimited)
        .queue(20, 22, Some(1), &[2, 3])
        .release(100, 1, 5)
}

#[test]
fn the_first_in_line_comes_first() {
    line().answer(101, 2, 12, End::Granted(6)).release(102, 2, 6).answer(103, 3, 13, End::Granted(7)).good();
}

#[test]
fn whoever_is_passed_over_is_named() {
    line().answer(101, 3, 13, End::Granted(7)).release(102, 3, 7).answer(103, 2, 12, End::Granted(8)).broken(
        Check::Order,
        &["client 3 (session 3) was granted", "session 2", "stood in front", "still waits"],
    );
}

#[test]
fn runs_with_breaks_may_leave_the_order_to_the_tokens() {
    let passed_over = line()
        .answer(101, 3, 13, End::Granted(7))
        .release(102, 3, 7)
        .answer(103, 2, 12, End::Granted(8))
        .release(104, 2, 8);
    assert_eq!(judge(&passed_over.events, Limits { order: false, ..Limits::default() }), []);
}

#[test]
fn whoever_left_the_line_is_not_passed_over() {
    for end in [End::Cancelled, End::Unknown] {
        line().answer(90, 2, 12, end).answer(101, 3, 13, End::Granted(7)).good();
    }
    let expired = line().session_end(90, 2, SessionEnd::Deadline).answer(91, 2, 12, End::SessionLost);
    expired.answer(101, 3, 13, End::Granted(7)).good();
}

#[test]
fn a_waiter_that_gives_up_may_be_told_late() {
    let passed_over = |given_up| {
        let left = if given_up { line().give_up(99, 2, 12) } else { line() };
        left.answer(101, 3, 13, End::Granted(7)).answer(102, 2, 12, End::Cancelled)
    };
    passed_over(true).good();
    passed_over(false).broken(Check::Order, &[]);
}

#[test]
fn a_waiter_whose_limit_has_passed_may_be_told_late() {
    let limited = |limit| {
        Story::new()
            .open(0, 2, 60_000)
            .open(0, 3, 60_000)
            .ask(10, 2, 12, Wait::AtMost(limit * MS))
            .ask(11, 3, 13, Wait::Unlimited)
            .queue(20, 22, Some(1), &[2, 3])
            .answer(101, 3, 13, End::Granted(7))
            .answer(102, 2, 12, End::TimedOut)
    };
    limited(91).good();
    limited(92).broken(Check::Order, &[]);
}

#[test]
fn a_look_that_began_before_the_acquire_tells_nothing_of_it() {
    // What was seen of session 2 may be a wait before this one.
    Story::new()
        .open(0, 2, 60_000)
        .open(0, 3, 60_000)
        .ask(5, 3, 13, Wait::Unlimited)
        .ask(21, 2, 12, Wait::Unlimited)
        .queue(20, 22, Some(1), &[2, 3])
        .answer(101, 3, 13, End::Granted(7))
        .release(102, 3, 7)
        .answer(103, 2, 12, End::Granted(8))
        .good();
}

fn gave_up(end: End) -> Story {
    Story::new().ask(0, 2, 12, Wait::AtMost(MS)).answer(1_000, 2, 12, end)
}

#[test]
fn a_waiter_that_gave_up_leaves_within_the_grace() {
    for end in [End::TimedOut, End::Cancelled, End::Busy, End::Error] {
        gave_up(end).queue(3_000, 3_900, Some(1), &[2]).good();
        gave_up(end)
            .queue(3_001, 3_002, Some(1), &[7, 2])
            .broken(Check::Ghost, &["2.001000 s later", "waiting"]);
        gave_up(end).queue(3_001, 3_002, Some(2), &[]).broken(Check::Ghost, &["as its holder"]);
    }
}

#[test]
fn what_an_earlier_acquire_may_have_left_is_no_ghost_of_a_later_one() {
    let refused = |earlier| {
        let story = Story::new().ask(0, 2, 11, Wait::Unlimited).answer(10, 2, 11, earlier);
        story.ask(20, 2, 12, Wait::Unlimited).answer(30, 2, 12, End::Error).queue(3_001, 3_002, Some(1), &[2])
    };
    refused(End::Unknown).good();
    refused(End::TimedOut).broken(Check::Ghost, &["refused acquire 12"]);
    // So it is with a hold of which nobody knows whether it is over.
    let held = || Story::new().hold(0, 2, 11).release(10, 2, 11);
    let again = |story: Story| {
        story.ask(20, 2, 12, Wait::Unlimited).answer(30, 2, 12, End::Error).queue(3_001, 3_002, Some(2), &[])
    };
    again(held().released(15, 2, 11, ReleaseEnd::Unknown)).good();
    again(Story::new().hold(0, 2, 11).lost(10, 2, 11)).good();
    again(held().released(15, 2, 11, ReleaseEnd::Released)).broken(Check::Ghost, &["as its holder"]);
    // It has been granted since, so that what it left is gone.
    let granted = Story::new().ask(0, 2, 11, Wait::Unlimited).answer(10, 2, 11, End::Unknown);
    let granted = granted.hold(20, 2, 12).release(25, 2, 12);
    granted
        .ask(30, 2, 13, Wait::Unlimited)
        .answer(40, 2, 13, End::Error)
        .queue(3_001, 3_002, Some(1), &[2])
        .broken(Check::Ghost, &[]);
}

#[test]
fn unknown_waits_and_lost_sessions_are_no_ghosts() {
    for end in [End::Unknown, End::SessionLost] {
        gave_up(end).queue(9_000, 9_001, Some(1), &[2]).good();
    }
}

#[test]
fn a_waiter_that_came_back_is_no_ghost() {
    let back = gave_up(End::TimedOut).ask(2_000, 2, 14, Wait::Unlimited).queue(5_000, 5_001, Some(1), &[2]);
    back.answer(5_002, 2, 14, End::Granted(9)).good();
}

#[test]
fn a_ghost_is_told_once() {
    gave_up(End::TimedOut)
        .queue(4_000, 4_001, Some(1), &[2])
        .queue(4_500, 4_501, Some(1), &[2])
        .broken(Check::Ghost, &[]);
}
