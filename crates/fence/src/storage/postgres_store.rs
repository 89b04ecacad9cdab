//! Objects in PostgreSQL, behind the PostgreSQL guard, over a pool of the service's own.
//!
//! HTTP and JSON are not known here: data is text.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::{Config, NoTls, Row, types::Type};

use super::store::{Page, Summary, Write};
use crate::{
    check::TokenCheck,
    claim::token_from_sql,
    error::{DatabaseError, FenceError},
    postgres::{self, Migrations, PostgresGuard},
};

const MIGRATIONS: Migrations =
    Migrations { component: "storage", steps: &[include_str!("../../migrations/postgres/storage_1.sql")] };

/// Connections at most. Writers under one lock wait for each other anyway.
const POOL_SIZE: usize = 16;

/// How long a request waits for a connection, or a connection for the server.
const POOL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long sent data may stay unconfirmed before the connection is given up.
const TCP_TIMEOUT: Duration = Duration::from_secs(10);

/// A service that was stopped in the middle of a transaction must not keep the other holders waiting for its row locks.
const SESSION: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'";

const PUT: &str = "INSERT INTO holdfast_fence.objects AS object (name, lock, token, version, data)
    VALUES ($1, $2, $3, 1, $4)
    ON CONFLICT (name) DO UPDATE SET lock = excluded.lock, token = excluded.token,
        version = object.version + 1, data = excluded.data
    RETURNING version";

const GET: &str = "SELECT name, lock, token, version, data FROM holdfast_fence.objects WHERE name = $1";

const LIST: &str = "SELECT name, lock, token, version FROM holdfast_fence.objects
    WHERE name >= $1 AND ($2::text IS NULL OR name < $2) AND name > $3 ORDER BY name LIMIT $4";

#[derive(Clone, Debug)]
pub(super) struct PostgresStore {
    guard: PostgresGuard,
    pool: Pool,
}

impl PostgresStore {
    pub(super) async fn open(
        config: &Config,
        check: Option<Arc<dyn TokenCheck>>,
    ) -> Result<Self, FenceError> {
        let pool = pool(config.clone())?;
        let mut guard = PostgresGuard::open(pool.clone()).await?;
        guard.migrate(&MIGRATIONS).await?;
        warn_without_fsync(&guard).await?;
        if let Some(check) = check {
            guard = guard.with_token_check(check);
        }
        Ok(Self { guard, pool })
    }

    pub(super) fn guard(&self) -> &PostgresGuard {
        &self.guard
    }

    pub(super) async fn put(&self, write: Write) -> Result<Summary, FenceError> {
        let Write { name, lock, token, data } = write;
        let mut client = self.guard.connection().await?;
        let tx = postgres::begin(&mut client).await?;
        self.guard.check_object(&tx, &name, &lock, token).await?;
        let put = tx.prepare_cached(PUT).await?;
        let row = tx.query_one(&put, &[&name, &lock, &(token as i64), &data.get()]).await?;
        let version: i64 = row.try_get(0)?;
        postgres::commit(tx).await?;
        Ok(Summary { name, lock, token, version: version.unsigned_abs() })
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<(Summary, String)>, FenceError> {
        let client = self.guard.connection().await?;
        let row = client.query_typed_opt(GET, &[(&name, Type::TEXT)]).await?;
        row.map(|row| Ok((summary(&row)?, row.try_get(4)?))).transpose()
    }

    pub(super) async fn list(&self, page: Page) -> Result<Vec<Summary>, FenceError> {
        let client = self.guard.connection().await?;
        let rows = client
            .query_typed(
                LIST,
                &[
                    (&page.prefix, Type::TEXT),
                    (&page.end(), Type::TEXT),
                    (&page.after, Type::TEXT),
                    (&i64::from(page.limit), Type::INT8),
                ],
            )
            .await?;
        rows.iter().map(summary).collect()
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }
}

fn pool(mut config: Config) -> Result<Pool, FenceError> {
    if config.get_application_name().is_none() {
        config.application_name("holdfast-storage");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(POOL_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(TCP_TIMEOUT);
    }
    let manager =
        Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    Pool::builder(manager)
        .max_size(POOL_SIZE)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(POOL_TIMEOUT))
        .create_timeout(Some(POOL_TIMEOUT))
        .recycle_timeout(Some(POOL_TIMEOUT))
        .post_create(Hook::async_fn(|client, _metrics| {
            Box::pin(async move { client.batch_execute(SESSION).await.map_err(HookError::Backend) })
        }))
        .build()
        .map_err(|_no_runtime| {
            DatabaseError::PostgresPool(deadpool_postgres::PoolError::NoRuntimeSpecified).into()
        })
}

/// Writes are answered after the commit, which means little to a server that does not wait for its disk.
async fn warn_without_fsync(guard: &PostgresGuard) -> Result<(), FenceError> {
    let client = guard.connection().await?;
    let fsync: String = client.query_typed_one("SELECT current_setting('fsync')", &[]).await?.try_get(0)?;
    if fsync == "off" {
        tracing::warn!("postgresql runs with fsync = off: a crash may take back accepted writes and marks");
    }
    Ok(())
}

fn summary(row: &Row) -> Result<Summary, FenceError> {
    Ok(Summary {
        name: row.try_get(0)?,
        lock: row.try_get(1)?,
        token: token_from_sql(row.try_get(2)?),
        version: row.try_get::<_, i64>(3)?.unsigned_abs(),
    })
}
