//! The boot clock, which goes on while the machine sleeps: leases do too.
//!
//! Does not know the wall clock.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Milliseconds on the boot clock. Only differences mean anything.
pub(crate) fn boot_ms() -> u64 {
    // The monotonic clock stands in where there is no boot clock; there is one on every Linux that runs this.
    let read = clock_gettime(ClockId::CLOCK_BOOTTIME).or_else(|_| clock_gettime(ClockId::CLOCK_MONOTONIC));
    read.map_or(0, |time| u64::try_from(Duration::from(time).as_millis()).unwrap_or(u64::MAX))
}
