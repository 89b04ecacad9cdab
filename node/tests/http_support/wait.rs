//! Waits for a condition, with a deadline.

use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(20);
const EVERY: Duration = Duration::from_millis(10);

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        tokio::time::sleep(EVERY).await;
    }
}
