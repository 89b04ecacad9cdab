//! I1: at most one client believes that it holds a lock, on the one clock of the run.
//!
//! A hold begins when the grant was received, and ends when its release was sent, when its loss was noticed, or at the
//! session's own deadline, whichever comes first. Belief is what matters: what the service thinks is not looked at.

use super::{Context, LockCheck};
use crate::{
    event::{End, Event, Fact, SessionId},
    violation::{Check, Seconds, Violation},
};

#[derive(Debug)]
struct Hold {
    session: SessionId,
    token: u64,
    granted: Event,
    ended: Option<u64>,
}

/// The holds that may still overlap with one that begins: one, in a run that is right.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    holds: Vec<Hold>,
}

impl LockCheck for Overlap {
    fn observe(&mut self, event: &Event, context: &Context<'_>, found: &mut Vec<Violation>) {
        match event.fact {
            Fact::AcquireEnded { session, end: End::Granted(token), .. } => {
                self.granted(event, session, token, context, found);
            }
            Fact::ReleaseSent { session, token, .. } | Fact::HoldLost { session, token, .. } => {
                for hold in &mut self.holds {
                    if hold.session == session && hold.token == token {
                        hold.ended.get_or_insert(event.at);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Overlap {
    fn granted(
        &mut self,
        event: &Event,
        session: SessionId,
        token: u64,
        context: &Context<'_>,
        found: &mut Vec<Violation>,
    ) {
        // A grant that comes after the client has given its session up is no hold.
        if context.sessions.valid_until(session) <= event.at {
            return;
        }
        for hold in self.holds.drain(..) {
            let valid_until = context.sessions.valid_until(hold.session);
            let until = hold.ended.map_or(valid_until, |ended| ended.min(valid_until));
            if until <= event.at {
                continue;
            }
            let until = if until == u64::MAX {
                "it has not released".to_owned()
            } else {
                format!("its hold lasts until {}", Seconds(until))
            };
            let sentence = format!("two holders: {} and {until}, when {event}", hold.granted);
            found.push(context.violation(Check::Overlap, Some(hold.granted), event.clone(), sentence));
        }
        self.holds.push(Hold { session, token, granted: event.clone(), ended: None });
    }
}
