//! Whether a group's leader takes more work. Refuses while what it has taken waits for too long.
//!
//! Only what makes more work is refused: acquires that are new, and sessions. What ends something, and all that keeps a
//! session alive, always goes through, so that a storm of new work ends nobody's hold.

use std::time::Duration;

use super::{Group, proposer::GroupError};
use crate::endpoint::types::AcquireRequest;

/// How long the oldest work in a group may have been waiting when more is taken. Above it, a caller hears sooner that it
/// has to come back than it would hear the outcome; far above what a busy disk takes.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Group {
    /// Takes new work, or refuses it: nothing was done then.
    pub(super) fn admit(&self) -> Result<(), GroupError> {
        if self.keeps_up() { Ok(()) } else { Err(self.shed()) }
    }

    /// Takes an acquire. One that repeats a request which holds or stands in line is always taken: its caller was let in
    /// before, and would lose its place.
    pub(super) fn admit_acquire(&self, request: &AcquireRequest) -> Result<(), GroupError> {
        let stands = || self.locks(|table| table.place_of(&request.name, request.session).is_some());
        if self.keeps_up() || stands() { Ok(()) } else { Err(self.shed()) }
    }

    fn keeps_up(&self) -> bool {
        self.parts.raft.oldest_wait() <= LONGEST_WAIT
    }

    fn shed(&self) -> GroupError {
        self.parts.metrics.shed();
        GroupError::Overloaded
    }
}
