//! I2: the fencing tokens of one lock strictly grow in grant order and never repeat.
//!
//! The token is the create revision of the waiter's key, so that this is also first come, first served in the order in
//! which the waits were committed.

use super::{Context, LockCheck};
use crate::{
    event::{End, Event, Fact},
    violation::{Check, Violation},
};

/// Tokens stay below this, so that they are exact in JSON and SQL.
const BOUND: u64 = 1 << 53;

/// The highest token granted so far.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    highest: u64,
    granted: Option<Event>,
}

impl LockCheck for Tokens {
    fn observe(&mut self, event: &Event, context: &Context<'_>, found: &mut Vec<Violation>) {
        let Fact::AcquireEnded { session, end: End::Granted(token), .. } = event.fact else { return };
        if token == 0 || token >= BOUND {
            let sentence = format!("{event}, which is out of bounds: 1 to 2^53 - 1");
            found.push(context.violation(Check::Tokens, None, event.clone(), sentence));
            return;
        }
        if token > self.highest {
            self.highest = token;
            self.granted = Some(event.clone());
            return;
        }
        // Told too late to a client that had given its session up: older than what was granted since, and no hold.
        if token < self.highest && context.sessions.valid_until(session) <= event.at {
            return;
        }
        let how = if token == self.highest { "the same token again" } else { "a higher token before" };
        let before = self.granted.as_ref().map_or_else(String::new, Event::to_string);
        let sentence = format!("{event}, but {how}: {before}");
        found.push(context.violation(Check::Tokens, self.granted.clone(), event.clone(), sentence));
    }
}
