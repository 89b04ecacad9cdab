//! The checks, one per file, and what they share.

pub(crate) mod calls;
pub(crate) mod expiry;
pub(crate) mod fence;
pub(crate) mod ghosts;
pub(crate) mod order;
pub(crate) mod overlap;
pub(crate) mod reclaim;
pub(crate) mod tokens;

use std::sync::Arc;

use self::calls::Calls;
use crate::{
    checker::Limits,
    event::Event,
    sessions::Sessions,
    violation::{Check, Violation},
};

/// What a check of one lock may look at beside its own state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) lock: &'a Arc<str>,
    pub(crate) sessions: &'a Sessions,
    /// Acquires that have not ended, the one that ends with this event included.
    pub(crate) calls: &'a Calls,
    pub(crate) limits: &'a Limits,
}

impl Context<'_> {
    /// A violation on this lock.
    pub(crate) fn violation(
        &self,
        check: Check,
        first: Option<Event>,
        second: Event,
        sentence: String,
    ) -> Violation {
        Violation { check, lock: Some(self.lock.clone()), first, second, sentence }
    }
}

/// A check of one lock, fed with that lock's events.
pub(crate) trait LockCheck {
    /// Takes in one event of the lock, and tells what it proves wrong.
    fn observe(&mut self, event: &Event, context: &Context<'_>, found: &mut Vec<Violation>);
}
