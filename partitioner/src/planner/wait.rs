//! What keeps the planner from acting at all, whatever the load.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::history::History;
use super::policy::{Mode, Policy};
use crate::ids::{GroupId, MapEpoch};
use crate::load::Loads;
use crate::map::PartitionMap;

/// Why nothing is planned now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// The mode is [`Mode::Off`].
    Off,
    /// The policy contradicts itself.
    BadPolicy {
        /// How.
        why: String,
    },
    /// The load was measured under another map.
    OtherMap {
        /// Epoch of the map in force.
        map: MapEpoch,
        /// Epoch of the map while it was measured.
        measured: MapEpoch,
    },
    /// A group was not measured.
    Unmeasured {
        /// The group.
        group: GroupId,
    },
    /// A group elects.
    Electing {
        /// The group.
        group: GroupId,
    },
    /// A change is under way.
    Changing,
    /// The last move began too short ago.
    CoolDown {
        /// Milliseconds until the pause is over.
        left_ms: u64,
    },
    /// No move is left this hour.
    Budget {
        /// Moves that may begin within an hour.
        moves_per_hour: u32,
    },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("the planner is off"),
            Self::BadPolicy { why } => f.write_str(why),
            Self::OtherMap { map, measured } => {
                write!(f, "the load was measured under map epoch {measured}, the map has epoch {map}")
            }
            Self::Unmeasured { group } => write!(f, "nothing is known of the load of group {group}"),
            Self::Electing { group } => write!(f, "group {group} elects a leader"),
            Self::Changing => f.write_str("a change of the map is under way"),
            Self::CoolDown { left_ms } => {
                write!(
                    f,
                    "the last move was too short ago; changes may begin in {} s",
                    left_ms.div_ceil(1000)
                )
            }
            Self::Budget { moves_per_hour } => {
                write!(f, "the {moves_per_hour} moves of this hour have been made")
            }
        }
    }
}

/// What makes the load of this look useless.
pub(super) fn before_looking(policy: &Policy, map: &PartitionMap, loads: &Loads) -> Option<Wait> {
    if policy.mode == Mode::Off {
        return Some(Wait::Off);
    }
    if let Err(faults) = policy.check() {
        return Some(Wait::BadPolicy { why: alloc::format!("{faults}") });
    }
    if loads.epoch != map.epoch() {
        return Some(Wait::OtherMap { map: map.epoch(), measured: loads.epoch });
    }
    let unmeasured = map.groups().into_iter().find(|group| !loads.groups.contains_key(group));
    unmeasured.map(|group| Wait::Unmeasured { group })
}

/// What forbids any change now, while load goes on to be judged.
pub(super) fn before_planning(
    now_ms: u64,
    policy: &Policy,
    loads: &Loads,
    history: &History,
) -> Option<Wait> {
    if let Some((group, _)) = loads.groups.iter().find(|(_, load)| load.electing) {
        return Some(Wait::Electing { group: *group });
    }
    if history.changing {
        return Some(Wait::Changing);
    }
    let last_ms = history.starts_ms.iter().max();
    let until_ms = last_ms.map(|start| start.saturating_add(policy.cool_down_ms));
    if let Some(until_ms) = until_ms.filter(|until| now_ms < *until) {
        return Some(Wait::CoolDown { left_ms: until_ms - now_ms });
    }
    if history.moves_within_hour(now_ms) >= policy.moves_per_hour as usize {
        return Some(Wait::Budget { moves_per_hour: policy.moves_per_hour });
    }
    None
}
