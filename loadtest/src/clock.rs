//! The one clock of a run: monotonic nanoseconds. Knows no wall clock.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Nanoseconds since the first reading in this process; never zero.
pub(crate) fn now() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    nanos(ORIGIN.get_or_init(Instant::now).elapsed()).saturating_add(1)
}

/// A length of time in nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits until a moment of this clock.
pub(crate) async fn sleep_until(at: u64) {
    tokio::time::sleep(Duration::from_nanos(at.saturating_sub(now()))).await;
}
