//! The state of a group for a new cluster, from its state in a lost one (rule R20).
//!
//! What happened in the lost cluster after this state is not known: whoever held a lock then may still believe in it. So all
//! sessions have ended, the revision begins a new incarnation, above every token that was ever handed out, and nothing is
//! granted at first. Ordinary keys stay. Knows nothing of the other groups, nor of where the state comes from.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use bytes::Bytes;
use holdfast_partitioner::{GroupId, MapEpoch, Range, covers};

use super::{Key, LockTable, State};
use crate::{
    ids::{MoveNumber, Revision},
    invariants::{self, Violation},
    route,
};

/// What a group gets in the new cluster.
#[derive(Clone, Copy, Debug)]
pub struct Restoring<'a> {
    /// The incarnation, above that of the state.
    pub incarnation: u64,
    /// What the group owns by the map of the new cluster; not sealed, not on its way.
    pub ranges: &'a [Range],
    /// The epoch of that map.
    pub map_epoch: MapEpoch,
    /// The move, if there is one, of which the restored meta group does not know yet how it ends.
    pub undecided: Option<MoveNumber>,
    /// How long nothing is granted, in milliseconds; `None`: the operator answers for that nobody holds anything.
    pub pause_ms: Option<u64>,
}

/// Why a state cannot be restored. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreRefusal {
    /// Tokens of this incarnation may have been handed out.
    #[error("group {group} is in incarnation {found} already, so {asked} is too low: tokens would go back")]
    IncarnationTooLow {
        /// The group.
        group: GroupId,
        /// Its incarnation.
        found: u64,
        /// The one asked for.
        asked: u64,
    },
    /// There are no higher ones.
    #[error(
        "incarnation {asked} is out of range: the highest is {}; revisions would not fit a token",
        Revision::LAST_INCARNATION
    )]
    IncarnationsUsedUp {
        /// The one asked for.
        asked: u64,
    },
    /// A range would be in two groups, or in none.
    #[error(
        "group {group} is in the middle of move {move_number}, and it is not decided in the state of group 0; restore a set that was taken before or after it"
    )]
    Undecided {
        /// The group.
        group: GroupId,
        /// The move.
        move_number: MoveNumber,
    },
    /// The state is older than the map.
    #[error(
        "the state of group {group} does not fit the partition map: it lacks names below {prefix:?} that the map gives it; restore snapshots that were taken as one set"
    )]
    OtherMap {
        /// The group.
        group: GroupId,
        /// Where something is missing.
        prefix: alloc::string::String,
    },
    /// What came of it breaks a rule.
    #[error("the restored state of group {group} breaks a rule: {violation}")]
    Inconsistent {
        /// The group.
        group: GroupId,
        /// Which rule.
        violation: Violation,
    },
}

impl LockTable {
    /// The state for the new cluster.
    ///
    /// # Errors
    /// Any [`RestoreRefusal`].
    pub fn restored(&self, into: &Restoring<'_>) -> Result<Self, RestoreRefusal> {
        let group = self.state.group;
        let revision = self.revision_in(into.incarnation)?;
        if let Some(move_number) = self.state.moves.under_way()
            && into.undecided == Some(move_number)
        {
            return Err(RestoreRefusal::Undecided { group, move_number });
        }
        let came = self.came_by_the_map(into.ranges);
        self.check_has_all(into.ranges, came.map(|(range, _)| range))?;
        let mut state = State::new(group);
        state.revision = revision;
        state.ownership.replace(into.map_epoch, into.ranges);
        // Watches from before are told that what they ask for is gone.
        state.history.compact(Revision(revision.0 + 1));
        let arrived = came.into_iter().flat_map(|(_, keys)| keys);
        for (key, record) in self.state.keys.iter().chain(arrived) {
            let owned = || holdfast_partitioner::owns(into.ranges, &route::of_key(key));
            if record.lease.is_none() && owned() {
                state.keys.insert(key.clone(), record.clone());
            }
        }
        state.paused_ms = into.pause_ms;
        let table = Self::from_state(state);
        match invariants::check(&table) {
            Ok(()) => Ok(table),
            Err(violation) => Err(RestoreRefusal::Inconsistent { group, violation }),
        }
    }

    /// The longest TTL of any session that this state knows, in milliseconds.
    pub fn longest_ttl_ms(&self) -> Option<u64> {
        let here = self.state.sessions.values().map(|session| session.ttl_ms);
        let incoming = self.state.moves.incoming.iter().flat_map(|incoming| incoming.sessions.values());
        let coming = incoming.filter_map(|arriving| Some(arriving.moved.lease.as_ref()?.ttl_ms));
        // A restored cluster that is lost again before it has granted anything has not waited for those before it.
        here.chain(coming).chain(self.state.paused_ms).max()
    }

    fn revision_in(&self, incarnation: u64) -> Result<Revision, RestoreRefusal> {
        let found = self.state.revision.incarnation();
        if incarnation <= found {
            return Err(RestoreRefusal::IncarnationTooLow {
                group: self.state.group,
                found,
                asked: incarnation,
            });
        }
        Revision::start_of(incarnation).ok_or(RestoreRefusal::IncarnationsUsedUp { asked: incarnation })
    }

    /// The import under way, where it is complete and the map gives its range to this group: it was decided.
    fn came_by_the_map(&self, ranges: &[Range]) -> Option<(&Range, &BTreeMap<Bytes, Box<Key>>)> {
        let incoming = self.state.moves.incoming.as_deref()?;
        let decided = incoming.complete.is_some() && covers(ranges, &incoming.range);
        decided.then_some((&incoming.range, &incoming.keys))
    }

    /// A state that is older than the map would have lost what it was given since. One that has never owned anything has
    /// nothing to lose.
    fn check_has_all(&self, ranges: &[Range], came: Option<&Range>) -> Result<(), RestoreRefusal> {
        if !self.has_owned() && self.state.moves.incoming.is_none() {
            return Ok(());
        }
        let has: Vec<Range> = self.state.ownership.ranges().into_iter().chain(came.cloned()).collect();
        match ranges.iter().find(|range| !covers(&has, range)) {
            None => Ok(()),
            Some(missing) => {
                Err(RestoreRefusal::OtherMap { group: self.state.group, prefix: missing.prefix().into() })
            }
        }
    }
}

#[cfg(test)]
mod tests;
