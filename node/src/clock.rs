//! The two clocks of a member, injected wherever time is read.
//!
//! Deadlines run on the boot clock, which goes on through suspend and never steps (rule R7). The wall clock is only
//! shown to people. Nothing below apply reads either.

use std::{fmt, sync::Arc, time::Duration};

/// A point on the boot clock, in milliseconds since the machine started. Only differences on one machine mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// This point, `ms` milliseconds later.
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this point; 0 where `earlier` is later.
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// How long from this point until `later`; zero where it has passed.
    pub const fn until(self, later: Self) -> Duration {
        Duration::from_millis(later.since_ms(self))
    }
}

/// Source of both clocks: the machine's, or a simulation's.
#[derive(Clone)]
pub struct Clock {
    boot_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    wall_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").finish_non_exhaustive()
    }
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self { boot_ms: Arc::new(system_boot_ms), wall_ms: Arc::new(system_wall_ms) }
    }

    /// Clocks of the caller's, both in milliseconds.
    pub fn injected(
        boot_ms: impl Fn() -> u64 + Send + Sync + 'static,
        wall_ms: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self { boot_ms: Arc::new(boot_ms), wall_ms: Arc::new(wall_ms) }
    }

    /// Now, for deadlines.
    pub fn now(&self) -> Moment {
        Moment((self.boot_ms)())
    }

    /// Milliseconds since 1970, for display.
    pub fn wall_ms(&self) -> u64 {
        (self.wall_ms)()
    }
}

fn system_boot_ms() -> u64 {
    use nix::time::{ClockId, clock_gettime};
    // CLOCK_BOOTTIME exists on every Linux that runs this; the monotonic clock stands in on other systems.
    let read = clock_gettime(ClockId::CLOCK_BOOTTIME).or_else(|_| clock_gettime(ClockId::CLOCK_MONOTONIC));
    read.map_or(0, |t| Duration::from(t).as_millis() as u64)
}

fn system_wall_ms() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_subtract_without_wrapping() {
        let (early, late) = (Moment(5), Moment(9));
        assert_eq!(late.since_ms(early), 4);
        assert_eq!(early.since_ms(late), 0);
        assert_eq!(early.until(late), Duration::from_millis(4));
        assert_eq!(late.until(early), Duration::ZERO);
    }

    #[test]
    fn the_system_clocks_run() {
        let clock = Clock::system();
        assert!(clock.now() > Moment(0));
        assert!(clock.wall_ms() > 1_500_000_000_000);
    }
}
