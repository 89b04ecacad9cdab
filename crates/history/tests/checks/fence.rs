//! I3: no lower token after a higher one.

use holdfast_history::Check;

use crate::story::Story;

#[test]
fn growing_and_equal_tokens_are_right() {
    Story::new().write(0, 1, 5, true).write(2, 3, 5, true).write(4, 5, 9, true).write(6, 7, 9, true).good();
}

#[test]
fn a_refused_stale_write_is_right() {
    Story::new().write(0, 1, 9, true).write(2, 3, 5, false).write(4, 5, 9, true).good();
}

#[test]
fn an_accepted_stale_write_is_wrong() {
    let stale = Story::new().write(0, 1, 9, true).write(2, 3, 5, true);
    let found = stale
        .broken(Check::Fence, &["I3 fence on \"a\"", "\"file\" accepted a write with token 5", "token 9"]);
    assert_eq!(found.lock.as_deref(), Some("a"));
}

#[test]
fn a_refused_write_convicts_nobody() {
    Story::new().write(0, 1, 9, false).write(2, 3, 5, true).good();
}

#[test]
fn writes_that_overlap_in_time_may_have_come_in_any_order() {
    Story::new().write(0, 4, 5, true).write(1, 3, 9, true).good();
    Story::new().write(1, 3, 9, true).write(2, 4, 5, true).good();
    Story::new()
        .write(1, 3, 9, true)
        .write(2, 4, 5, true)
        .write(3, 5, 8, true)
        .broken(Check::Fence, &["token 8"]);
}

#[test]
fn a_higher_write_still_under_way_does_not_hide_an_earlier_one() {
    let hidden = Story::new().write(0, 1, 7, true).write(0, 9, 9, true);
    hidden
        .write(2, 10, 6, true)
        .broken(Check::Fence, &["after object \"file\" accepted a write with token 7"]);
}
