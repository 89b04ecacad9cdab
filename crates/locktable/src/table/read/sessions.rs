//! Sessions: who lives, who has ended, who is to be told.

use alloc::vec::Vec;
use core::ops::Bound;

use bytes::Bytes;

use super::super::{LockTable, Pending, Role, Session};
use crate::{
    ids::{SessionEpoch, SessionId},
    name::Name,
    view::{PendingEnd, SessionRole, SessionView},
};

impl LockTable {
    /// One session, if it lives here.
    pub fn session(&self, session: SessionId) -> Option<SessionView> {
        self.state.sessions.get(&session).map(|known| self.session_view(session, known))
    }

    /// The epoch of a session that lives here; cheaper than the whole view.
    pub fn session_epoch(&self, session: SessionId) -> Option<SessionEpoch> {
        self.state.sessions.get(&session).map(|known| known.epoch)
    }

    /// Whether the group remembers what the session has asked for: it lives here, or lives at its home without a lease here.
    pub fn remembers(&self, session: SessionId) -> bool {
        self.state.requests(session).is_some()
    }

    /// All keys that hang on a session, lock keys and ordinary ones, in key order.
    pub fn keys_of_session(&self, session: SessionId) -> Vec<Bytes> {
        self.index.keys_of(session).cloned().collect()
    }

    /// At most `limit` sessions behind `after`, in order of their ids, and whether there are more.
    pub fn sessions(&self, after: Option<SessionId>, limit: usize) -> (Vec<SessionView>, bool) {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.state.sessions.range((start, Bound::Unbounded));
        let page = rest.by_ref().take(limit).map(|(id, known)| self.session_view(*id, known)).collect();
        (page, rest.next().is_some())
    }

    /// At home: ends that attached groups have not all acknowledged.
    pub fn pending_ends(&self) -> Vec<PendingEnd> {
        let view = |(session, pending): (&SessionId, &Pending)| PendingEnd {
            session: *session,
            epoch: pending.epoch,
            reason: pending.reason,
            to_tell: pending.to_tell.iter().copied().collect(),
        };
        self.state.pending.iter().map(view).collect()
    }

    /// At attached groups: ends that are remembered to refuse those epochs.
    pub fn tombstones(&self) -> Vec<(SessionId, SessionEpoch)> {
        self.state.tombstones.iter().copied().collect()
    }

    /// Whether any life of the session has ended that is still being told or remembered here.
    pub fn ended(&self, session: SessionId) -> bool {
        self.state.ended(session)
    }

    /// Whether exactly this life of the session has ended, as far as is still told or remembered here.
    pub fn ended_epoch(&self, session: SessionId, epoch: SessionEpoch) -> bool {
        self.state.tombstones.contains(&(session, epoch))
            || self.state.pending.get(&session).is_some_and(|pending| pending.epoch == epoch)
    }

    fn session_view(&self, session: SessionId, known: &Session) -> SessionView {
        let mut names: Vec<Name> = self
            .index
            .keys_of(session)
            .filter_map(|key| Some(self.state.keys.get(key)?.place.as_ref()?.name.clone()))
            .collect();
        names.sort_unstable();
        SessionView {
            session,
            epoch: known.epoch,
            ttl_ms: known.ttl_ms,
            metadata: known.metadata.clone(),
            role: match &known.role {
                Role::Home { attached } => SessionRole::Home { attached: attached.iter().copied().collect() },
                Role::Attached { home } => SessionRole::Attached { home: *home },
            },
            marked_ms: known.marked_ms,
            renewal_stopped: known.renewal_stopped,
            names,
            opened_at_ms: known.opened_at_ms,
        }
    }
}
