//! I6: every acquire ends exactly once.

use holdfast_history::{Check, End, Wait};

use crate::story::{MS, Story};

const ENDS: [End; 7] =
    [End::Granted(5), End::Busy, End::TimedOut, End::Cancelled, End::SessionLost, End::Error, End::Unknown];

#[test]
fn one_end_is_right() {
    for end in ENDS {
        Story::new().ask(0, 1, 1, Wait::AtMost(9 * MS)).answer(1, 1, 1, end).good();
    }
}

#[test]
fn two_ends_are_wrong() {
    for second in ENDS.into_iter().filter(|end| !matches!(end, End::Granted(_))) {
        Story::new()
            .ask(0, 1, 1, Wait::Unlimited)
            .answer(1, 1, 1, End::Unknown)
            .answer(2, 1, 1, second)
            .broken(Check::Ends, &["acquire 1 ended twice", "does not know"]);
    }
}

#[test]
fn an_end_without_beginning_is_wrong() {
    let story = Story::new().answer(1, 1, 1, End::Busy);
    story.broken(Check::Ends, &["I6 ends on \"a\"", "no such acquire was under way"]);
}

#[test]
fn a_number_begins_once_at_a_time() {
    let twice = Story::new().ask(0, 1, 1, Wait::Try).ask(1, 2, 1, Wait::Try).answer(2, 2, 1, End::Busy);
    twice.broken(Check::Ends, &["acquire 1 began twice"]);
}

#[test]
fn an_acquire_that_is_forgotten_is_found_at_the_end() {
    let forgotten = Story::new().ask(0, 1, 1, Wait::Unlimited).hold(7, 2, 5).release(9, 2, 5);
    forgotten.broken(Check::Ends, &["sent acquire 1 at 0.000000 s and it never ended", "over at 0.009000 s"]);
}

#[test]
fn a_dead_clients_acquire_needs_no_end() {
    Story::new().open(0, 1, 1_000).ask(0, 1, 1, Wait::Unlimited).silent(5, 1).good();
}
