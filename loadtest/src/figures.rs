//! What is counted and timed in a run. Knows no driver and no output.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::Serialize;

/// So many parts, so that threads seldom meet.
const PARTS: usize = 8;
/// Three significant digits are a thousandth of each value.
const DIGITS: u8 = 3;
/// Different texts of errors that are kept; more only count.
const KEPT_TEXTS: usize = 10;

/// Times of one operation, in microseconds; nothing is kept before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Option<Histogram<u64>>);

/// The figures of times that are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl Times {
    /// Takes in a length of time in nanoseconds.
    pub(crate) fn record(&mut self, nanos: u64) {
        if self.0.is_none() {
            self.0 = Histogram::new(DIGITS).ok();
        }
        if let Some(histogram) = &mut self.0 {
            // It grows as needed: no value is out of range.
            let _ = histogram.record(nanos.div_ceil(1_000).max(1));
        }
    }

    fn add(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (Some(histogram), Some(other)) => {
                let _ = histogram.add(other);
            }
            (None, Some(other)) => self.0 = Some(other.clone()),
            (_, None) => {}
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        let Some(histogram) = &self.0 else { return Quantiles::default() };
        let at = |quantile| histogram.value_at_quantile(quantile);
        Quantiles { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: histogram.max() }
    }
}

/// Everything that the clients of a run count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) acquire: Times,
    pub(crate) release: Times,
    pub(crate) handover: Times,
    pub(crate) cycles: u64,
    pub(crate) errors: u64,
    pub(crate) error_texts: BTreeMap<String, u64>,
}

impl Figures {
    /// Counts what went wrong.
    pub(crate) fn error(&mut self, text: String) {
        self.errors += 1;
        if self.error_texts.len() < KEPT_TEXTS || self.error_texts.contains_key(&text) {
            *self.error_texts.entry(text).or_default() += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        self.acquire.add(&other.acquire);
        self.release.add(&other.release);
        self.handover.add(&other.handover);
        self.cycles += other.cycles;
        self.errors += other.errors;
        for (text, count) in &other.error_texts {
            *self.error_texts.entry(text.clone()).or_default() += count;
        }
    }
}

/// Figures that many clients add to.
#[derive(Debug)]
pub(crate) struct Tally {
    parts: Box<[Mutex<Figures>]>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { parts: (0..PARTS).map(|_| Mutex::new(Figures::default())).collect() }
    }

    /// Lets a client add something.
    pub(crate) fn with(&self, client: u32, add: impl FnOnce(&mut Figures)) {
        if let Some(part) = self.parts.get(client as usize % PARTS) {
            add(&mut part.lock());
        }
    }

    /// The sum of all.
    pub(crate) fn total(&self) -> Figures {
        let mut total = Figures::default();
        for part in &self.parts {
            total.add(&part.lock());
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_microseconds() {
        let mut times = Times::default();
        for millis in 1..=1_000 {
            times.record(millis * 1_000_000);
        }
        let told = times.quantiles();
        for (told, exact) in
            [(told.p50, 500_000), (told.p99, 990_000), (told.p999, 999_000), (told.max, 1_000_000)]
        {
            assert!(told.abs_diff(exact) <= exact / 1_000, "{told} for {exact}");
        }
        assert_eq!(times.count(), 1_000);
    }

    #[test]
    fn parts_add_up() {
        let tally = Tally::new();
        for client in 0..100 {
            tally.with(client, |figures| {
                figures.cycles += 1;
                figures.acquire.record(u64::from(client) * 1_000);
                figures.error(format!("error {client}"));
                figures.error("the same".into());
            });
        }
        let total = tally.total();
        assert_eq!((total.cycles, total.errors, total.acquire.count()), (100, 200, 100));
        assert_eq!(total.error_texts.get("the same"), Some(&100));
    }
}
