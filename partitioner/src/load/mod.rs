//! What is measured, as plain data: load of groups, prefixes and names. Knows no clock: whoever measures says how long.

mod meter;
mod top;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::{GroupId, MapEpoch};

pub use meter::{COUNTED_NAMES, COUNTED_PREFIXES, Meter};
pub use top::{Heavy, TopK};

/// What one lock or election name costs its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameLoad {
    /// The name.
    pub name: String,
    /// Log entries in one second that change it, on average over the window.
    pub entries_per_s: u64,
    /// Sessions that stand in its queue and do not hold it, at the end of the window.
    pub waiters: u64,
}

/// What the names below one prefix cost one group. A prefix that is spread has one of these for each of its groups.
///
/// Prefixes are those of the map's rules and, below a rule that keeps names together by their first segments, those
/// segments with the slash after them: what a split could divide. What belongs to such a longer prefix is counted there
/// and not again at the rule's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixLoad {
    /// The prefix.
    pub prefix: String,
    /// The group that was measured.
    pub group: GroupId,
    /// Log entries in one second that change one of its names, on average over the window.
    pub entries_per_s: u64,
    /// Milliseconds that such an entry waited in the group's commit queue, on average over the window.
    pub queue_ms: u64,
    /// Sessions that stand in queues of its names and hold nothing there, at the end of the window.
    pub waiters: u64,
    /// Its dearest names, as far as they were counted.
    pub names: Vec<NameLoad>,
}

/// What a group has to do in all, and whether it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLoad {
    /// Log entries in one second, on average over the window.
    pub entries_per_s: u64,
    /// Milliseconds that an entry waited in the commit queue, on average over the window.
    pub queue_ms: u64,
    /// Whether it is without a leader, or its leader has not applied an entry of its own term.
    pub electing: bool,
    /// Whether it is to be emptied and takes nothing any more.
    pub retired: bool,
}

/// All that was measured in one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loads {
    /// Epoch of the map in force while it was measured.
    pub epoch: MapEpoch,
    /// Every lock group there is.
    pub groups: BTreeMap<GroupId, GroupLoad>,
    /// Prefixes, in any order.
    pub prefixes: Vec<PrefixLoad>,
}

#[cfg(test)]
mod tests;
