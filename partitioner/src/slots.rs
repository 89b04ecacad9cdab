//! A compact, canonical set of hash slots. Knows nothing of what the slots stand for.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// A set of slot numbers, kept as sorted runs that neither touch nor overlap: the same set has the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SlotSet {
    /// First and last slot of each run, both inclusive.
    runs: Vec<(u16, u16)>,
}

impl SlotSet {
    /// Whether `slot` is in the set.
    #[must_use]
    pub fn contains(&self, slot: u16) -> bool {
        self.runs.iter().any(|(first, last)| (*first..=*last).contains(&slot))
    }

    /// How many slots are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(|(first, last)| usize::from(last.saturating_sub(*first)) + 1).sum()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The slots in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.runs.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The sorted runs, each as its first and last slot.
    #[must_use]
    pub fn runs(&self) -> &[(u16, u16)] {
        &self.runs
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Self {
        let mut sorted: Vec<u16> = slots.into_iter().collect();
        sorted.sort_unstable();
        let mut runs: Vec<(u16, u16)> = Vec::new();
        for slot in sorted {
            match runs.last_mut() {
                Some((_, last)) if slot <= last.saturating_add(1) => *last = slot,
                Some(_) | None => runs.push((slot, slot)),
            }
        }
        Self { runs }
    }
}

impl fmt::Display for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.runs.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}
