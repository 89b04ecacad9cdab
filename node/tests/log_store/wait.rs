//! The only place of these tests that sleeps: between two looks at a condition that has a deadline.

use std::time::Duration;

/// Pause before a condition is looked at again.
pub(crate) async fn look_again() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}
