//! What the cases share: a cluster with its recorded history, and recording clients of three kinds.
//!
//! * [`World`]: the cluster, and the judge of everything that its clients saw.
//! * [`http::Client`] and [`http::Session`]: a client over HTTP, one call at a time.
//! * [`native::Native`]: the Rust client.
//! * [`Puppet`]: the Rust client in a process of its own, which can be paused and killed.

pub(crate) mod http;
pub(crate) mod native;
mod puppet;
mod record;
mod storage;
pub(crate) mod wait;
mod world;

use std::time::Duration;

pub(crate) use holdfast_history::Wait;
pub(crate) use puppet::Puppet;
pub(crate) use record::{Outcome, Record};
pub(crate) use storage::Storage;
pub(crate) use world::World;

/// Published: how long after its time a lease may end.
pub(crate) const S: Duration = Duration::from_secs(2);
/// Published: how long a failover takes at most.
pub(crate) const F: Duration = Duration::from_secs(5);
/// What a busy machine may add to any bound: these tests judge promises, not speed.
pub(crate) const BUSY: Duration = Duration::from_secs(1);
/// Longer than anything that works takes.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Whether the long forms run.
pub(crate) fn soak() -> bool {
    std::env::var_os("HOLDFAST_SOAK").is_some_and(|value| value == "1")
}

/// `short` by default, `long` in a soak.
pub(crate) fn form<T>(short: T, long: T) -> T {
    if soak() { long } else { short }
}

/// Whole seconds.
pub(crate) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Milliseconds.
pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
