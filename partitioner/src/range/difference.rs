//! Which names of one range are in none of others: what apply asks before a group gives a range away or takes one.
//!
//! Ranges may be cut differently and still hold the same names, because a rule that moves nothing changes the map but no
//! group's state. Where two ranges cannot be compared, nothing is taken away: [`covers`] may say no where all names are
//! there, never yes where one is missing.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Part, Range};
use crate::name::{MAX_NAME_BYTES, key_is_decided};
use crate::slots::SlotSet;

/// Whether every name of `wanted` is in one of `ranges`: a group that seals or drops `wanted` must own all of it.
#[must_use]
pub fn covers(ranges: &[Range], wanted: &Range) -> bool {
    without(wanted, ranges).is_empty()
}

/// Whether both lists hold the same names, however they are cut: the check before one takes the place of the other.
#[must_use]
pub fn same_names(these: &[Range], those: &[Range]) -> bool {
    these.iter().all(|range| covers(those, range)) && those.iter().all(|range| covers(these, range))
}

/// What of `range` is in none of `taken`.
#[must_use]
pub fn without(range: &Range, taken: &[Range]) -> Vec<Range> {
    let mut left = Vec::from([range.clone()]);
    for taken in taken {
        if left.is_empty() {
            break;
        }
        left = left.into_iter().flat_map(|range| minus(range, taken)).collect();
    }
    left
}

fn minus(range: Range, taken: &Range) -> Vec<Range> {
    if taken.prefix.len() <= range.prefix.len() {
        return match taken.below(&range.prefix) {
            Some(taken) => minus_at_same_prefix(&range, &taken),
            None => Vec::from([range]),
        };
    }
    match range.below(&taken.prefix) {
        Some(inner) => {
            let mut left = minus_at_same_prefix(&inner, taken);
            left.push(range.excluding([taken.prefix.clone()]));
            left
        }
        None => Vec::from([range]),
    }
}

fn minus_at_same_prefix(range: &Range, taken: &Range) -> Vec<Range> {
    let mut left: Vec<Range> = taken.excluded.iter().filter_map(|longer| range.below(longer)).collect();
    let excluded = || range.excluded.iter().chain(&taken.excluded).cloned();
    let parts = range.part.minus(&taken.part);
    left.extend(parts.into_iter().map(|part| Range::new(range.prefix.as_str(), excluded(), part)));
    left
}

impl Range {
    /// The same without the names below further prefixes.
    fn excluding(&self, more: impl IntoIterator<Item = String>) -> Self {
        Self::new(self.prefix.as_str(), self.excluded.iter().cloned().chain(more), self.part.clone())
    }

    /// What of the range begins with `prefix`, written as a range of that prefix; `None` where that is nothing, or
    /// where `prefix` does not extend the range's own.
    #[must_use]
    pub fn below(&self, prefix: &str) -> Option<Self> {
        let more = prefix.strip_prefix(self.prefix.as_str())?;
        if self.excluded.iter().any(|longer| prefix.starts_with(longer.as_str())) {
            return None;
        }
        let part = self.part.below(&self.prefix, prefix, more)?;
        Some(Self::new(prefix, self.excluded.iter().cloned(), part))
    }
}

impl Part {
    /// The part, seen from the longer prefix `start`, which is `prefix` and `more`.
    fn below(&self, prefix: &str, start: &str, more: &str) -> Option<Self> {
        let depth = match self {
            Self::All => return Some(Self::All),
            Self::Slots { depth, .. } | Self::Keys { depth, .. } => *depth,
        };
        if more.is_empty() {
            return Some(self.clone());
        }
        if key_is_decided(start, prefix, depth) {
            return self.contains(prefix, start).then_some(Self::All);
        }
        // Undecided, so fewer segments than `depth` have ended.
        let ended = u16::try_from(more.matches('/').count()).unwrap_or(u16::MAX);
        let depth = depth.saturating_sub(ended);
        match self {
            Self::All => Some(Self::All),
            Self::Slots { slots, owned, .. } => {
                Some(Self::Slots { depth, slots: *slots, owned: owned.clone() })
            }
            Self::Keys { from, to, .. } => {
                let begins_in_time = from.as_str() <= start || from.starts_with(start);
                let to = match to {
                    Some(to) if to.as_str() <= start => return None,
                    Some(to) if to.starts_with(start) => Some(to.clone()),
                    // Above every key that begins with the start.
                    Some(_) | None => None,
                };
                begins_in_time.then(|| Self::Keys { depth, from: from.clone(), to })
            }
        }
    }

