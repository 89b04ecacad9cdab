//! Small random numbers for jitter and first choices: seeded, so that a run can be repeated. Not for secrets.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A seeded sequence of numbers (SplitMix64), shared by everything in one client.
#[derive(Debug)]
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `base` doubled per attempt up to `max`, of which between a half and all.
    pub(crate) fn backoff(&self, attempt: u32, base: Duration, max: Duration) -> Duration {
        let full = base.saturating_mul(1 << attempt.min(16)).min(max);
        let half = full / 2;
        let half_micros = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
        half + Duration::from_micros(self.next() % half_micros.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_its_maximum_and_never_below_half() {
        let random = Random::new(7);
        let (base, max) = (Duration::from_millis(50), Duration::from_secs(1));
        for attempt in 0..40 {
            let full = base.saturating_mul(1 << attempt.min(16)).min(max);
            let wait = random.backoff(attempt, base, max);
            assert!(wait >= full / 2 && wait <= full, "attempt {attempt}: {wait:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (a, b) = (Random::new(3), Random::new(3));
        assert!((0..10).all(|_| a.next() == b.next()));
    }
}
