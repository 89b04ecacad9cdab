//! What a snapshot holds: plain data, without any index that could be derived from it.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

use super::{claims::Claims, history::History, moves::Moves, ownership::Ownership, requests::Requests};
use crate::{
    command::{RequestId, SessionEndReason, Wait},
    ids::{Revision, SessionEpoch, SessionId},
    metadata::Metadata,
    name::Name,
};

/// Everything that is replicated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) group: GroupId,
    pub(crate) revision: Revision,
    pub(crate) ownership: Ownership,
    // Boxed, as the nodes of a tree are half empty after ascending inserts.
    pub(crate) keys: BTreeMap<Bytes, Box<Key>>,
    pub(crate) sessions: BTreeMap<SessionId, Box<Session>>,
    /// At home: ends that attached groups have not all acknowledged.
    pub(crate) pending: BTreeMap<SessionId, Pending>,
    /// At attached groups: ends that were learned, so that those epochs are refused.
    pub(crate) tombstones: BTreeSet<(SessionId, SessionEpoch)>,
    pub(crate) history: History,
    /// At attached groups: sessions that live at their homes and have no lease here. Version 1 of a snapshot ends before.
    pub(crate) absent: BTreeMap<SessionId, Absent>,
    /// Ranges on their way. Version 2 of a snapshot ends before. Boxed, as there are few.
    pub(crate) moves: Box<Moves>,
    /// Partitions that sessions share. Version 3 of a snapshot ends before.
    pub(crate) claims: Claims,
    /// After a restore: how long nothing is granted, until a leader has waited for it. Version 4 of a snapshot ends before.
    pub(crate) paused_ms: Option<u64>,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) create: Revision,
    pub(crate) modified: Revision,
    pub(crate) version: u64,
    pub(crate) value: Bytes,
    pub(crate) lease: Option<SessionId>,
    /// Its place in a queue, where it is a lock key: `NAME/<its lease>`.
    pub(crate) place: Option<Place>,
}

/// What is known of a key that stands in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) name: Name,
    pub(crate) request: Option<RequestId>,
    pub(crate) wait: Wait,
    pub(crate) queued_at_ms: u64,
    pub(crate) granted_at_ms: Option<u64>,
    pub(crate) metadata: Metadata,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) epoch: SessionEpoch,
    pub(crate) ttl_ms: u64,
    pub(crate) metadata: Metadata,
    pub(crate) role: Role,
    pub(crate) marked_ms: Option<u64>,
    pub(crate) renewal_stopped: bool,
    pub(crate) opened_at_ms: u64,
    pub(crate) requests: Requests,
}

/// What a group remembers of a session that has no lease here, until its home tells of its end: the group has let it lapse,
/// or was only told what must not be executed. Its requests have all ended (rule R11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Absent {
    pub(crate) epoch: SessionEpoch,
    pub(crate) requests: Requests,
}

/// What the group is to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// It decides whether the session exists.
    Home { attached: BTreeSet<GroupId> },
    /// It learned of the session from its home.
    Attached { home: GroupId },
}

/// An end that is still to be told; `to_tell` is never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) epoch: SessionEpoch,
    pub(crate) reason: SessionEndReason,
    pub(crate) to_tell: BTreeSet<GroupId>,
}

impl State {
    pub(crate) fn new(group: GroupId) -> Self {
        Self {
            group,
            revision: Revision::default(),
            ownership: Ownership::default(),
            keys: BTreeMap::new(),
            sessions: BTreeMap::new(),
            pending: BTreeMap::new(),
            tombstones: BTreeSet::new(),
            history: History::default(),
            absent: BTreeMap::new(),
            moves: Box::default(),
            claims: Claims::default(),
            paused_ms: None,
        }
    }

    /// What a session has asked for, as far as the group remembers it: with its lease, or without one.
    pub(crate) fn requests(&self, session: SessionId) -> Option<&Requests> {
        match self.sessions.get(&session) {
            Some(known) => Some(&known.requests),
            None => self.absent.get(&session).map(|absent| &absent.requests),
        }
    }

    /// As [`State::requests`], to add to it.
    pub(crate) fn requests_mut(&mut self, session: SessionId) -> Option<&mut Requests> {
        match self.sessions.get_mut(&session) {
            Some(known) => Some(&mut known.requests),
            None => self.absent.get_mut(&session).map(|absent| &mut absent.requests),
        }
    }

    /// Whether any epoch of the id has ended without being forgotten yet.
    pub(crate) fn ended(&self, session: SessionId) -> bool {
        let all = (session, SessionEpoch(0))..=(session, SessionEpoch(u64::MAX));
        self.pending.contains_key(&session) || self.tombstones.range(all).next().is_some()
    }
}

impl Session {
    pub(crate) fn new(
        epoch: SessionEpoch,
        ttl_ms: u64,
        metadata: Metadata,
        role: Role,
        opened_at_ms: u64,
    ) -> Self {
        Self {
            epoch,
            ttl_ms,
            metadata,
            role,
            marked_ms: None,
            renewal_stopped: false,
            opened_at_ms,
            requests: Requests::default(),
        }
    }
}
