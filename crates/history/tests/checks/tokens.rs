//! I2: tokens strictly grow.

use holdfast_history::{Check, End, Wait};

use crate::story::Story;

#[test]
fn gaps_are_right() {
    Story::new().hold(0, 1, 5).release(1, 1, 5).hold(2, 2, 900).release(3, 2, 900).hold(4, 1, 901).good();
}

#[test]
fn a_lower_token_is_wrong() {
    let found = Story::new().hold(0, 1, 6).release(1, 1, 6).hold(2, 2, 5);
    found.broken(Check::Tokens, &["token 5", "a higher token before", "token 6"]);
}

#[test]
fn a_repeated_token_is_wrong() {
    let again =
        Story::new().hold(0, 1, 6).release(1, 1, 6).ask(2, 2, 7, Wait::Try).answer(2, 2, 7, End::Granted(6));
    again.broken(Check::Tokens, &["the same token again", "acquire 7"]);
}

#[test]
fn a_token_stays_within_its_bounds() {
    let granted = |token| {
        Story::new().ask(0, 1, 1, Wait::Try).answer(0, 1, 1, End::Granted(token)).release(1, 1, token)
    };
    granted(0).broken(Check::Tokens, &["out of bounds"]);
    granted(1 << 53).broken(Check::Tokens, &["out of bounds"]);
    granted((1 << 53) - 1).good();
}

#[test]
fn a_grant_told_after_the_sessions_deadline_may_be_old() {
    let late = |at| {
        Story::new()
            .open(0, 1, 1_000)
            .ask(1, 1, 5, Wait::Unlimited)
            .hold(1_200, 2, 6)
            .release(1_201, 2, 6)
            .answer(at, 1, 5, End::Granted(5))
    };
    late(1_300).good();
    let in_time = late(1_300).events;
    let mut renewed = Story::new().open(0, 1, 1_000).keepalive(1_100, 1_100, 1);
    renewed.events.extend(in_time.into_iter().skip(1));
    renewed.broken(Check::Tokens, &["a higher token before"]);
}
