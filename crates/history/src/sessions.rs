//! What is known of sessions: until when each is valid by its own client's clock. Judges nothing.

use std::collections::HashMap;

use crate::event::{Event, Fact, SessionEnd, SessionId};

const MS: u64 = 1_000_000;

/// When a client calls its session lost, if the last acknowledged keepalive was sent at `sent` (rule R7): the TTL later,
/// less a margin of 100 ms or a thousandth of the TTL. All in nanoseconds.
#[must_use]
pub fn local_deadline(sent: u64, ttl: u64) -> u64 {
    sent.saturating_add(ttl).saturating_sub((100 * MS).max(ttl / 1_000))
}

/// One session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) ttl: u64,
    /// When the last acknowledged keepalive was sent.
    pub(crate) renewed: u64,
    /// The event that said so.
    pub(crate) renewed_by: Event,
    /// When and how it ended, as the client saw it first.
    pub(crate) ended: Option<(u64, SessionEnd)>,
    /// From when on nothing of it is sent.
    pub(crate) silent: Option<u64>,
}

/// All sessions of a history.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: HashMap<SessionId, Session>,
}

impl Sessions {
    pub(crate) fn get(&self, session: SessionId) -> Option<&Session> {
        self.known.get(&session)
    }

    /// Takes in what an event says of sessions.
    pub(crate) fn observe(&mut self, event: &Event) {
        match event.fact {
            Fact::SessionOpened { session, ttl, sent, .. } => {
                let opened =
                    Session { ttl, renewed: sent, renewed_by: event.clone(), ended: None, silent: None };
                self.known.insert(session, opened);
            }
            Fact::KeepaliveAcknowledged { session, sent } => {
                if let Some(known) = self.known.get_mut(&session).filter(|known| known.renewed < sent) {
                    known.renewed = sent;
                    known.renewed_by = event.clone();
                }
            }
            Fact::SessionSilent { session, last_sent } => {
                if let Some(known) = self.known.get_mut(&session) {
                    known.silent.get_or_insert(last_sent);
                }
            }
            Fact::SessionEnded { session, end } => {
                if let Some(known) = self.known.get_mut(&session) {
                    known.ended.get_or_insert((event.at, end));
                }
            }
            Fact::AcquireSent { .. }
            | Fact::CancelSent { .. }
            | Fact::AcquireEnded { .. }
            | Fact::ReleaseSent { .. }
            | Fact::ReleaseEnded { .. }
            | Fact::HoldLost { .. }
            | Fact::FencedWrite { .. }
            | Fact::QueueObserved { .. } => {}
        }
    }

    /// Until when the session's client counts on its locks; for ever where nothing is known of the session.
    pub(crate) fn valid_until(&self, session: SessionId) -> u64 {
        let Some(known) = self.known.get(&session) else { return u64::MAX };
        let deadline = local_deadline(known.renewed, known.ttl);
        known.ended.map_or(deadline, |(at, _)| deadline.min(at))
    }

    /// When the service must have freed everything of a session that is dead, but for the slack: its TTL after it fell
    /// silent, or after its client gave it up (a close may not have arrived). `None` while it is alive, or where nothing
    /// is known of it.
    pub(crate) fn dead_by(&self, session: SessionId) -> Option<u64> {
        let known = self.known.get(&session)?;
        let ended = known.ended.map(|(at, _)| at);
        let silent = known.silent.map(|last_sent| last_sent.max(known.renewed));
        let last = match (ended, silent) {
            (Some(ended), Some(silent)) => ended.min(silent),
            (ended, silent) => ended.or(silent)?,
        };
        Some(last.saturating_add(known.ttl))
    }
}
