//! Reading locks and sessions at the leader, after a quorum round, as plain views.
//!
//! Copies under the table's lock, then adds what only the lease manager knows.

use std::collections::BTreeMap;

use holdfast_locktable::{
    command::SessionEndReason,
    event::{Change, Event, Removal},
    ids::{Revision, SessionId, Token},
    name::{Name, NameKind},
    table::LockTable,
    view::{Counts, EntryView, QueueView, SessionRole, SessionView},
};
use holdfast_partitioner::GroupId;

use super::{
    Group,
    call::{GroupAnswer, GroupResult},
    proposer::GroupError,
};
use crate::{
    endpoint::types::{
        HistoryView, HolderView, LockDetail, LockView, SessionInfo, SessionLock, WaiterView,
        cluster::{GroupView, VoterView},
    },
    lease::LeftMs,
    raft::status::{GroupStatus, VoterStatus},
};

/// How many of a lock's last transitions are shown.
const HISTORY_SHOWN: usize = 50;

impl Group {
    pub(super) async fn read_locks(
        &self,
        kind: NameKind,
        prefix: &str,
        after: Option<Name>,
        limit: u32,
    ) -> GroupResult {
        self.confirm().await?;
        let (queues, more) = self.locks(|table| table.queues(prefix, kind, after.as_ref(), limit as usize));
        let left =
            self.left_ms(queues.iter().filter_map(|queue| queue.entries.first()).map(|e| e.session)).await?;
        let now = self.parts.clock.wall_ms();
        let locks = queues.iter().map(|queue| lock_view(self.id(), queue, &left, now)).collect();
        Ok(GroupAnswer::Locks { locks, more })
    }

    pub(super) async fn read_lock(&self, name: &Name) -> GroupResult {
        self.confirm().await?;
        let (owned, queue, history) =
            self.locks(|table| (table.owns(name), table.queue(name), table.history_of(name, HISTORY_SHOWN)));
        owned.map_err(GroupError::Rejected)?;
        let queue = queue.unwrap_or_else(|| QueueView { name: name.clone(), entries: Vec::new() });
        let left = self.left_ms(queue.entries.first().map(|e| e.session).into_iter()).await?;
        let now = self.parts.clock.wall_ms();
        let detail = LockDetail {
            lock: lock_view(self.id(), &queue, &left, now),
            queue: waiters(&queue, now),
            history: history.iter().map(history_view).collect(),
        };
        Ok(GroupAnswer::Lock(Box::new(detail)))
    }

    pub(super) async fn read_sessions(&self) -> GroupResult {
        self.confirm().await?;
        let sessions = self.locks(|table| table.sessions(None, usize::MAX).0);
        let home = |session: &SessionView| matches!(session.role, SessionRole::Home { .. });
        let sessions: Vec<SessionView> = sessions.into_iter().filter(home).collect();
        Ok(GroupAnswer::Sessions(self.session_infos(sessions).await?))
    }

    /// One session as this group knows it, at home or attached. No answer means that it does not.
    pub(super) async fn read_session(&self, session: SessionId) -> GroupResult {
        self.confirm().await?;
        let found = self.locks(|table| table.session(session));
        Ok(GroupAnswer::Sessions(self.session_infos(found.into_iter().collect()).await?))
    }

    async fn session_infos(&self, sessions: Vec<SessionView>) -> Result<Vec<SessionInfo>, GroupError> {
        let left = self.left_ms(sessions.iter().map(|session| session.session)).await?;
        let now = self.parts.clock.wall_ms();
        let group = self.id();
        Ok(self.locks(|table| {
            let locks = |session: &SessionView| -> Vec<SessionLock> {
                session
                    .names
                    .iter()
                    .filter_map(|name| session_lock(table.queue(name)?, session.session))
                    .collect()
            };
            sessions.iter().map(|session| session_info(group, session, locks(session), &left, now)).collect()
        }))
    }

    async fn left_ms(
        &self,
        sessions: impl Iterator<Item = SessionId>,
    ) -> Result<BTreeMap<SessionId, u64>, GroupError> {
        let ids: Vec<SessionId> = sessions.collect();
        match self.parts.lease.send(LeftMs(ids.clone())).await {
            Ok(left) => Ok(ids.into_iter().zip(left).filter_map(|(id, left)| Some((id, left?))).collect()),
            Err(error) => Err(self.unanswered(format_args!("the lease manager has stopped: {error}"))),
        }
    }

    /// Figures of this group as this member knows them.
    pub fn status(&self) -> GroupView {
        let (revision, counts) = self.locks(|table| (table.revision(), table.counts()));
        group_view(self.id(), self.parts.raft.status(), revision, counts)
    }
}

