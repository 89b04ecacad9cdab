//! Waiters are granted in the order in which they were seen to stand in the queue.
//!
//! Knows positions only from looks at the queue; the order in which waits were committed is in the tokens.

use std::collections::BTreeMap;

use super::{Context, LockCheck};
use crate::{
    event::{End, Event, Fact, SessionId},
    violation::{Check, Violation},
};

/// The last look at the queue: the acquires that stood in it, first in line first.
#[derive(Debug, Default)]
pub(crate) struct Order {
    seen: Option<Event>,
    line: Vec<u64>,
}

impl LockCheck for Order {
    fn observe(&mut self, event: &Event, context: &Context<'_>, found: &mut Vec<Violation>) {
        match &event.fact {
            Fact::QueueObserved { asked, waiting, .. } => self.look(event, *asked, waiting, context),
            Fact::AcquireEnded { call, end: End::Granted(_), .. } => {
                self.granted(event, *call, context, found);
            }
            _ => {}
        }
    }
}

impl Order {
    /// Only acquires that were under way during the whole look are surely those that were seen.
    fn look(&mut self, event: &Event, asked: u64, waiting: &[SessionId], context: &Context<'_>) {
        let pending: BTreeMap<SessionId, u64> = (context.calls.iter())
            .filter(|(_, pending)| pending.sent <= asked)
            .map(|(call, pending)| (pending.session, call))
            .collect();
        self.line = waiting.iter().filter_map(|session| pending.get(session).copied()).collect();
        self.seen = Some(event.clone());
    }

    fn granted(&mut self, event: &Event, call: u64, context: &Context<'_>, found: &mut Vec<Violation>) {
        let Some(at) = self.line.iter().position(|waiting| *waiting == call) else { return };
        for ahead in self.line.drain(..=at).filter(|ahead| *ahead != call) {
            let Some(pending) = context.calls.get(ahead) else { continue };
            // It may have left the line without having been told yet.
            let left = pending.given_up
                || pending.limit() <= event.at
                || context.sessions.get(pending.session).is_none()
                || context.sessions.dead_by(pending.session).is_some()
                || context.sessions.valid_until(pending.session) <= event.at;
            if left {
                continue;
            }
            let waiter = pending.event(ahead, context.lock);
            let seen = self.seen.as_ref().map_or_else(String::new, Event::to_string);
            let sentence =
                format!("{event}, but {waiter}, stood in front of it when {seen}, and still waits");
            found.push(context.violation(Check::Order, Some(waiter), event.clone(), sentence));
        }
    }
}
