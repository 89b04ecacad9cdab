//! Waiting for a moment, where nothing else says when to go on.

use std::time::Instant;

/// Waits until then.
pub(crate) async fn until(moment: Instant) {
    tokio::time::sleep_until(moment.into()).await;
}
