//! Objects in a SQLite file, behind the SQLite guard.
//!
//! HTTP and JSON are not known here: data is text.

use std::{path::Path, sync::Arc};

use tokio_rusqlite::rusqlite::{self, OptionalExtension, Row, params};

use super::store::{Page, Summary, Write};
use crate::{
    check::TokenCheck,
    claim::token_from_sql,
    error::FenceError,
    sqlite::{Migrations, SqliteGuard},
};

const MIGRATIONS: Migrations =
    Migrations { component: "storage", steps: &[include_str!("../../migrations/sqlite/storage_1.sql")] };

#[derive(Clone, Debug)]
pub(super) struct SqliteStore {
    guard: SqliteGuard,
}

impl SqliteStore {
    pub(super) async fn open(path: &Path, check: Option<Arc<dyn TokenCheck>>) -> Result<Self, FenceError> {
        let mut guard = SqliteGuard::open(path).await?;
        guard.migrate(&MIGRATIONS).await?;
        if let Some(check) = check {
            guard = guard.with_token_check(check);
        }
        Ok(Self { guard })
    }

    pub(super) fn guard(&self) -> &SqliteGuard {
        &self.guard
    }

    pub(super) async fn put(&self, write: Write) -> Result<Summary, FenceError> {
        let Write { name, lock, token, data } = write;
        let row = (name.clone(), lock.clone());
        self.guard
            .write_object(&row.0, &row.1, token, move |tx| {
                let version: i64 = tx
                    .prepare_cached(
                        "INSERT INTO holdfast_fence_objects AS object (name, lock, token, version, data)
                         VALUES (?1, ?2, ?3, 1, ?4)
                         ON CONFLICT (name) DO UPDATE SET lock = excluded.lock, token = excluded.token,
                             version = object.version + 1, data = excluded.data
                         RETURNING version",
                    )?
                    .query_row(params![name, lock, token as i64, data.get()], |row| row.get(0))?;
                Ok(Summary { name, lock, token, version: version.unsigned_abs() })
            })
            .await
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<(Summary, String)>, FenceError> {
        let name = name.to_owned();
        self.guard
            .read(move |conn| {
                let found = conn
                    .prepare_cached(
                        "SELECT name, lock, token, version, data FROM holdfast_fence_objects WHERE name = ?1",
                    )?
                    .query_row([name], |row| Ok((summary(row)?, row.get(4)?)))
                    .optional()?;
                Ok(found)
            })
            .await
    }

    pub(super) async fn list(&self, page: Page) -> Result<Vec<Summary>, FenceError> {
        self.guard
            .read(move |conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT name, lock, token, version FROM holdfast_fence_objects
                     WHERE name >= ?1 AND (?2 IS NULL OR name < ?2) AND name > ?3 ORDER BY name LIMIT ?4",
                )?;
                let rows =
                    statement.query_map(params![page.prefix, page.end(), page.after, page.limit], summary)?;
                Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
            })
            .await
    }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    Ok(Summary {
        name: row.get(0)?,
        lock: row.get(1)?,
        token: token_from_sql(row.get(2)?),
        version: row.get::<_, i64>(3)?.unsigned_abs(),
    })
}
