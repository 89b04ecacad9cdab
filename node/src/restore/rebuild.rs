//! From the states of a lost cluster to those of a new one: a function, without disk, clock and network.
//!
//! The map of group 0 decides which group owns what; every group's state must have all that the map gives it. Either all
//! states fit together, or nothing comes of them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;
use holdfast_locktable::table::{LockTable, RestoreRefusal, Restoring};
use holdfast_partitioner::{GroupId, MapEpoch, PartitionMap, Range};

use crate::{
    config::{MAX_LOCK_GROUPS, META_VOTERS},
    log::{group_number::INDEX_END, identity::ClusterId},
    meta::{MetaTable, command::AuditRecord, placement::Placement},
    raft::types::MemberId,
};

/// TTL that is waited for at least, in milliseconds: what a client has that asks for none. Sessions that were opened after the
/// states were taken are in none of them.
const DEFAULT_TTL_MS: u64 = 10_000;
/// Entries that the lost cluster may have appended after the state was taken: the new log begins behind them, so that epochs of
/// sessions, which are indexes, do not come again. A day at 50,000 entries per second.
const LOST_ENTRIES: u64 = 1 << 32;
/// Bits of a map epoch that count within an incarnation, so that a map of the new cluster is newer than any of the lost one.
const EPOCH_BITS: u32 = 32;

/// A state with its place in the log of its group.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The state.
    pub state: T,
    /// Index of the last entry in it.
    pub index: u64,
}

/// What is left of the lost cluster.
#[derive(Clone, Debug)]
pub struct Found {
    /// Group 0.
    pub meta: At<MetaTable>,
    /// The lock groups.
    pub groups: BTreeMap<GroupId, At<LockTable>>,
}

impl Found {
    /// The highest incarnation of any state.
    #[must_use]
    pub fn highest_incarnation(&self) -> u64 {
        self.groups.values().map(|found| found.state.revision().incarnation()).max().unwrap_or(0)
    }

    /// The longest TTL of any session that any state knows, in milliseconds.
    #[must_use]
    pub fn longest_ttl_ms(&self) -> Option<u64> {
        self.groups.values().filter_map(|found| found.state.longest_ttl_ms()).max()
    }
}

/// When the new cluster grants locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grants {
    /// After the longest TTL that is recorded: whoever held a lock in the lost cluster has noticed by then.
    AfterLongestTtl,
    /// At once: the operator answers for that nobody still holds a lock of the lost cluster.
    AtOnce,
}

/// What the new cluster is to be.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Its incarnation.
    pub incarnation: u64,
    /// Its members.
    pub members: BTreeSet<MemberId>,
    /// On how many members each lock group is.
    pub replicas: u16,
    /// When locks are granted.
    pub grants: Grants,
    /// The lost cluster, for the audit log.
    pub lost: &'a ClusterId,
    /// Milliseconds since 1970, for the audit log.
    pub at_ms: u64,
}

/// One group of the new cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its encoded state.
    pub state: Bytes,
    /// Where its log begins.
    pub index: u64,
    /// Who votes in it.
    pub voters: BTreeSet<MemberId>,
    /// Who is sent its log, voters included.
    pub members: BTreeSet<MemberId>,
}

/// The new cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// All groups, group 0 included.
    pub groups: BTreeMap<GroupId, Group>,
    /// How many lock groups there are.
    pub lock_groups: u16,
    /// On how many members each is.
    pub replicas: u16,
    /// How long nothing is granted, in milliseconds.
    pub pause_ms: Option<u64>,
    /// The epoch of its map.
    pub map_epoch: u64,
}

