//! The record of an object that was moved from one lock to another by an administrator.
//!
//! Who may do this is decided by the caller; here it is only bounded and remembered.

use crate::{
    claim::{ObjectName, check_lock, check_text},
    error::FenceError,
};

/// Longest name of an actor in bytes.
const MAX_ACTOR_BYTES: usize = 255;

/// Longest reason in bytes.
const MAX_REASON_BYTES: usize = 1_000;

/// One entry of the audit table: an object left a lock for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebinding {
    /// The object.
    pub object: String,
    /// The lock it was bound to.
    pub from_lock: String,
    /// The lock it is bound to since.
    pub to_lock: String,
    /// Who did it.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// When, by the database's clock, in milliseconds since 1970.
    pub at_ms: i64,
}

/// A rebinding that was asked for, checked.
#[derive(Clone, Debug)]
pub(crate) struct RebindRequest {
    pub(crate) object: ObjectName,
    pub(crate) lock: String,
    pub(crate) actor: String,
    pub(crate) reason: String,
}

impl RebindRequest {
    pub(crate) fn new(object: &str, lock: &str, actor: &str, reason: &str) -> Result<Self, FenceError> {
        let object = ObjectName::new(object)?;
        check_lock(lock)?;
        check_text("actor", actor, MAX_ACTOR_BYTES)?;
        check_text("reason", reason, MAX_REASON_BYTES)?;
        Ok(Self { object, lock: lock.to_owned(), actor: actor.to_owned(), reason: reason.to_owned() })
    }
}
