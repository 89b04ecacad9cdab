//! Since when those who are asked again and again have answered nothing.
//!
//! Whoever is slow answers an earlier question while a later one waits; whoever hangs answers none. One slow answer alone does not
//! tell them apart.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The silences of all who are asked. Clones are the same.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Silences<S: Ord>(Arc<Mutex<BTreeMap<S, Silence>>>);

#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Instant,
    /// Questions without an answer.
    under_way: usize,
}

/// A question, under way until it is answered or dropped.
#[derive(Debug)]
pub(in crate::endpoint) struct Asked<S: Ord + Copy> {
    who: S,
    silences: Silences<S>,
}

impl<S: Ord> Default for Silences<S> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<S: Ord + Copy> Silences<S> {
    /// Somebody is asked now.
    pub(in crate::endpoint) fn ask(&self, who: S) -> Asked<S> {
        let now = Instant::now();
        let mut all = self.0.lock();
        all.entry(who).or_insert(Silence { since: now, under_way: 0 }).under_way += 1;
        Asked { who, silences: self.clone() }
    }

    /// Since when somebody has answered nothing; `None` where no question is under way.
    pub(in crate::endpoint) fn since(&self, who: S) -> Option<Instant> {
        self.0.lock().get(&who).map(|silence| silence.since)
    }
}

impl<S: Ord + Copy> Asked<S> {
    /// There is an answer.
    pub(in crate::endpoint) fn answered(self) {
        if let Some(silence) = self.silences.0.lock().get_mut(&self.who) {
            silence.since = Instant::now();
        }
    }
}

impl<S: Ord + Copy> Drop for Asked<S> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut silence) = self.silences.0.lock().entry(self.who) {
            silence.get_mut().under_way -= 1;
            if silence.get().under_way == 0 {
                silence.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_answers_an_earlier_question_is_not_silent_and_whoever_is_not_asked_neither() {
        let (silences, began) = (Silences::default(), Instant::now());
        assert_eq!(silences.since(1), None);
        let (first, second) = (silences.ask(1), silences.ask(1));
        tokio::time::advance(Duration::from_millis(400)).await;
        let third = silences.ask(1);
        assert_eq!(silences.since(1), Some(began));
        first.answered();
        assert_eq!(silences.since(1), Some(began + Duration::from_millis(400)));
        drop(second);
        assert!(silences.since(1).is_some());
        drop(third);
        assert_eq!(silences.since(1), None, "nothing is asked any more");
    }
}
