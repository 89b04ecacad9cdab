//! The clock that deadlines are counted on: monotonic, and running through suspend (rule R7). Knows no wall clock.

use std::time::Duration;

/// A moment on a [`Clock`]. Moments of different clocks are not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// A moment so long after the clock's origin.
    #[cfg(test)]
    pub(crate) const fn at(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// So much later.
    pub(crate) const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// Time from `earlier` to here; zero if that is later.
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Where a client reads the time.
///
/// The default is the machine's boot-time clock, which goes on while the machine sleeps: a laptop that wakes after an
/// hour finds its locks lost, as the servers do.
///
/// ```
/// # use holdfast_client::{Client, Clock};
/// let client = Client::builder().endpoint("http://127.0.0.1:7611").clock(Clock::boot()).build().unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    Boot,
    Std(std::time::Instant),
    Tokio(tokio::time::Instant),
}

impl Clock {
    /// The boot-time clock; where there is none, the standard monotonic clock.
    pub fn boot() -> Self {
        match boot_time() {
            Some(_) => Self(Source::Boot),
            None => Self(Source::Std(std::time::Instant::now())),
        }
    }

    /// tokio's clock, for tests and simulations that pause or drive it.
    pub fn tokio() -> Self {
        Self(Source::Tokio(tokio::time::Instant::now()))
    }

    /// Now. A boot-time clock that can no longer be read stands at the end of time: then every lock is lost.
    pub(crate) fn now(&self) -> Moment {
        Moment(match self.0 {
            Source::Boot => boot_time().unwrap_or(Duration::MAX),
            Source::Std(origin) => origin.elapsed(),
            Source::Tokio(origin) => origin.elapsed(),
        })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_time() -> Option<Duration> {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).ok().map(Duration::from)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_time_runs_forward() {
        let clock = Clock::boot();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(clock.now().since(first) < Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_time_follows_a_paused_clock() {
        let clock = Clock::tokio();
        let first = clock.now();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.now().since(first), Duration::from_secs(3));
    }
}
