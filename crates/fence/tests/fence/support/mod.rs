//! What several tests need: a PostgreSQL server, an HTTP client, a child process, a load with its judge.

pub(crate) mod child;
pub(crate) mod http;
pub(crate) mod load;
pub(crate) mod postgres_server;

use std::{future::Future, time::Duration};

/// Waits until `condition` holds, and fails the test if it does not within 30 s.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "not within 30 s: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
