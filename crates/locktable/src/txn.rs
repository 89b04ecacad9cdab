//! Reads and writes of keys in one step, shaped as etcd's transactions are.

mod check;

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ids::{Revision, SessionId};

/// Most comparisons, and most steps, in one list.
pub const MAX_STEPS: usize = 128;
/// Most comparisons and steps of a transaction with all transactions inside.
pub const MAX_ALL_STEPS: usize = 1_024;
/// How deep transactions are nested at most; the outermost is 1.
pub const MAX_DEPTH: usize = 8;

/// If all comparisons hold, `success`, else `failure`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Txn {
    /// All must hold.
    pub compare: Vec<Compare>,
    /// Done where they do.
    pub success: Vec<TxnOp>,
    /// Done where they do not.
    pub failure: Vec<TxnOp>,
}

/// One comparison on one key; a missing key has zeroes, and no value that equals anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compare {
    /// The key.
    pub key: Bytes,
    /// How.
    pub order: CompareOrder,
    /// What.
    pub target: CompareTarget,
}

/// How a comparison goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompareOrder {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Greater.
    Greater,
    /// Less.
    Less,
}

/// What is compared, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompareTarget {
    /// Create revision.
    Create(Revision),
    /// Mod revision.
    Mod(Revision),
    /// Version.
    Version(u64),
    /// Value.
    Value(Bytes),
    /// Lease.
    Lease(Option<SessionId>),
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TxnOp {
    /// Reads.
    Range(Range),
    /// Writes one key.
    Put(Put),
    /// Deletes a key or a range of keys.
    Delete(Delete),
    /// A transaction inside.
    Txn(Txn),
}

/// Reads a key or a range of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// First key.
    pub key: Bytes,
    /// First key that is not meant any more; empty for the one key, `\0` for all from `key` on.
    pub range_end: Bytes,
    /// At most so many; 0 for all.
    pub limit: u32,
    /// Order of the answer.
    pub sort: Sort,
    /// Only keys created at or before this revision.
    pub max_create_revision: Option<Revision>,
}

/// Order of a range's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sort {
    /// By key.
    Key,
    /// By key, last first.
    KeyDescending,
    /// By create revision.
    Create,
    /// By create revision, last first.
    CreateDescending,
    /// By mod revision.
    Mod,
    /// By mod revision, last first.
    ModDescending,
}

/// Writes one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put {
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
    /// The session it shall hang on.
    pub lease: Option<SessionId>,
}

/// Deletes a key or a range of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delete {
    /// First key.
    pub key: Bytes,
    /// As in [`Range`].
    pub range_end: Bytes,
}

/// What a transaction did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxnOutcome {
    /// Whether the comparisons held.
    pub succeeded: bool,
    /// The group's revision afterwards.
    pub revision: Revision,
    /// One answer per step.
    pub answers: Vec<TxnAnswer>,
}

/// What one step answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TxnAnswer {
    /// What was read.
    Range {
        /// The keys.
        keys: Vec<KeyValue>,
        /// How many keys the range has, limit and filter aside.
        count: u64,
        /// Whether the limit cut it.
        more: bool,
    },
    /// What a put replaced.
    Put {
        /// The key before.
        previous: Option<KeyValue>,
    },
    /// What was deleted.
    Delete {
        /// The keys as they were.
        previous: Vec<KeyValue>,
    },
    /// What the transaction inside did.
    Txn(TxnOutcome),
}

/// A key with all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// Revision of its creation.
    pub create_revision: Revision,
    /// Revision of its last put.
    pub mod_revision: Revision,
    /// Puts since its creation.
    pub version: u64,
    /// Its value.
    pub value: Bytes,
    /// The session it hangs on.
    pub lease: Option<SessionId>,
}

/// Why a transaction is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TxnError {
    /// An empty key.
    #[error("the key is empty")]
    EmptyKey,
    /// A key is written twice.
    #[error("a key is written twice in one transaction")]
    DuplicateKey,
    /// More than [`MAX_STEPS`] in one list, or more than [`MAX_ALL_STEPS`] in all.
    #[error("a transaction has at most 128 comparisons or steps in one list, and 1024 in all")]
    TooManySteps,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("transactions are nested at most 8 deep")]
    TooDeep,
    /// The lease of a put is no session here.
    #[error("the lease is unknown")]
    UnknownLease,
    /// Rule R13: a put may not change the lease of a lock key.
    #[error("the key belongs to a lock; its lease cannot be changed")]
    LockKeyLease,
    /// Rule R13: at most one lock key of a name is created in one transaction.
    #[error("a transaction creates at most one key of a lock")]
    TwoLockKeys,
}
