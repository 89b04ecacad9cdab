//! Ids of groups and the version of the partition map. Nothing here knows what a group does.

use core::fmt;

use serde::{Deserialize, Serialize};

/// One Raft group. Group 0 is the meta group, lock groups are 1 and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The group that holds the partition map, members, placement, access rules and audit. It owns no locks.
    pub const META: Self = Self(0);

    /// Whether this is the meta group.
    #[must_use]
    pub const fn is_meta(self) -> bool {
        self.0 == Self::META.0
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Version of the partition map: raised by one for each change. A valid map has epoch 1 or higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MapEpoch(pub u64);

impl MapEpoch {
    /// What a reader that has no map yet says: lower than the epoch of every valid map.
    pub const NONE: Self = Self(0);

    /// The epoch of the first map of a cluster.
    pub const FIRST: Self = Self(1);

    /// The next epoch, or `None` if the counter is full.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(epoch) => Some(Self(epoch)),
            None => None,
        }
    }
}

impl fmt::Display for MapEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
