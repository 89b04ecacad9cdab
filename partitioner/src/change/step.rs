//! One step of a change: a range that goes from one group to another, and what becomes of the map then.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::error::StepError;
use crate::ids::{GroupId, MapEpoch};
use crate::map::{PartitionMap, Rule};
use crate::range::{Range, covers};

/// One step of a [`Change`](super::Change). Complete in itself: who carries it out needs neither the strategy nor the
/// steps before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Epoch of the map that it applies to.
    pub base: MapEpoch,
    /// The prefix whose rule changes.
    pub prefix: String,
    /// Its rule afterwards; `None` takes it out.
    pub rule: Option<Rule>,
    /// The range that moves. `None` where the rule changes and every name stays.
    pub moved: Option<Moved>,
}

/// A range on its way.
///
/// The source checks with [`covers`] that it owns all of it, seals what the range [contains](Range::contains), and
/// drops it in the end. What both groups own afterwards is in the map that [`Step::apply`] gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The group that owns it before.
    pub from: GroupId,
    /// The group that owns it afterwards.
    pub to: GroupId,
    /// Which names.
    pub range: Range,
}

impl Step {
    /// The map after the step.
    ///
    /// # Errors
    /// It is not the map that the step was planned for, or the map after it would not be valid or not say what the step
    /// says.
    pub fn apply(&self, map: &PartitionMap) -> Result<PartitionMap, StepError> {
        if map.epoch() != self.base {
            return Err(StepError::OtherMap { planned: self.base, found: map.epoch() });
        }
        let mut parts = map.clone().into_parts();
        parts.epoch = parts.epoch.next().ok_or(StepError::EpochFull)?;
        match &self.rule {
            Some(rule) => parts.rules.insert(self.prefix.clone(), rule.clone()),
            None => parts.rules.remove(&self.prefix),
        };
        let after = PartitionMap::try_from(parts)?;
        if let Some(moved) = &self.moved {
            moved.check(map, &after)?;
        }
        Ok(after)
    }
}

impl Moved {
    fn check(&self, before: &PartitionMap, after: &PartitionMap) -> Result<(), StepError> {
        for (group, map) in [(self.from, before), (self.to, after)] {
            if !covers(&map.ranges_of(group), &self.range) {
                return Err(StepError::OtherGroup { group });
            }
        }
        Ok(())
    }
}
