//! How long the oldest of what is under way has been so: the honest measure of a queue whose speed nobody knows.
//!
//! Decides nothing. Knows not what is under way.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// What is under way. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ages {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    /// Beginnings, apart from each other also where two are at one moment.
    began: BTreeSet<(Instant, u64)>,
}

/// One piece of work; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    ages: Ages,
    key: (Instant, u64),
}

impl Ages {
    /// Notes something that began at this moment.
    pub(crate) fn began(&self, at: Instant) -> UnderWay {
        let mut inner = self.inner.lock();
        inner.next += 1;
        let key = (at, inner.next);
        inner.began.insert(key);
        UnderWay { ages: self.clone(), key }
    }

    /// The age of the oldest; zero where nothing is under way.
    pub(crate) fn oldest(&self) -> Duration {
        let inner = self.inner.lock();
        inner.began.first().map_or(Duration::ZERO, |(at, _)| at.elapsed())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.ages.inner.lock().began.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_counts_until_it_ends() {
        let ages = Ages::default();
        assert_eq!(ages.oldest(), Duration::ZERO);
        let now = Instant::now();
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
        let Some((young, old)) = now.checked_sub(minute).zip(now.checked_sub(hour)) else { return };
        let first = ages.began(young);
        let (second, third) = (ages.began(old), ages.began(old));
        assert!(ages.oldest() >= hour);
        drop(second);
        assert!(ages.oldest() >= hour);
        drop(third);
        assert!((minute..hour).contains(&ages.oldest()));
        drop(first);
        assert_eq!(ages.oldest(), Duration::ZERO);
    }
}
