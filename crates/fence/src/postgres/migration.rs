//! Brings tables and functions in PostgreSQL up to date, one set of them (a component) at a time.
//!
//! An advisory lock lets one process in at a time. Where everything is up to date nothing is locked or created, so a user
//! without the right to create may run against tables that an administrator made.

use deadpool_postgres::Object;
use tokio_postgres::{Client, types::Type};

use crate::error::{DatabaseError, FenceError};

/// Chosen once, arbitrarily: "holdfast" in ASCII.
const ADVISORY_LOCK: i64 = 0x686f_6c64_6661_7374;

/// The steps of one component; step `i` leads to version `i + 1`. Steps that were released never change.
#[derive(Debug)]
pub(crate) struct Migrations {
    /// Whose tables these are.
    pub(crate) component: &'static str,
    /// SQL scripts.
    pub(crate) steps: &'static [&'static str],
}

/// The guard's own tables and functions.
pub(super) const GUARD: Migrations =
    Migrations { component: "guard", steps: &[include_str!("../../migrations/postgres/guard_1.sql")] };

pub(super) async fn migrate(client: &mut Object, migrations: &Migrations) -> Result<(), FenceError> {
    let known = migrations.steps.len() as i64;
    if applied(client, migrations.component, known).await? == known {
        return Ok(());
    }
    check_encoding(client).await?;
    let tx = super::begin(client).await?;
    tx.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&ADVISORY_LOCK, Type::INT8)]).await?;
    let found = applied(tx.client(), migrations.component, known).await?;
    if found == 0 {
        create_bookkeeping(tx.client()).await?;
    }
    for (version, step) in (1_i64..).zip(migrations.steps) {
        if version > found {
            tx.batch_execute(step).await?;
            tx.query_typed(
                "INSERT INTO holdfast_fence.migrations (component, version) VALUES ($1, $2)",
                &[(&migrations.component, Type::TEXT), (&version, Type::INT8)],
            )
            .await?;
        }
    }
    super::commit(tx).await
}

/// The version found; 0 where there is nothing yet.
async fn applied(client: &Client, component: &'static str, known: i64) -> Result<i64, FenceError> {
    // Not to_regclass: it answers from a cache that waiting for the advisory lock does not refresh.
    let exists: bool = client
        .query_typed_one(
            "SELECT EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
                            WHERE nspname = 'holdfast_fence' AND relname = 'migrations')",
            &[],
        )
        .await?
        .try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let found: i64 = client
        .query_typed_one(
            "SELECT coalesce(max(version), 0) FROM holdfast_fence.migrations WHERE component = $1",
            &[(&component, Type::TEXT)],
        )
        .await?
        .try_get(0)?;
    if found > known { Err(FenceError::NewerSchema { component, found, known }) } else { Ok(found) }
}

async fn create_bookkeeping(client: &Client) -> Result<(), FenceError> {
    let schema =
        client.query_typed("SELECT 1 FROM pg_namespace WHERE nspname = 'holdfast_fence'", &[]).await?;
    if schema.is_empty() {
        client.batch_execute("CREATE SCHEMA holdfast_fence").await?;
    }
    client
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS holdfast_fence.migrations (
                 component text NOT NULL,
                 version   bigint NOT NULL,
                 at        timestamptz NOT NULL DEFAULT now(),
                 PRIMARY KEY (component, version)
             )",
        )
        .await?;
    Ok(())
}

async fn check_encoding(client: &Client) -> Result<(), FenceError> {
    let encoding: String =
        client.query_typed_one("SELECT current_setting('server_encoding')", &[]).await?.try_get(0)?;
    if encoding == "UTF8" { Ok(()) } else { Err(DatabaseError::PostgresEncoding { encoding }.into()) }
}
