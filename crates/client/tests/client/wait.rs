//! Waiting, on the virtual clock of a paused runtime.

use std::{future::Future, time::Duration};

use tokio::time::{sleep, timeout};

/// Longest that anything in these tests may take, in virtual time.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits for something that must happen.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not happen"),
    }
}

/// Lets virtual time pass.
pub(crate) async fn pass(duration: Duration) {
    sleep(duration).await;
}

/// Whether something happens within a time.
pub(crate) async fn happens_within<T>(duration: Duration, future: impl Future<Output = T>) -> bool {
    timeout(duration, future).await.is_ok()
}
