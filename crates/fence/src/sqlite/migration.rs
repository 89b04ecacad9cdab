//! Brings tables in a SQLite file up to date, one set of tables (a component) at a time.
//!
//! Every step runs in one transaction with the note that it was done, so processes that start together do each step once.

use tokio_rusqlite::rusqlite::{Connection, params};

use crate::error::FenceError;

/// The steps of one component; step `i` leads to version `i + 1`. Steps that were released never change.
#[derive(Debug)]
pub(crate) struct Migrations {
    /// Whose tables these are.
    pub(crate) component: &'static str,
    /// SQL scripts.
    pub(crate) steps: &'static [&'static str],
}

/// The guard's own tables.
pub(super) const GUARD: Migrations =
    Migrations { component: "guard", steps: &[include_str!("../../migrations/sqlite/guard_1.sql")] };

pub(super) fn migrate(conn: &mut Connection, migrations: &Migrations) -> Result<(), FenceError> {
    super::transact(conn, |tx| {
        tx.execute_batch(
            "CREATE TABLE IF NOT EXISTS holdfast_fence_migrations (
                 component TEXT NOT NULL,
                 version   INTEGER NOT NULL,
                 at_ms     INTEGER NOT NULL,
                 PRIMARY KEY (component, version)
             ) STRICT, WITHOUT ROWID",
        )?;
        let found: i64 = tx.query_row(
            "SELECT coalesce(max(version), 0) FROM holdfast_fence_migrations WHERE component = ?1",
            [migrations.component],
            |row| row.get(0),
        )?;
        for (version, step) in (1_i64..).zip(migrations.steps) {
            if version > found {
                tx.execute_batch(step)?;
                tx.execute(
                    "INSERT INTO holdfast_fence_migrations
                     VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER))",
                    params![migrations.component, version],
                )?;
            }
        }
        let known = migrations.steps.len() as i64;
        if found > known {
            return Err(FenceError::NewerSchema { component: migrations.component, found, known });
        }
        Ok(())
    })
}
