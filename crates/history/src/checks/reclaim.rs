//! I5: a dead client's lock is granted on at the latest when its TTL and the slack have passed.
//!
//! Looks at locks whose last known holder is dead. Where somebody else may hold the lock unknown to us, it says nothing.

use super::{Context, LockCheck, calls::Pending};
use crate::{
    event::{End, Event, Fact, SessionId},
    violation::{Check, Seconds, Violation},
};

/// Unknown acquires remembered between two grants; with more of them nothing is said.
const UNKNOWNS: usize = 64;

/// The last known holder, as long as it has not given the lock back.
#[derive(Debug, Default)]
pub(crate) struct Reclaim {
    holder: Option<(SessionId, Event)>,
    /// Sessions with acquires whose outcome is unknown, since the last grant.
    unknown: Vec<SessionId>,
}

impl LockCheck for Reclaim {
    fn observe(&mut self, event: &Event, context: &Context<'_>, found: &mut Vec<Violation>) {
        match event.fact {
            Fact::AcquireEnded { call, session, end, .. } => {
                if let Some(pending) = context.calls.get(call) {
                    self.ended(event, *pending, end, context, found);
                }
                match end {
                    End::Granted(_) => {
                        self.holder = Some((session, event.clone()));
                        self.unknown.clear();
                    }
                    End::Unknown if self.unknown.len() < UNKNOWNS => self.unknown.push(session),
                    End::Unknown => self.holder = None,
                    End::Busy | End::TimedOut | End::Cancelled | End::SessionLost | End::Error => {}
                }
            }
            Fact::ReleaseSent { session, .. } | Fact::HoldLost { session, .. } => {
                // After a loss that was told, somebody else may hold; a release gives the lock back.
                let dead = context.sessions.dead_by(session).is_some();
                self.holder.take_if(|(holder, _)| *holder == session && !dead);
            }
            _ => {}
        }
    }
}

impl Reclaim {
    /// By when the lock must have been granted on; `None` where there is nothing to say.
    fn bound(&self, context: &Context<'_>) -> Option<u64> {
        let (holder, _) = self.holder.as_ref()?;
        let mut bound = context.sessions.dead_by(*holder)?;
        for session in &self.unknown {
            bound = bound.max(context.sessions.dead_by(*session)?);
        }
        // Dead waiters are granted in their turn, and hold until their own end.
        for (_, pending) in context.calls.iter() {
            bound = bound.max(context.sessions.dead_by(pending.session).unwrap_or(0));
        }
        Some(bound.saturating_add(context.limits.reclaim_slack))
    }

    fn ended(
        &self,
        event: &Event,
        pending: Pending,
        end: End,
        context: &Context<'_>,
        found: &mut Vec<Violation>,
    ) {
        if self.holder.as_ref().is_none_or(|(holder, _)| *holder == pending.session)
            || context.sessions.dead_by(pending.session).is_some()
        {
            return;
        }
        let Some(bound) = self.bound(context) else { return };
        // Until when this acquire stood in line without being granted.
        let waited_until = match end {
            End::Granted(_) => event.at,
            End::TimedOut => pending.limit().min(event.at),
            End::Busy | End::Cancelled | End::SessionLost | End::Error | End::Unknown => return,
        };
        if waited_until > bound.max(pending.sent.saturating_add(context.limits.reclaim_slack)) {
            self.late(event.clone(), event.to_string(), bound, context, found);
        }
    }

    /// The run is over: whoever still waits behind a dead holder has waited long enough.
    pub(crate) fn finish(&self, at: u64, context: &Context<'_>, found: &mut Vec<Violation>) {
        let Some(bound) = self.bound(context) else { return };
        for (call, pending) in context.calls.iter() {
            let due = bound.max(pending.sent.saturating_add(context.limits.reclaim_slack));
            if context.sessions.dead_by(pending.session).is_none() && pending.limit().min(at) > due {
                let waiter = pending.event(call, context.lock);
                let sentence = format!("{waiter} and still waited at {}", Seconds(at));
                self.late(waiter, sentence, bound, context, found);
                return;
            }
        }
    }

    fn late(
        &self,
        second: Event,
        what: String,
        bound: u64,
        context: &Context<'_>,
        found: &mut Vec<Violation>,
    ) {
        let Some((holder, granted)) = &self.holder else { return };
        let sentence = format!(
            "{what}, but session {holder}, which held it ({granted}), is dead, and it had to be free by {}",
            Seconds(bound)
        );
        found.push(context.violation(Check::LateReclaim, Some(granted.clone()), second, sentence));
    }
}
