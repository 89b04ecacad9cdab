//! Which names the group may change (rule R16): part of the replicated state, never read from a cached map.

use alloc::vec::Vec;

use holdfast_partitioner::{MapEpoch, Range, covers};
use serde::{Deserialize, Serialize};

use crate::outcome::Rejection;

/// The ranges of a group with their states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ownership {
    /// Map epoch at which the ranges changed last; `None` until the group has owned anything.
    since: Option<MapEpoch>,
    ranges: Vec<Owned>,
}

/// One range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owned {
    range: Range,
    state: RangeState,
}

/// What the group may do with a range. Moves add variants at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum RangeState {
    /// Everything.
    Active,
}

impl Ownership {
    /// Whether the group has ever owned anything.
    pub(crate) fn ever(&self) -> bool {
        self.since.is_some()
    }

    /// The map epoch at which the ranges changed last.
    pub(crate) fn epoch(&self) -> MapEpoch {
        self.since.unwrap_or(MapEpoch::NONE)
    }

    /// Takes the first ranges, all active.
    pub(crate) fn begin(&mut self, epoch: MapEpoch, ranges: &[Range]) {
        if ranges.is_empty() {
            return;
        }
        self.since = Some(epoch);
        self.ranges = ranges.iter().map(|r| Owned { range: r.clone(), state: RangeState::Active }).collect();
    }

    /// Gives the group other ranges, by the map of this epoch.
    pub(crate) fn replace(&mut self, epoch: MapEpoch, ranges: &[Range]) {
        self.since = Some(epoch);
        self.ranges = ranges.iter().map(|r| Owned { range: r.clone(), state: RangeState::Active }).collect();
    }

    /// Whether all names of the range belong to the group.
    pub(crate) fn covers(&self, range: &Range) -> bool {
        covers(&self.ranges(), range)
    }

    /// The ranges.
    pub(crate) fn ranges(&self) -> Vec<Range> {
        self.ranges.iter().map(|owned| owned.range.clone()).collect()
    }

    /// Whether the group may change what routes by this internal name.
    pub(crate) fn check(&self, internal: &str) -> Result<(), Rejection> {
        match self.ranges.iter().find(|owned| owned.range.contains(internal)) {
            None => Err(Rejection::NotOwner),
            Some(owned) => match owned.state {
                RangeState::Active => Ok(()),
            },
        }
    }
}
