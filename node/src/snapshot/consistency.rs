//! Whether snapshots of a cluster's groups make a set: a decision on what each of them says of moves and ownership.
//!
//! A lock is in the group that owns its name. So every snapshot must own exactly what the map in the snapshot of group
//! 0 gives its group, and none may be in the middle of a move: then a move is before all of them or behind all of them,
//! and no lock is in two of them or in none. Pure; it does not matter how the snapshots came about, or in which order.

use std::collections::BTreeMap;

use holdfast_locktable::{ids::MoveNumber, table::LockTable};
use holdfast_partitioner::{GroupId, MapEpoch, PartitionMap, Range, same_names};

use crate::{log::group_number::GroupNumber, meta::MetaTable};

/// What the snapshot of group 0 says of moves and ownership.
#[derive(Clone, Debug)]
pub struct MetaShape {
    map: Option<PartitionMap>,
    moving: Option<MoveNumber>,
}

/// What the snapshot of a lock group says of moves and ownership.
#[derive(Clone, Debug)]
pub struct GroupShape {
    owned: Vec<Range>,
    epoch: MapEpoch,
    moving: Option<MoveNumber>,
}

/// Why snapshots make no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inconsistent {
    /// Group 0 has no partition map.
    #[error("the cluster had no partition map yet")]
    NoMap,
    /// Group 0 was in the middle of a move.
    #[error("move {} was under way", number.0)]
    Moving {
        /// The move.
        number: MoveNumber,
    },
    /// A lock group was in the middle of a move.
    #[error("group {group} took part in move {}", number.0)]
    TakesPart {
        /// The group.
        group: GroupId,
        /// The move.
        number: MoveNumber,
    },
    /// A group of the map has no snapshot.
    #[error("there is no snapshot of group {group}, which the partition map of epoch {epoch} names")]
    Missing {
        /// The group.
        group: GroupId,
        /// The map.
        epoch: MapEpoch,
    },
    /// The map and a group say different things of who owns what.
    #[error("group {group} (epoch {found}) did not own what the partition map of epoch {epoch} gives it")]
    Ownership {
        /// The group.
        group: GroupId,
        /// The map that the group followed.
        found: MapEpoch,
        /// The map.
        epoch: MapEpoch,
    },
    /// There is no snapshot of group 0.
    #[error("there is no snapshot of group 0, which has the partition map")]
    NoMeta,
    /// A snapshot of another kind of group.
    #[error("the snapshot of group {group} has the state of another kind of group")]
    Kind {
        /// The group.
        group: GroupNumber,
    },
}

impl From<&MetaTable> for MetaShape {
    fn from(table: &MetaTable) -> Self {
        let change = table.changes().under_way();
        let moving = change.and_then(|change| change.moving.as_ref()).map(|moving| moving.number);
        Self { map: table.map().cloned(), moving }
    }
}

impl From<&LockTable> for GroupShape {
    fn from(table: &LockTable) -> Self {
        Self { owned: table.owned_ranges(), epoch: table.ownership_epoch(), moving: table.move_under_way() }
    }
}

/// Whether a snapshot of group 0 and these of lock groups make a set; then, its map's epoch.
///
/// # Errors
/// The first reason found why not.
pub fn check(meta: &MetaShape, groups: &BTreeMap<GroupId, GroupShape>) -> Result<MapEpoch, Inconsistent> {
    let map = meta.map.as_ref().ok_or(Inconsistent::NoMap)?;
    let epoch = map.epoch();
    if let Some(number) = meta.moving {
        return Err(Inconsistent::Moving { number });
    }
    if let Some(group) = map.groups().into_iter().find(|group| !groups.contains_key(group)) {
        return Err(Inconsistent::Missing { group, epoch });
    }
    for (group, shape) in groups {
        if let Some(number) = shape.moving {
            return Err(Inconsistent::TakesPart { group: *group, number });
        }
        // A later epoch is of a map that group 0 did not have yet.
        if shape.epoch > epoch || !same_names(&shape.owned, &map.ranges_of(*group)) {
            return Err(Inconsistent::Ownership { group: *group, found: shape.epoch, epoch });
        }
    }
    Ok(epoch)
}

#[cfg(test)]
mod tests;
