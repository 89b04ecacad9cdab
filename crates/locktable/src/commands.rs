//! What each command does, one file per command. Every one checks first and changes afterwards, so that a refusal leaves
//! no trace.

pub(crate) mod ack_end;
pub(crate) mod ack_revoked;
pub(crate) mod acquire;
pub(crate) mod activate;
pub(crate) mod attach_session;
pub(crate) mod cancel;
pub(crate) mod checkpoint;
pub(crate) mod compact;
mod contact;
pub(crate) mod drain_claim;
pub(crate) mod drop_range;
pub(crate) mod end_session;
pub(crate) mod expire_sessions;
pub(crate) mod force_release;
pub(crate) mod forget_ends;
pub(crate) mod give_up_move;
pub(crate) mod import;
pub(crate) mod join_claim;
pub(crate) mod learn_ends;
pub(crate) mod leave_claim;
pub(crate) mod open_session;
pub(crate) mod own;
pub(crate) mod proclaim;
pub(crate) mod release;
mod remove_session;
pub(crate) mod resume_grants;
pub(crate) mod seal;
pub(crate) mod txn;

/// Shortest TTL of a session in milliseconds.
pub(crate) const MIN_TTL_MS: u64 = 1_000;
/// Longest TTL of a session in milliseconds: a day.
pub(crate) const MAX_TTL_MS: u64 = 86_400_000;
/// Longest value of a key in bytes.
pub(crate) const MAX_VALUE_BYTES: usize = 64 << 10;
/// Longest text of a request id in bytes.
pub(crate) const MAX_REQUEST_TEXT_BYTES: usize = 256;
/// Longest key in bytes: every lock's key is shorter.
pub(crate) const MAX_KEY_BYTES: usize = 4_096;

/// Most partitions of a claim.
pub(crate) const MAX_PARTITIONS: u32 = 4_096;
/// Largest weight of a member of a claim.
pub(crate) const MAX_WEIGHT: u32 = 1_000;
/// Most claims of a group that one session may take part in: each costs up to 96 KiB on every member.
pub(crate) const MAX_CLAIMS: usize = 256;
/// Most members of a claim. Each change of it looks at all of them.
pub(crate) const MAX_MEMBERS: usize = 10_000;

use crate::outcome::{Bound, Rejection};

/// Refuses a TTL out of bounds.
fn check_ttl(ttl_ms: u64) -> Result<(), Rejection> {
    if (MIN_TTL_MS..=MAX_TTL_MS).contains(&ttl_ms) { Ok(()) } else { Err(Rejection::OutOfBounds(Bound::Ttl)) }
}

/// Refuses a value out of bounds.
fn check_value(value: &[u8]) -> Result<(), Rejection> {
    if value.len() <= MAX_VALUE_BYTES { Ok(()) } else { Err(Rejection::OutOfBounds(Bound::Value)) }
}