/// Why the states do not make up a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RebuildError {
    /// One state cannot be restored.
    #[error(transparent)]
    Refused(#[from] RestoreRefusal),
    /// Group 0 never had a map.
    #[error(
        "the state of group 0 has no partition map: it was taken before the cluster had begun; restore a later one"
    )]
    NoMap,
    /// The map gives something to a group of which there is no state.
    #[error(
        "there is no state of group {group}, which the restored cluster needs; restore a set that has it"
    )]
    MissingGroup {
        /// The group.
        group: GroupId,
    },
    /// More groups than a cluster may have.
    #[error(
        "the lock groups {found:?} cannot be those of a cluster: they are numbered from 1 on, at most {MAX_LOCK_GROUPS}"
    )]
    BadGroups {
        /// Their numbers.
        found: Vec<u32>,
    },
    /// None, or more copies than members.
    #[error("a cluster needs at least one member and one replica of each group")]
    NoMembers,
    /// The epoch of the map is above the incarnation's.
    #[error(
        "the map epoch {found} is beyond those of incarnation {incarnation}; restore into a higher one with --incarnation"
    )]
    EpochsUsedUp {
        /// The epoch of the restored map.
        found: u64,
        /// The incarnation.
        incarnation: u64,
    },
    /// The log of a group has no room left.
    #[error("the log of group {group} is used up at index {index}")]
    LogUsedUp {
        /// The group.
        group: GroupId,
        /// Where it ended.
        index: u64,
    },
    /// A state cannot be encoded.
    #[error("the restored state of group 0 cannot be encoded: {why}")]
    Encode {
        /// Why.
        why: String,
    },
}

/// Makes the states of the new cluster.
///
/// # Errors
/// See [`RebuildError`].
pub fn rebuild(found: &Found, plan: &Plan<'_>) -> Result<Rebuilt, RebuildError> {
    if plan.members.is_empty() || plan.replicas == 0 {
        return Err(RebuildError::NoMembers);
    }
    let map = next_map(&found.meta.state, plan.incarnation)?;
    let numbers = lock_groups(found, &map)?;
    let pause_ms = match plan.grants {
        Grants::AtOnce => None,
        Grants::AfterLongestTtl => Some(found.longest_ttl_ms().unwrap_or_default().max(DEFAULT_TTL_MS)),
    };
    let placement = placement(found, plan, &numbers);
    let mut groups = BTreeMap::new();
    for group in &numbers {
        let ranges = map.ranges_of(*group);
        let at = state_of(found, *group, &ranges)?;
        let undecided = found.meta.state.changes().undecided();
        let into = Restoring {
            incarnation: plan.incarnation,
            ranges: &ranges,
            map_epoch: map.epoch(),
            undecided,
            pause_ms,
        };
        let state = at.state.restored(&into)?.encode().into();
        let place = placement.as_ref().and_then(|placement| placement.groups.get(group));
        let voters: BTreeSet<MemberId> =
            place.map_or_else(|| plan.members.clone(), |place| place.replicas.iter().copied().collect());
        let index = behind(*group, at.index)?;
        groups.insert(*group, Group { state, index, members: voters.clone(), voters });
    }
    let (lock_groups, map_epoch) = (count(&numbers)?, map.epoch().0);
    groups.insert(GroupId::META, meta_group(found, plan, map, placement)?);
    let replicas = plan.replicas.min(u16::try_from(plan.members.len()).unwrap_or(u16::MAX));
    Ok(Rebuilt { groups, lock_groups, replicas, pause_ms, map_epoch })
}

/// The map of the lost cluster, newer than any that it ever had.
fn next_map(meta: &MetaTable, incarnation: u64) -> Result<PartitionMap, RebuildError> {
    let mut parts = meta.map().ok_or(RebuildError::NoMap)?.clone().into_parts();
    let (found, epoch) = (parts.epoch, MapEpoch(incarnation << EPOCH_BITS));
    if epoch <= found {
        return Err(RebuildError::EpochsUsedUp { found: found.0, incarnation });
    }
    parts.epoch = epoch;
    // It was valid, and the epoch makes no difference to that.
    PartitionMap::try_from(parts).map_err(|_faults| RebuildError::NoMap)
}

