//! Sessions end neither early (I4), nor do their locks come free late (I5).

use holdfast_history::{Check, End, SessionEnd, Wait};

use crate::story::{MS, Story};

#[test]
fn a_session_lives_its_ttl_from_the_last_keepalives_sending() {
    let told =
        |at| Story::new().open(0, 1, 1_000).keepalive(400, 600, 1).session_end(at, 1, SessionEnd::Lost);
    told(1_400).good();
    told(1_399).broken(
        Check::EarlyExpiry,
        &["I4 early expiry: session 1", "until 1.400000 s", "sent at 0.400000 s"],
    );
}

#[test]
fn closed_forced_and_given_up_sessions_may_be_over_early() {
    for end in [SessionEnd::Closed, SessionEnd::Forced, SessionEnd::Deadline] {
        let ended = Story::new().open(0, 1, 1_000).session_end(100, 1, end);
        ended.session_end(200, 1, SessionEnd::Lost).good();
    }
}

/// Session 1 holds, falls silent at 500, and must be free by 3,500 (TTL 1 s, slack 2 s); session 2 waits.
fn dead_holder() -> Story {
    Story::new()
        .open(0, 1, 1_000)
        .open(0, 2, 60_000)
        .hold(0, 1, 5)
        .ask(10, 2, 12, Wait::Unlimited)
        .silent(500, 1)
}

#[test]
fn a_dead_holders_lock_is_granted_on_in_time() {
    dead_holder().answer(3_500, 2, 12, End::Granted(6)).good();
    dead_holder()
        .answer(3_501, 2, 12, End::Granted(6))
        .broken(Check::LateReclaim, &["session 1, which held it", "free by 3.500000 s"]);
}

#[test]
fn a_waiter_that_is_never_granted_is_found_at_the_end() {
    let still = dead_holder().keepalive(4_000, 4_001, 2);
    let found = still.judge();
    assert_eq!(
        found.iter().map(|found| found.check).collect::<Vec<_>>(),
        [Check::LateReclaim, Check::Ends],
        "{found:#?}"
    );
    assert!(found[0].sentence.contains("still waited at 4.001000 s"), "{}", found[0].sentence);
}

#[test]
fn a_wait_that_times_out_behind_a_dead_holder_is_late_too() {
    let limited = |limit| {
        Story::new()
            .open(0, 1, 1_000)
            .open(0, 2, 60_000)
            .hold(0, 1, 5)
            .silent(500, 1)
            .ask(600, 2, 12, Wait::AtMost(limit * MS))
            .answer(600 + limit, 2, 12, End::TimedOut)
    };
    limited(2_900).good();
    limited(2_901).broken(Check::LateReclaim, &["timed out"]);
}

#[test]
fn a_late_waiter_gets_its_own_time() {
    let late = Story::new().open(0, 1, 1_000).open(0, 2, 60_000).hold(0, 1, 5).silent(500, 1);
    late.ask(9_000, 2, 12, Wait::Unlimited).answer(9_100, 2, 12, End::Granted(6)).good();
}

#[test]
fn dead_waiters_take_their_turn() {
    // Session 3 is dead too and stood in between: it is granted and holds until its own TTL has passed.
    Story::new()
        .open(0, 1, 1_000)
        .open(0, 2, 60_000)
        .open(0, 3, 5_000)
        .hold(0, 1, 5)
        .ask(5, 3, 13, Wait::Unlimited)
        .ask(10, 2, 12, Wait::Unlimited)
        .silent(500, 1)
        .silent(500, 3)
        .answer(7_500, 2, 12, End::Granted(7))
        .good();
}

#[test]
fn nothing_is_said_where_somebody_unknown_may_hold() {
    dead_holder()
        .open(600, 4, 60_000)
        .ask(601, 4, 14, Wait::Unlimited)
        .answer(700, 4, 14, End::Unknown)
        .answer(9_000, 2, 12, End::Granted(9))
        .good();
}

#[test]
fn a_live_holder_may_hold_for_long() {
    Story::new()
        .open(0, 1, 60_000)
        .open(0, 2, 60_000)
        .hold(0, 1, 5)
        .ask(10, 2, 12, Wait::Unlimited)
        .release(50_000, 1, 5)
        .answer(50_001, 2, 12, End::Granted(6))
        .good();
}
