//! The clocks of a run: the world's, and one per member that may run a little faster or slower and whose wall clock may
//! be set wrong.
//!
//! All in milliseconds. Nothing here moves by itself.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use holdfast_node::clock::Clock;

/// What the wall clocks show when a run begins: some day in 2026.
const EPOCH_MS: u64 = 1_780_000_000_000;
/// How long the machines have been up when a run begins.
const UP_MS: u64 = 10_000_000;

/// The world's clock, which nobody in the simulation but clients and checks can see. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct World(Arc<AtomicU64>);

impl World {
    /// Milliseconds since the run began.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A millisecond passes.
    pub fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The clocks of one member; they go on when it restarts. Clones are the same clocks.
#[derive(Clone, Debug)]
pub struct MemberClock {
    boot_ms: Arc<AtomicU64>,
    wall_off_ms: Arc<AtomicI64>,
    /// By how many millionths it runs fast, or slow where negative.
    drift_ppm: i64,
    /// Millionths of a millisecond that it is ahead of what it has shown.
    ahead: i64,
}

impl MemberClock {
    /// Clocks that drift so many millionths.
    #[must_use]
    pub fn new(drift_ppm: i64) -> Self {
        Self { boot_ms: Arc::new(AtomicU64::new(UP_MS)), wall_off_ms: Arc::default(), drift_ppm, ahead: 0 }
    }

    /// A millisecond of the world passes: answers how many pass here, 1 as a rule.
    pub fn step(&mut self) -> u64 {
        self.ahead += 1_000_000 + self.drift_ppm;
        let passed = self.ahead / 1_000_000;
        self.ahead -= passed * 1_000_000;
        let passed = u64::try_from(passed).unwrap_or(0);
        self.boot_ms.fetch_add(passed, Ordering::Relaxed);
        passed
    }

    /// Somebody sets the wall clock.
    pub fn step_wall(&self, by_ms: i64) {
        self.wall_off_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// The clocks as a member reads them.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let (boot, wall, off) = (self.boot_ms.clone(), self.boot_ms.clone(), self.wall_off_ms.clone());
        Clock::injected(
            move || boot.load(Ordering::Relaxed),
            move || {
                let now = EPOCH_MS + wall.load(Ordering::Relaxed);
                now.saturating_add_signed(off.load(Ordering::Relaxed))
            },
        )
    }
}
