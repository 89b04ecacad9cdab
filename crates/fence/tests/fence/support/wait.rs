//! Waiting for conditions, each with a deadline. The only place of these tests that sleeps.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Pause before a condition is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Waits until `condition` holds, and fails the test if it does not within 30 s.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Looks until `look` finds something, at most for `limit`. Blocks the thread.
pub(crate) fn found_within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
