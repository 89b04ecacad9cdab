//! Waits for a condition with a deadline.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// Asks again and again until there is an answer.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, within: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begin.elapsed() < within, "not within {} s: {what}", within.as_secs());
        sleep(Duration::from_millis(20));
    }
}
