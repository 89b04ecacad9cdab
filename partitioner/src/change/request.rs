//! What an operator or the planner asks of the map, and what the answer depends on.

use alloc::collections::BTreeSet;
use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::ids::GroupId;
use crate::load::NameLoad;
use crate::map::PartitionMap;
use crate::strategy::{Registry, StrategyRecord};

/// A change to ask for. Every one is about the rule of one prefix; longer prefixes that have rules of their own keep
/// them. Variants are encoded by position: append only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Spreads what begins with a prefix over two groups or more.
    Split {
        /// The prefix. It gets a rule if it has none.
        prefix: String,
        /// The groups that own it afterwards.
        into: BTreeSet<GroupId>,
        /// Segments after the prefix that stand together; at least 1.
        depth: u16,
        /// Which strategy computes the table.
        strategy: StrategyRecord,
    },
    /// Brings what begins with a prefix to one group. It gets a rule if it has none.
    Move {
        /// The prefix.
        prefix: String,
        /// The group.
        to: GroupId,
    },
    /// Takes the rule of a prefix out again: its names go back to where the next shorter prefix puts them.
    Merge {
        /// The prefix.
        prefix: String,
        /// All of it to this group instead. Where the next shorter prefix would not put it there, the rule stays.
        to: Option<GroupId>,
    },
    /// Brings a prefix to one group and keeps it there: no split, move or merge below it until it is unpinned.
    Pin {
        /// The prefix.
        prefix: String,
        /// The group; `None` pins it where it is.
        to: Option<GroupId>,
    },
    /// Lifts a pin. Moves nothing.
    Unpin {
        /// The prefix.
        prefix: String,
    },
    /// Brings a single hot name to another group.
    ///
    /// The name alone, where everything that begins with it stands in one group; where longer names with the same
    /// partition key must stay with it, or hash slots decide, those of its key or slot go with it.
    Isolate {
        /// The lock or election name.
        name: String,
        /// The group.
        to: GroupId,
    },
    /// Lets the rule's own strategy compute a better table over these groups: to fill a new group, or to empty one.
    Spread {
        /// The prefix of the rule.
        prefix: String,
        /// The groups that may own some of it afterwards.
        over: BTreeSet<GroupId>,
    },
}

/// The lock groups there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// Those that may be given something.
    pub usable: BTreeSet<GroupId>,
    /// Those that are being emptied or gone; they may only give.
    pub retired: BTreeSet<GroupId>,
}

/// All that a change depends on.
#[derive(Clone, Copy, Debug)]
pub struct Given<'g> {
    /// The map to change.
    pub map: &'g PartitionMap,
    /// The lock groups there are.
    pub groups: &'g Groups,
    /// The strategies of this member.
    pub registry: &'g Registry,
    /// Measured load by name, as far as it is known. Only strategies that split by load look at it.
    pub names: &'g [NameLoad],
}
