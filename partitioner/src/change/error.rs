//! Why a change cannot be made, in words for the operator who asked for it.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::fault::MapFaults;
use crate::ids::{GroupId, MapEpoch};
use crate::name::NameFault;
use crate::strategy::RegistryError;

/// Why a request comes to nothing. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No name begins with the prefix, or it is no name.
    #[error("{text:?} cannot be used: {fault}")]
    BadText {
        /// The prefix or name.
        text: String,
        /// Why not.
        fault: NameFault,
    },
    /// The group does not exist.
    #[error("there is no lock group {group}; there are {}", listed(.known))]
    UnknownGroup {
        /// The group asked for.
        group: GroupId,
        /// The groups there are.
        known: BTreeSet<GroupId>,
    },
    /// The group only gives.
    #[error("group {group} is retired and takes nothing any more; use one of {}", listed(.usable))]
    RetiredGroup {
        /// The group asked for.
        group: GroupId,
        /// The groups that may be given something.
        usable: BTreeSet<GroupId>,
    },
    /// There is no rule to change.
    #[error("the prefix {prefix:?} has no rule of its own, it follows {covering:?}; prefixes with rules: {}", quoted(.rules))]
    NoRule {
        /// The prefix asked for.
        prefix: String,
        /// The prefix whose rule decides for it.
        covering: String,
        /// The first few prefixes with rules.
        rules: Vec<String>,
    },
    /// A pin is in the way.
    #[error("{prefix:?} belongs to {pinned:?}, which is pinned to group {group}; unpin {pinned:?} first")]
    Pinned {
        /// The prefix or name asked for.
        prefix: String,
        /// The pinned prefix.
        pinned: String,
        /// Its group.
        group: GroupId,
    },
    /// There is no pin to lift.
    #[error("{prefix:?} is not pinned; strategy `{strategy}` spreads it")]
    NotPinned {
        /// The prefix asked for.
        prefix: String,
        /// The strategy of its rule.
        strategy: String,
    },
    /// Where to pin it must be said.
    #[error("{prefix:?} is spread over groups {}; say to which one it shall be pinned", listed(.groups))]
    PinWhere {
        /// The prefix asked for.
        prefix: String,
        /// The groups that own some of it.
        groups: BTreeSet<GroupId>,
    },
    /// One group is no split.
    #[error("a split needs at least two groups, {given} given; use a move to bring {prefix:?} to one group")]
    SplitIntoOne {
        /// The prefix asked for.
        prefix: String,
        /// Groups given.
        given: usize,
    },
    /// Everything below the prefix would stand together.
    #[error("a split of {prefix:?} at depth 0 divides nothing; use a depth of 1 or more")]
    SplitAtDepthZero {
        /// The prefix asked for.
        prefix: String,
    },
    /// The pin is a request of its own.
    #[error("strategy `pinned` does not split; use a pin")]
    SplitByPin,
    /// The catch-all rule stays.
    #[error("the empty prefix has no shorter one to merge into; say to which group it shall go")]
    NothingAbove,
    /// It is as it was asked for.
    #[error("nothing to do for {prefix:?}: {why}")]
    NothingToDo {
        /// The prefix or name asked for.
        prefix: String,
        /// Why.
        why: &'static str,
    },
    /// The strategy refuses, or this member does not have it.
    #[error(transparent)]
    Strategy(#[from] RegistryError),
    /// The strategy left out a group, or used one that it was not given.
    #[error("strategy `{strategy}` gave a table over groups {}, allowed are {}", listed(.found), listed(.allowed))]
    ForeignGroups {
        /// The strategy.
        strategy: String,
        /// The groups of its table.
        found: BTreeSet<GroupId>,
        /// The groups that it was given.
        allowed: BTreeSet<GroupId>,
    },
    /// The map with the change would not be valid.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// Why a step does not apply to a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The map has changed since the step was planned, or an earlier step is missing.
    #[error("the step was planned for map epoch {planned}, the map has epoch {found}; plan it again")]
    OtherMap {
        /// The epoch that the step was planned for.
        planned: MapEpoch,
        /// The epoch of the map.
        found: MapEpoch,
    },
    /// The counter of map epochs is full.
    #[error("the map epoch cannot grow any more")]
    EpochFull,
    /// The map after it would not be valid.
    #[error(transparent)]
    NotValid(#[from] MapFaults),
    /// The step says something else than it does.
    #[error("the step names group {group} for a range that the map gives to another")]
    OtherGroup {
        /// The group.
        group: GroupId,
    },
}

fn listed(groups: &BTreeSet<GroupId>) -> String {
    if groups.is_empty() {
        return "none".into();
    }
    groups.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn quoted(prefixes: &[String]) -> String {
    prefixes.iter().map(|prefix| alloc::format!("{prefix:?}")).collect::<Vec<_>>().join(", ")
}
