//! The guard's statements, to be run inside a transaction that already holds the file's write lock.
//!
//! Who opens and ends that transaction is not known here.

use tokio_rusqlite::rusqlite::{self, Connection, OptionalExtension, Row, Transaction, params};

use crate::{
    claim::{Claim, ObjectName, token_from_sql},
    error::FenceError,
    rebinding::{RebindRequest, Rebinding},
};

/// Raises the mark to the claim's token, or refuses it as stale.
pub(super) fn raise(tx: &Transaction<'_>, claim: &Claim) -> Result<(), FenceError> {
    let changed = tx
        .prepare_cached(
            "INSERT INTO holdfast_fence_marks (lock, token) VALUES (?1, ?2)
             ON CONFLICT (lock) DO UPDATE SET token = excluded.token WHERE token <= excluded.token",
        )?
        .execute(params![claim.lock(), claim.sql_token()])?;
    if changed > 0 {
        return Ok(());
    }
    let highest = highest(tx, claim.lock())?.unwrap_or_default();
    Err(claim.stale(highest))
}

/// Binds the object to the claim's lock on its first write, and refuses any other lock later.
pub(super) fn bind(tx: &Transaction<'_>, object: &ObjectName, claim: &Claim) -> Result<(), FenceError> {
    match bound_lock(tx, object)? {
        Some(lock) if lock == claim.lock() => Ok(()),
        Some(lock) => Err(claim.wrong_lock(object, lock)),
        None => {
            tx.prepare_cached("INSERT INTO holdfast_fence_bindings (object, lock) VALUES (?1, ?2)")?
                .execute(params![object.text(), claim.lock()])?;
            Ok(())
        }
    }
}

pub(super) fn highest(conn: &Connection, lock: &str) -> rusqlite::Result<Option<u64>> {
    conn.prepare_cached("SELECT token FROM holdfast_fence_marks WHERE lock = ?1")?
        .query_row([lock], |row| row.get(0).map(token_from_sql))
        .optional()
}

pub(super) fn rebind(tx: &Transaction<'_>, request: &RebindRequest) -> Result<Rebinding, FenceError> {
    let object = request.object.text();
    let Some(from_lock) = bound_lock(tx, &request.object)? else {
        return Err(FenceError::NotBound { object: object.to_owned() });
    };
    tx.execute(
        "UPDATE holdfast_fence_bindings SET lock = ?2 WHERE object = ?1",
        params![object, request.lock],
    )?;
    let written = tx.query_row(
        "INSERT INTO holdfast_fence_rebindings (object, from_lock, to_lock, actor, reason, at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, CAST(unixepoch('subsec') * 1000 AS INTEGER))
         RETURNING object, from_lock, to_lock, actor, reason, at_ms",
        params![object, from_lock, request.lock, request.actor, request.reason],
        rebinding,
    )?;
    Ok(written)
}

pub(super) fn rebindings(conn: &Connection, object: &ObjectName) -> rusqlite::Result<Vec<Rebinding>> {
    conn.prepare_cached(
        "SELECT object, from_lock, to_lock, actor, reason, at_ms FROM holdfast_fence_rebindings
         WHERE object = ?1 ORDER BY id",
    )?
    .query_map([object.text()], rebinding)?
    .collect()
}

fn bound_lock(tx: &Transaction<'_>, object: &ObjectName) -> rusqlite::Result<Option<String>> {
    tx.prepare_cached("SELECT lock FROM holdfast_fence_bindings WHERE object = ?1")?
        .query_row([object.text()], |row| row.get(0))
        .optional()
}

fn rebinding(row: &Row<'_>) -> rusqlite::Result<Rebinding> {
    Ok(Rebinding {
        object: row.get(0)?,
        from_lock: row.get(1)?,
        to_lock: row.get(2)?,
        actor: row.get(3)?,
        reason: row.get(4)?,
        at_ms: row.get(5)?,
    })
}
