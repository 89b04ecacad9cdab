//! The only place of these tests that sleeps: between two looks at a condition that has a deadline, and to disturb at different
//! points.

use std::time::Duration;

/// Pause before a condition is looked at again.
pub(crate) async fn look_again() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// Lets a disturbance last, or come later. Nothing is assumed to have happened meanwhile.
pub(crate) async fn disturb_for(time: Duration) {
    tokio::time::sleep(time).await;
}
