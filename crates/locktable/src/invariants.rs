//! The rules that hold after every entry, by name, each with a check. Written once, for tests, decoding and members.
//!
//! Nothing here repairs anything: a broken rule means a bug or damaged bytes.

mod claims;
mod keys;
mod rest;
mod sessions;

use alloc::string::String;

use crate::{
    ids::{Revision, SessionEpoch, SessionId},
    name::Name,
    table::LockTable,
};

/// A rule that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// P1: of a queue, exactly the first key is granted.
    #[error("{name:?}: the key of session {session} is granted but not first, or first but not granted")]
    OneHolder {
        /// The queue.
        name: Name,
        /// Whose key is wrong.
        session: SessionId,
    },
    /// Create revisions put the keys of a queue in a strict order.
    #[error("{name:?}: two keys of the queue have one create revision")]
    QueueOrder {
        /// The queue.
        name: Name,
    },
    /// A key stands in a queue if and only if it is shaped `NAME/<its lease>`.
    #[error("key {key}: its place in a queue does not fit its shape and lease")]
    LockKeyShape {
        /// The key, as text.
        key: String,
    },
    /// A key with a lease hangs on a session that lives here.
    #[error("key {key}: its session is not known")]
    OrphanKey {
        /// The key, as text.
        key: String,
    },
    /// Create ≤ mod ≤ the group's revision, versions count from 1, and the revision is a token that JSON can carry.
    #[error("key {key}: its revisions or version are out of bounds")]
    KeyRevisions {
        /// The key, as text.
        key: String,
    },
    /// The group's revision is below 2^53.
    #[error("revision {revision} is out of bounds")]
    RevisionBound {
        /// The revision.
        revision: Revision,
    },
    /// The indexes are what the keys and the claims say.
    #[error("the indexes do not agree with the keys or the claims")]
    Indexes,
    /// A group holds lock keys only of names that it owns.
    #[error("{name:?}: keys of a queue that the group does not own")]
    Ownership {
        /// The queue.
        name: Name,
    },
    /// TTLs and marks of sessions are in bounds.
    #[error("session {session}: TTL or mark out of bounds")]
    SessionTimes {
        /// The session.
        session: SessionId,
    },
    /// A home does not stop renewing its own session; a session is not attached to its own home.
    #[error("session {session}: what is known of it does not fit its role")]
    SessionRole {
        /// The session.
        session: SessionId,
    },
    /// R11: results are above the floor and at most 256.
    #[error("session {session}: results at or below the floor, or too many")]
    Floor {
        /// The session.
        session: SessionId,
    },
    /// R8: a record without end has its key, one with an end has not, and every key's request above the floor has its record.
    #[error("session {session}: a request record does not agree with the key it created")]
    RequestRecord {
        /// The session.
        session: SessionId,
    },
    /// Remembered holds are bounded and over.
    #[error("session {session}: a remembered hold still stands, or there are too many")]
    EndedHolds {
        /// The session.
        session: SessionId,
    },
    /// An end is pending only while somebody is to be told, and its id is not alive.
    #[error("session {session}: its pending end tells nobody, or the session lives")]
    PendingEnd {
        /// The session.
        session: SessionId,
    },
    /// A life that is remembered as ended does not live.
    #[error("session {session}: epoch {} lives and is remembered as ended", epoch.0)]
    Tombstone {
        /// The session.
        session: SessionId,
        /// The epoch.
        epoch: SessionEpoch,
    },
    /// R11: a session without a lease here has none, has not ended, and its requests have all ended and are in bounds.
    #[error(
        "session {session}: it is remembered without a lease, and lives or has ended here, or what it asked for has not"
    )]
    Absent {
        /// The session.
        session: SessionId,
    },
    /// A claim has 1 to 4,096 partitions and members that live here, with weights in bounds, and is owned by the group.
    #[error("{name:?}: its partitions, its members or its group are not such as a claim has")]
    Claim {
        /// The claim.
        name: Name,
    },
    /// A partition is a member's, with a token that the group has handed out.
    #[error("{name:?}: partition {partition} is nobody's that takes part, or its token was never handed out")]
    PartitionOwner {
        /// The claim.
        name: Name,
        /// The partition.
        partition: u32,
    },
    /// Every partition is where it shall be, or on its way there; who gives everything back and has nothing has gone.
    #[error("{name:?}: the assignment is not what follows from its members")]
    Assignment {
        /// The claim.
        name: Name,
    },
    /// The history is in order, within its bounds, and neither older than its floor nor newer than the revision.
    #[error("the history is out of order or out of bounds at revision {at}")]
    History {
        /// The first revision that is wrong.
        at: Revision,
    },
}

/// Checks every rule; costs as much as reading the whole state.
///
/// # Errors
/// The first violation found.
pub fn check(table: &LockTable) -> Result<(), Violation> {
    rest::indexes(table)?;
    rest::revision(table)?;
    rest::history(table)?;
    keys::all(table)?;
    keys::queues(table)?;
    sessions::all(table)?;
    sessions::pending(table)?;
    sessions::tombstones(table)?;
    sessions::absent(table)?;
    claims::all(table)
}

#[cfg(test)]
mod tests;
