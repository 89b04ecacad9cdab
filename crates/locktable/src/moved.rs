//! What of a range goes from one group to another, piece by piece: sessions first, then keys, then claims with their members,
//! each in order.
//!
//! A piece is made by [`LockTable::export`](crate::LockTable::export) and taken by `Import`; what is in it is no business of
//! whoever carries it. Knows nothing of how the pieces travel.

use alloc::{boxed::Box, vec::Vec};

use bytes::Bytes;
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

use crate::{
    assign::Owner,
    codec::{self, Digest},
    ids::{Revision, SessionEpoch, SessionId},
    metadata::Metadata,
    name::Name,
    table::{Key, Member, Requests},
};

/// One piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moved {
    /// A session that has keys in the range or takes part in a claim there, or of whose requests something must be remembered.
    Session(Box<MovedSession>),
    /// A key of the range.
    Key(MovedKey),
    /// A claim of the range, without its members.
    Claim(Box<MovedClaim>),
    /// A member of the claim before.
    Member(Box<MovedMember>),
}

/// What the destination must know of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedSession {
    /// The session.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: SessionEpoch,
    /// Where it has keys in the range or takes part in a claim there. Its home must know of the destination before that owns the range (rule R4).
    pub lease: Option<MovedLease>,
    /// Its floor, and what it asked for in the range (rule R11).
    pub(crate) requests: Requests,
}

/// The lease of a session with keys or claims in the range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedLease {
    /// Its home group.
    pub home: GroupId,
    /// TTL in milliseconds.
    pub ttl_ms: u64,
    /// Milliseconds it had left when the range was sealed; the destination counts them from `Activate` on (rule R17).
    pub left_ms: u64,
    /// Whether its home has expired it.
    pub renewal_stopped: bool,
    /// What its client says about itself.
    pub metadata: Metadata,
}

/// A key of the range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedKey {
    pub(crate) key: Bytes,
    pub(crate) record: Box<Key>,
}

/// A claim of the range: who has which partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedClaim {
    pub(crate) name: Name,
    pub(crate) owners: Vec<Option<Owner>>,
}

/// A member of a claim of the range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedMember {
    pub(crate) claim: Name,
    pub(crate) session: SessionId,
    pub(crate) member: Member,
}

/// How far an export has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cursor {
    /// Not begun.
    #[default]
    Start,
    /// Up to this session.
    Session(SessionId),
    /// All sessions, and keys up to this one.
    Key(Bytes),
    /// All sessions and keys, claims before this one, and of this one the claim itself and members up to this session.
    Claim(Name, Option<SessionId>),
}

/// A part of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Its pieces.
    pub moved: Vec<Moved>,
    /// Where the next part begins.
    pub after: Cursor,
    /// In the last part: the source's revision when it sealed the range.
    pub last: Option<Revision>,
}

impl Digest {
    /// The fingerprint of what was there with these pieces behind it.
    #[must_use]
    pub fn with(self, moved: &[Moved]) -> Self {
        moved.iter().fold(self, |digest, piece| digest.and(&codec::body(piece)))
    }
}
