//! Whether a figure that was looked at again and again stays where it is. Pure.
//!
//! The first third is warm-up: logs and caches fill. Then the mean of the last third is compared with that of the middle one.

use serde::Serialize;

/// Fewest looks that can be judged: two in each third.
pub(crate) const FEWEST_LOOKS: usize = 6;
/// So much more, in hundredths, is no growth: logs swing between two purges.
const TOLERATED_PERCENT: u64 = 10;

/// What was seen in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Look {
    /// When it ended, seconds after the begin.
    pub(crate) at_s: u64,
    /// Acquires with their releases in it.
    pub(crate) cycles: u64,
    /// Most that the data of all members took, bytes.
    pub(crate) data_bytes: u64,
    /// Most physical memory that all members took, bytes.
    pub(crate) memory_bytes: u64,
}

/// How a figure went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trend {
    /// It stays where it is, or sinks.
    Flat,
    /// It grows.
    Growing,
}

/// A figure over time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Course {
    /// Mean of the middle third, bytes.
    pub(crate) middle_bytes: u64,
    /// Mean of the last third, bytes.
    pub(crate) last_bytes: u64,
    pub(crate) trend: Trend,
}

impl Course {
    /// Judges the figure `of` each look. `slack`: so many bytes more are no growth, however small the figure is.
    pub(crate) fn new(looks: &[Look], of: impl Fn(&Look) -> u64, slack: u64) -> Self {
        let third = looks.len() / 3;
        let mean = |part: &[Look]| part.iter().map(&of).sum::<u64>() / (part.len() as u64).max(1);
        let (early, last) = looks.split_at(looks.len() - third);
        let middle_bytes = mean(&early[early.len() - third..]);
        let last_bytes = mean(last);
        let tolerated = middle_bytes + (middle_bytes / 100 * TOLERATED_PERCENT).max(slack);
        let trend = if last_bytes > tolerated { Trend::Growing } else { Trend::Flat };
        Self { middle_bytes, last_bytes, trend }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn trend(mib: &[u64]) -> Trend {
        let looks: Vec<Look> =
            mib.iter().map(|mib| Look { data_bytes: mib * MIB, ..Look::default() }).collect();
        Course::new(&looks, |look| look.data_bytes, 4 * MIB).trend
    }

    #[test]
    fn what_fills_and_then_swings_is_flat() {
        assert_eq!(trend(&[1, 50, 100, 104, 98, 101, 99, 103, 100]), Trend::Flat);
        assert_eq!(trend(&[1, 50, 100, 100, 90, 80, 70, 60, 50]), Trend::Flat);
    }

    #[test]
    fn what_goes_on_growing_is_not() {
        assert_eq!(trend(&[10, 20, 30, 40, 50, 60, 70, 80, 90]), Trend::Growing);
        assert_eq!(trend(&[100, 100, 100, 100, 100, 100, 112, 112, 112]), Trend::Growing);
    }

    #[test]
    fn a_little_of_little_is_no_growth() {
        assert_eq!(trend(&[1, 1, 2, 2, 4, 4]), Trend::Flat);
        assert_eq!(trend(&[1, 1, 2, 2, 8, 8]), Trend::Growing);
        assert_eq!(trend(&[]), Trend::Flat);
    }
}