/// Figures of a group from what Raft and its table say.
pub fn group_view(group: GroupId, status: GroupStatus, revision: Revision, counts: Counts) -> GroupView {
    let voter = |voter: VoterStatus| VoterView { member: voter.member, matched_index: voter.matched };
    GroupView {
        group,
        leader: status.leader,
        term: status.term.0,
        last_log_index: status.last_log,
        committed_index: status.committed,
        applied_index: status.applied,
        revision,
        replicas: Vec::new(),
        voters: status.voters.into_iter().map(voter).collect(),
        learners: status.learners.into_iter().map(voter).collect(),
        joint: status.joint,
        members_index: status.members_since,
        held: counts.held,
        waiting: counts.waiting,
        sessions: counts.sessions,
    }
}

fn lock_view(group: GroupId, queue: &QueueView, left: &BTreeMap<SessionId, u64>, now_ms: u64) -> LockView {
    let holder = queue.entries.first().map(|entry| HolderView {
        session: entry.session,
        token: entry.revision,
        held_ms: now_ms.saturating_sub(entry.granted_at_ms.unwrap_or(entry.queued_at_ms)),
        ttl_left_ms: left.get(&entry.session).copied(),
        metadata: entry.metadata.clone(),
        value: entry.value.clone(),
    });
    let waiters = queue.entries.len().saturating_sub(1) as u32;
    LockView { name: queue.name.text().to_owned(), group, holder, waiters }
}

fn waiters(queue: &QueueView, now_ms: u64) -> Vec<WaiterView> {
    let waiter = |(at, entry): (usize, &EntryView)| WaiterView {
        session: entry.session,
        position: at as u32 + 1,
        revision: entry.revision,
        waiting_ms: now_ms.saturating_sub(entry.queued_at_ms),
        metadata: entry.metadata.clone(),
    };
    queue.entries.iter().enumerate().skip(1).map(waiter).collect()
}

fn session_lock(queue: QueueView, session: SessionId) -> Option<SessionLock> {
    let at = queue.entries.iter().position(|entry| entry.session == session)?;
    Some(SessionLock {
        name: queue.name.text().to_owned(),
        election: queue.name.kind() == NameKind::Election,
        token: queue.entries.get(at)?.revision,
        held: at == 0,
    })
}

fn session_info(
    group: GroupId,
    session: &SessionView,
    locks: Vec<SessionLock>,
    left: &BTreeMap<SessionId, u64>,
    now_ms: u64,
) -> SessionInfo {
    let (home, groups) = match &session.role {
        SessionRole::Home { attached } => (group, attached.clone()),
        SessionRole::Attached { home } => (*home, vec![group]),
    };
    SessionInfo {
        session: session.session,
        ttl_ms: session.ttl_ms,
        ttl_left_ms: left.get(&session.session).copied(),
        home,
        groups,
        open_ms: now_ms.saturating_sub(session.opened_at_ms),
        metadata: session.metadata.clone(),
        locks,
    }
}

/// One event in the words of histories and watches.
pub fn history_view(event: &Event) -> HistoryView {
    let (what, session, token) = match &event.change {
        Change::Put { lease, create_revision, version: 1, .. } => ("queued", *lease, *create_revision),
        Change::Put { lease, create_revision, .. } => ("proclaimed", *lease, *create_revision),
        Change::Grant { session, token, .. } => ("granted", Some(*session), *token),
        Change::Delete { lease, create_revision, reason, .. } => {
            (removal_text(*reason), *lease, *create_revision)
        }
    };
    HistoryView { revision: event.revision, at_ms: event.at_ms, what: what.to_owned(), session, token }
}

/// Why the key with this create revision went from a queue, as far as that is remembered.
pub fn removal_of(table: &LockTable, name: &Name, token: Token) -> Option<Removal> {
    let removal = |change: &Change| match change {
        Change::Delete { create_revision, reason, .. } if *create_revision == token => Some(*reason),
        Change::Delete { .. } | Change::Put { .. } | Change::Grant { .. } => None,
    };
    table.history_of(name, usize::MAX).iter().rev().find_map(|event| removal(&event.change))
}

/// A removal in the words of histories, watches and errors.
pub const fn removal_text(removal: Removal) -> &'static str {
    match removal {
        Removal::Released => "released",
        Removal::TimedOut => "timed_out",
        Removal::Cancelled => "cancelled",
        Removal::Abandoned => "abandoned",
        Removal::ForceReleased => "force_released",
        Removal::SessionEnded(SessionEndReason::Closed) => "session_closed",
        Removal::SessionEnded(SessionEndReason::Expired) => "session_expired",
        Removal::SessionEnded(SessionEndReason::Forced) => "session_forced",
        Removal::Deleted => "deleted",
    }
}