    /// What of the part is not in `taken`, both of one prefix. All of it where they cannot be compared.
    fn minus(&self, taken: &Self) -> Vec<Self> {
        match (self, taken) {
            (_, Self::All) => Vec::new(),
            (Self::All, Self::Slots { depth, slots, .. }) => {
                slots_left((*depth, *slots, &(0..*slots).collect()), taken)
            }
            (Self::Slots { depth, slots, owned }, Self::Slots { .. }) => {
                slots_left((*depth, *slots, owned), taken)
            }
            (Self::All, Self::Keys { depth, .. }) => keys_left((*depth, "", None), taken),
            (Self::Keys { depth, from, to }, Self::Keys { .. }) => {
                keys_left((*depth, from, to.as_deref()), taken)
            }
            (Self::Slots { .. }, Self::Keys { .. }) | (Self::Keys { .. }, Self::Slots { .. }) => {
                Vec::from([self.clone()])
            }
        }
    }
}

/// Depths that cut every name alike.
fn same_depth(one: u16, other: u16) -> bool {
    let whole_name = u16::try_from(MAX_NAME_BYTES).unwrap_or(u16::MAX);
    one.min(whole_name) == other.min(whole_name)
}

fn slots_left((depth, slots, owned): (u16, u16, &SlotSet), taken: &Part) -> Vec<Part> {
    let kept = || Vec::from([Part::Slots { depth, slots, owned: owned.clone() }]);
    let Part::Slots { depth: other_depth, slots: other_slots, owned: other } = taken else { return kept() };
    if !same_depth(depth, *other_depth) {
        return kept();
    }
    // Slot i of n is the slots i, i + n, i + 2n, … of a multiple of n.
    let Some(common) = common_slots(slots, *other_slots) else { return kept() };
    let left = |slot: &u16| {
        let mine = slot.checked_rem(slots).is_some_and(|slot| owned.contains(slot));
        mine && !slot.checked_rem(*other_slots).is_some_and(|slot| other.contains(slot))
    };
    let left: SlotSet = (0..common).filter(left).collect();
    if left.is_empty() { Vec::new() } else { Vec::from([Part::Slots { depth, slots: common, owned: left }]) }
}

/// The smallest number of slots that both tables can be written with.
pub(crate) fn common_slots(one: u16, other: u16) -> Option<u16> {
    let (mut a, mut b) = (one, other);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    one.checked_div(a)?.checked_mul(other)
}

fn keys_left((depth, from, to): (u16, &str, Option<&str>), taken: &Part) -> Vec<Part> {
    let part = |from: &str, to: Option<&str>| Part::Keys { depth, from: from.into(), to: to.map(Into::into) };
    let Part::Keys { depth: other_depth, from: other_from, to: other_to } = taken else {
        return Vec::from([part(from, to)]);
    };
    if !same_depth(depth, *other_depth) {
        return Vec::from([part(from, to)]);
    }
    let mut left = Vec::new();
    let below = to.map_or(other_from.as_str(), |to| to.min(other_from));
    if from < below {
        left.push(part(from, Some(below)));
    }
    if let Some(other_to) = other_to.as_deref() {
        let above = from.max(other_to);
        if to.is_none_or(|to| above < to) {
            left.push(part(above, to));
        }
    }
    left
}

#[cfg(test)]
mod tests;
