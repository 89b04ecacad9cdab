//! Stands in for the crate of this name, which openraft keeps figures of itself with: as much of it as openraft calls.
//!
//! The original computes look-up tables for 16 widths when the first histogram is made, and openraft uses one width: 25 MiB
//! of every member, a quarter of what 100,000 sessions take. Nothing here reads those figures; Holdfast measures what it
//! tells in `node/src/telemetry`. A bucket here is a power of two, so that a percentile is right within a factor of two.

use std::{fmt, marker::PhantomData};

/// One bucket for zero and one for each bit length.
const BUCKETS: usize = u64::BITS as usize + 1;

/// How often values of each bit length were seen. `T` is what the original attaches to periods of time; nothing is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram<T = ()> {
    counts: [u64; BUCKETS],
    periods: PhantomData<T>,
}

impl<T> Default for Histogram<T> {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], periods: PhantomData }
    }
}

impl<T> Histogram<T> {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value was seen.
    pub const fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// A value was seen `count` times.
    pub const fn record_n(&mut self, value: u64, count: u64) {
        let bucket = (u64::BITS - value.leading_zeros()) as usize;
        self.counts[bucket] = self.counts[bucket].saturating_add(count);
    }

    /// How many values were seen.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The least value of the bucket that holds the value at `permille` of all seen, in order; 0 where nothing was seen.
    fn at_permille(&self, permille: u64) -> u64 {
        let rank = u128::from(self.total()) * u128::from(permille) / 1_000;
        let mut below = 0_u128;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += u128::from(*count);
            if below > rank {
                return 1_u64.checked_shl(bucket as u32).map_or(1 << 63, |above| above >> 1);
            }
        }
        0
    }

    /// The percentiles that openraft shows.
    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats {
            samples: self.total(),
            p0_1: self.at_permille(1),
            p1: self.at_permille(10),
            p5: self.at_permille(50),
            p10: self.at_permille(100),
            p50: self.at_permille(500),
            p90: self.at_permille(900),
            p99: self.at_permille(990),
            p99_9: self.at_permille(999),
        }
    }
}

/// Percentiles of a [`Histogram`], each in the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentileStats {
    /// How many values were seen.
    pub samples: u64,
    /// One in a thousand is smaller.
    pub p0_1: u64,
    /// One in a hundred is smaller.
    pub p1: u64,
    /// One in twenty is smaller.
    pub p5: u64,
    /// One in ten is smaller.
    pub p10: u64,
    /// Half are smaller.
    pub p50: u64,
    /// Nine in ten are smaller.
    pub p90: u64,
    /// 99 in a hundred are smaller.
    pub p99: u64,
    /// 999 in a thousand are smaller.
    pub p99_9: u64,
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples, p50 {}, p99 {}, p99.9 {}", self.samples, self.p50, self.p99, self.p99_9)
    }
}

/// Named histograms, shown one a line.
#[derive(Clone, Debug)]
pub struct AsciiChart<T = ()> {
    series: Vec<(String, Histogram<T>)>,
}

impl<T> Default for AsciiChart<T> {
    fn default() -> Self {
        Self { series: Vec::new() }
    }
}

impl<T> AsciiChart<T> {
    /// Nothing to show yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one more.
    #[must_use]
    pub fn add(mut self, name: &str, histogram: Histogram<T>) -> Self {
        self.series.push((name.to_owned(), histogram));
        self
    }

    /// Its lines.
    pub const fn detailed(&self) -> &Self {
        self
    }
}

impl<T> fmt::Display for AsciiChart<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.series
            .iter()
            .try_for_each(|(name, histogram)| writeln!(f, "{name}: {}", histogram.percentile_stats()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_within_a_factor_of_two() {
        let mut histogram = Histogram::<()>::new();
        (1..=1_000).for_each(|value| histogram.record(value));
        let stats = histogram.percentile_stats();
        assert_eq!(stats.samples, 1_000);
        for (found, wanted) in [(stats.p1, 10), (stats.p50, 500), (stats.p90, 900), (stats.p99_9, 999)] {
            assert!(found <= wanted && wanted < found * 2, "{found} for {wanted}");
        }
    }

    #[test]
    fn the_least_and_the_greatest_value_have_buckets() {
        let mut histogram = Histogram::<()>::new();
        assert_eq!(histogram.percentile_stats().p50, 0);
        histogram.record(0);
        histogram.record(u64::MAX);
        let stats = histogram.percentile_stats();
        assert_eq!((stats.samples, stats.p0_1, stats.p99), (2, 0, 1 << 63));
    }

    #[test]
    fn a_chart_has_a_line_for_each_histogram() {
        let mut histogram = Histogram::<()>::new();
        histogram.record(9);
        let chart = AsciiChart::new().add("apply", histogram);
        assert_eq!(chart.detailed().to_string(), "apply: 1 samples, p50 8, p99 8, p99.9 8\n");
    }
}
