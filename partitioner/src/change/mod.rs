//! Changes of a partition map as pure functions: from a request to the ranges that move, one after the other.
//!
//! ```text
//!   Request ──target──> the rule that a prefix shall have ──steps──> [Step]   each: one range, from one group to one
//!                                                                      │
//!                                                                      └─apply(map)──> the next map, valid, epoch + 1
//! ```
//!
//! Nothing here carries a move out. Between two steps every name still routes to exactly one group, so a change may stop
//! after any of them: asked for again, it plans what is left.
//!
//! Where a table cannot turn into the wanted one slot by slot or interval by interval (another depth, another kind), the
//! prefix is first gathered in one group and then spread from there.

mod error;
pub(crate) mod place;
mod request;
mod step;
mod steps;
mod target;

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::MapEpoch;
use crate::map::PartitionMap;

pub use error::{ChangeError, StepError};
pub use request::{Given, Groups, Request};
pub use step::{Moved, Step};

/// What is to be done so that a request is fulfilled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The prefix whose rule changes.
    pub prefix: String,
    /// Epoch of the map that the change was made for.
    pub base: MapEpoch,
    /// At least one, to be carried out in order. Only a change that moves nothing has a step that moves nothing, and
    /// then it has no other.
    pub steps: Vec<Step>,
}

impl Change {
    /// How many ranges move.
    #[must_use]
    pub fn moves(&self) -> usize {
        self.steps.iter().filter(|step| step.moved.is_some()).count()
    }

    /// The map after all steps.
    ///
    /// # Errors
    /// It is not the map that the change was made for.
    pub fn apply(&self, map: &PartitionMap) -> Result<PartitionMap, StepError> {
        self.steps.iter().try_fold(map.clone(), |map, step| step.apply(&map))
    }
}

/// What a request comes to.
///
/// # Errors
/// The request names groups or prefixes that it cannot, or there is nothing to do. The map is the only thing that was
/// read: nothing has changed.
pub fn change(given: &Given<'_>, request: &Request) -> Result<Change, ChangeError> {
    let target = target::of(given, request)?;
    let steps = steps::towards(given.map, &target)?;
    Ok(Change { prefix: target.prefix, base: given.map.epoch(), steps })
}

#[cfg(test)]
mod tests;
