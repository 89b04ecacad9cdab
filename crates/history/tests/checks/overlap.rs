//! I1: one holder at a time.

use holdfast_history::{Check, End, SessionEnd, Wait};

use crate::story::Story;

#[test]
fn holds_that_follow_each_other_are_right() {
    Story::new().hold(0, 1, 5).release(10, 1, 5).hold(10, 2, 6).release(12, 2, 6).hold(13, 1, 7).good();
}

#[test]
fn a_grant_before_the_release_was_sent_overlaps() {
    let found = Story::new().hold(0, 1, 5).hold(10, 2, 6).release(11, 1, 5).broken(
        Check::Overlap,
        &["I1 overlap on \"a\"", "client 1 (session 1)", "token 5", "token 6", "has not"],
    );
    assert_eq!(found.first.unwrap().at, 0);
    assert_eq!(found.second.at, 10_000_000);
}

#[test]
fn events_that_come_in_the_wrong_order_are_judged_by_their_times() {
    let overlap = Story::new().hold(0, 1, 5).release(11, 1, 5).hold(10, 2, 6);
    overlap.broken(Check::Overlap, &["lasts until 0.011000 s"]);
}

#[test]
fn a_hold_ends_with_its_sessions_own_deadline() {
    // TTL 1 s: the deadline is 900 ms after the last acknowledged keepalive was sent.
    let frozen = || Story::new().open(0, 1, 1_000).hold(5, 1, 5);
    frozen().hold(900, 2, 6).good();
    frozen().hold(899, 2, 6).broken(Check::Overlap, &["lasts until 0.900000 s"]);
    frozen().keepalive(500, 510, 1).hold(1_399, 2, 6).broken(Check::Overlap, &[]);
    frozen().keepalive(500, 510, 1).hold(1_400, 2, 6).good();
}

#[test]
fn a_keepalive_counts_from_its_sending() {
    Story::new().open(0, 1, 1_000).hold(5, 1, 5).keepalive(100, 800, 1).hold(1_001, 2, 6).good();
}

#[test]
fn a_hold_ends_when_its_loss_is_noticed_or_its_session_closed() {
    Story::new().hold(0, 1, 5).lost(9, 1, 5).hold(10, 2, 6).good();
    let closed = Story::new().open(0, 1, 10_000).hold(0, 1, 5).session_end(9, 1, SessionEnd::Closed);
    closed.hold(10, 2, 6).good();
}

#[test]
fn a_late_notice_of_loss_does_not_make_the_hold_longer() {
    Story::new()
        .open(0, 1, 1_000)
        .hold(5, 1, 5)
        .hold(1_500, 2, 6)
        .lost(2_000, 1, 5)
        .release(2_001, 2, 6)
        .good();
}

#[test]
fn an_unknown_acquire_holds_nothing() {
    let unknown = Story::new().ask(0, 1, 1, Wait::Unlimited).answer(5, 1, 1, End::Unknown);
    unknown.hold(6, 2, 6).good();
}

#[test]
fn one_bad_grant_is_told_once() {
    Story::new()
        .hold(0, 1, 5)
        .hold(1, 2, 6)
        .release(2, 1, 5)
        .release(3, 2, 6)
        .hold(4, 3, 7)
        .broken(Check::Overlap, &[]);
}

#[test]
fn a_session_overlaps_with_itself_too() {
    Story::new().hold(0, 1, 5).hold(1, 1, 6).broken(Check::Overlap, &["token 5", "token 6"]);
}
