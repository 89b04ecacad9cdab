//! Changes of the partition map as plain data, in the words of the JSON API.

use std::collections::BTreeMap;

use serde::Serialize;

/// A change of the partition map to ask for. Groups are lock groups, numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionRequest {
    /// Spreads what begins with a prefix over groups.
    Split {
        /// The prefix.
        prefix: String,
        /// The groups, at least two.
        into: Vec<u32>,
        /// Segments after the prefix that stand together, from 1.
        depth: u16,
        /// `hash`, `rendezvous`, `range`, or one that the member was built with.
        strategy: String,
        /// The strategy's own settings.
        params: BTreeMap<String, String>,
    },
    /// Brings what begins with a prefix to one group.
    Move {
        /// The prefix.
        prefix: String,
        /// The group.
        to: u32,
    },
    /// Takes the rule of a prefix out.
    Merge {
        /// The prefix.
        prefix: String,
        /// To this group; else back to where the next shorter prefix puts its names.
        to: Option<u32>,
    },
    /// Keeps a prefix in one group until it is unpinned.
    Pin {
        /// The prefix.
        prefix: String,
        /// The group; else where it is.
        to: Option<u32>,
    },
    /// Lifts a pin.
    Unpin {
        /// The prefix.
        prefix: String,
    },
    /// Brings a single lock or election to a group.
    Isolate {
        /// Its name.
        name: String,
        /// The group.
        to: u32,
    },
    /// Lets the rule's own strategy spread a prefix over these groups.
    Spread {
        /// The prefix of the rule.
        prefix: String,
        /// The groups.
        over: Vec<u32>,
    },
}

/// What a change of the partition map comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionPlan {
    /// Its number, where it is carried out.
    pub number: Option<u64>,
    /// The prefix whose rule changes.
    pub prefix: String,
    /// The map that it was planned for.
    pub map_epoch: u64,
    /// What moves, in order.
    pub steps: Vec<PartitionStep>,
}

/// A range that moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionStep {
    /// From this group.
    pub from: u32,
    /// To this one.
    pub to: u32,
    /// Which names, in words.
    pub range: String,
    /// Whether the counts are known.
    pub counted: bool,
    /// Locks and elections held there now.
    pub held: u64,
    /// Waiters behind them.
    pub waiting: u64,
    /// Sessions with either.
    pub sessions: u64,
}

/// The changes of the partition map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionChanges {
    /// The one that is carried out.
    pub under_way: Option<PartitionChange>,
    /// The last ones before it, oldest first.
    pub past: Vec<PartitionChange>,
}

/// One change of the partition map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionChange {
    /// Its number, from 1.
    pub number: u64,
    /// What was asked for, in words.
    pub what: String,
    /// The prefix whose rule changes.
    pub prefix: String,
    /// Who asked.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// Milliseconds since 1970 by the leader's wall clock.
    pub begun_ms: u64,
    /// Its steps.
    pub steps: u32,
    /// Those that are done.
    pub done: u32,
    /// What moves right now.
    pub moving: Option<MovingRange>,
    /// Why it is being stopped, where it is.
    pub stopping: Option<String>,
    /// How it ended, where it has.
    pub end: Option<PartitionChangeEnd>,
}

/// A range that moves right now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MovingRange {
    /// The number of the move.
    pub number: u64,
    /// From this group.
    pub from: u32,
    /// To this one.
    pub to: u32,
    /// Which names, in words.
    pub range: String,
    /// `copying`, `handing_over` or `taking_back`.
    pub stage: String,
    /// How many moves of this range were given up before.
    pub given_up_before: u32,
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionChangeEnd {
    /// Milliseconds since 1970 by the leader's wall clock.
    pub at_ms: u64,
    /// `done`, `stopped` or `failed`; what was done before stays.
    pub how: String,
    /// Why, but for `done`.
    pub why: Option<String>,
}
