//! I7: what gave up (cancelled, timed out, was refused) is out of the queue in time.
//!
//! Waiters whose session was lost are I5's matter: their key stays until the lease ends.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, LockCheck};
use crate::{
    event::{End, Event, Fact, ReleaseEnd, SessionId},
    violation::{Check, Seconds, Violation},
};

/// The sessions whose last acquire ended without the lock.
#[derive(Debug, Default)]
pub(crate) struct Ghosts {
    gave_up: BTreeMap<SessionId, Event>,
    /// Sessions of which an earlier acquire or hold may stand in the queue, since nobody knows how it ended.
    unknown: BTreeSet<SessionId>,
}

impl LockCheck for Ghosts {
    fn observe(&mut self, event: &Event, context: &Context<'_>, found: &mut Vec<Violation>) {
        match &event.fact {
            Fact::AcquireSent { session, .. } => {
                self.gave_up.remove(session);
            }
            Fact::AcquireEnded { session, end, .. } => match end {
                End::Busy | End::TimedOut | End::Cancelled | End::Error => {
                    if !self.unknown.contains(session) {
                        self.gave_up.insert(*session, event.clone());
                    }
                }
                // A session stands in a queue once.
                End::Granted(_) => {
                    self.unknown.remove(session);
                }
                End::Unknown => {
                    self.unknown.insert(*session);
                }
                End::SessionLost => {}
            },
            Fact::ReleaseEnded { session, end: ReleaseEnd::Unknown | ReleaseEnd::Error, .. }
            | Fact::HoldLost { session, .. } => {
                self.unknown.insert(*session);
            }
            Fact::QueueObserved { asked, holder, waiting, .. } => {
                for (session, place) in holder
                    .iter()
                    .map(|session| (session, "as its holder"))
                    .chain(waiting.iter().map(|session| (session, "waiting")))
                {
                    self.seen(event, *asked, *session, place, context, found);
                }
            }
            _ => {}
        }
    }
}

impl Ghosts {
    fn seen(
        &mut self,
        event: &Event,
        asked: u64,
        session: SessionId,
        place: &str,
        context: &Context<'_>,
        found: &mut Vec<Violation>,
    ) {
        let grace = context.limits.ghost_grace;
        let late = |gave_up: &Event| gave_up.at.saturating_add(grace) < asked;
        if !self.gave_up.get(&session).is_some_and(late) {
            return;
        }
        let Some(gave_up) = self.gave_up.remove(&session) else { return };
        let since = Seconds(asked.saturating_sub(gave_up.at));
        let sentence = format!("{gave_up}, and {since} later it was still seen {place}: {event}");
        found.push(context.violation(Check::Ghost, Some(gave_up), event.clone(), sentence));
    }
}
