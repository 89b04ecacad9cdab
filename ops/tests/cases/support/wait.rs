//! Waiting: for conditions with a deadline, and for moments that a case's text names.

use std::time::{Duration, Instant};

pub(crate) use crate::harness::eventually;

/// Lets a fault or a lease have its length. Never a way to wait for something to have happened.
pub(crate) fn let_pass(length: Duration) {
    std::thread::sleep(length);
}

/// Lets time pass for a thread that may be woken, by `unpark`.
pub(crate) fn nap(length: Duration) {
    std::thread::park_timeout(length);
}

/// Waits for a moment of the case's story.
pub(crate) fn until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// Lets time pass for a task.
pub(crate) async fn pause(length: Duration) {
    tokio::time::sleep(length).await;
}
