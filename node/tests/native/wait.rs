//! Waiting for conditions, with a deadline.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, sleep, timeout};

/// Longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// Waits for something that must happen.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not happen"),
    }
}

/// Asks again and again until the answer is a value.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(value) = ask().await {
            return value;
        }
        assert!(Instant::now() < end, "{what} did not come true");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Lets real time pass: for what must *not* happen meanwhile.
pub(crate) async fn pass(duration: Duration) {
    sleep(duration).await;
}