/// The state of a group. One that owns nothing needs none: a snapshot set has only the groups of the map.
fn state_of<'a>(
    found: &'a Found,
    group: GroupId,
    ranges: &[Range],
) -> Result<Cow<'a, At<LockTable>>, RebuildError> {
    let Some(at) = found.groups.get(&group) else {
        let nothing = At { state: LockTable::new(group), index: 0 };
        return if ranges.is_empty() {
            Ok(Cow::Owned(nothing))
        } else {
            Err(RebuildError::MissingGroup { group })
        };
    };
    let first_map = found.meta.state.map().is_some_and(|map| map.epoch() == MapEpoch::FIRST);
    match ranges.first() {
        // It has nothing of what moves gave it since; under the first map it had nothing yet.
        Some(missing) if !first_map && !at.state.has_owned() && at.state.move_under_way().is_none() => {
            Err(RestoreRefusal::OtherMap { group, prefix: missing.prefix().into() }.into())
        }
        Some(_) | None => Ok(Cow::Borrowed(at)),
    }
}

/// The lock groups that the new cluster has: those of the map, and those that own nothing. They are numbered without gaps.
fn lock_groups(found: &Found, map: &PartitionMap) -> Result<BTreeSet<GroupId>, RebuildError> {
    let placed = found.meta.state.placement().into_iter().flat_map(|placement| placement.groups.keys());
    let named: BTreeSet<GroupId> =
        map.groups().into_iter().chain(found.groups.keys().copied()).chain(placed.copied()).collect();
    if let Some(last) = named.last()
        && last.0 <= u32::from(MAX_LOCK_GROUPS)
        && !named.contains(&GroupId::META)
    {
        Ok((1..=last.0).map(GroupId).collect())
    } else {
        Err(RebuildError::BadGroups { found: named.iter().map(|group| group.0).collect() })
    }
}

fn count(numbers: &BTreeSet<GroupId>) -> Result<u16, RebuildError> {
    let bad = |_| RebuildError::BadGroups { found: numbers.iter().map(|group| group.0).collect() };
    u16::try_from(numbers.len()).map_err(bad)
}

/// Where the groups are: written down where the lost cluster had that written down, or where not every member has every group.
fn placement(found: &Found, plan: &Plan<'_>, numbers: &BTreeSet<GroupId>) -> Option<Placement> {
    let spreads = usize::from(plan.replicas) < plan.members.len();
    if !spreads && found.meta.state.placement().is_none() {
        return None;
    }
    let groups: Vec<GroupId> = numbers.iter().copied().collect();
    Some(Placement::settled_spread(&plan.members, &groups, plan.replicas))
}

fn meta_group(
    found: &Found,
    plan: &Plan<'_>,
    map: PartitionMap,
    placement: Option<Placement>,
) -> Result<Group, RebuildError> {
    let most = if placement.is_some() { META_VOTERS } else { usize::MAX };
    let line = AuditRecord {
        at_ms: plan.at_ms,
        actor: "restore".to_owned(),
        action: "restore".to_owned(),
        target: format!("cluster {}", plan.lost),
        reason: format!("incarnation {}", plan.incarnation),
        outcome: "ok".to_owned(),
    };
    let state = found.meta.state.restored(map, placement, line);
    let state = state.encode().map_err(|error| RebuildError::Encode { why: error.to_string() })?;
    Ok(Group {
        state: state.into(),
        index: behind(GroupId::META, found.meta.index)?,
        voters: plan.members.iter().copied().take(most).collect(),
        members: plan.members.clone(),
    })
}

/// Where the log goes on: behind everything that the lost cluster may have appended.
fn behind(group: GroupId, index: u64) -> Result<u64, RebuildError> {
    let next = index.saturating_add(LOST_ENTRIES);
    if next < INDEX_END { Ok(next) } else { Err(RebuildError::LogUsedUp { group, index }) }
}

#[cfg(test)]
mod tests;
