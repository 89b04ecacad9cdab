//! Waiting for a condition with a deadline: the only sleep that tests with real processes need.

use std::{
    thread,
    time::{Duration, Instant},
};

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until the condition gives a value; panics with `what` after the deadline.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, within: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        thread::sleep(LOOK_EVERY);
    }
}
