//! The guard for PostgreSQL: the check is a statement in your transaction.
//!
//! The check is the SQL function `holdfast_fence.check_token`, so it is one round trip, holds at every isolation level,
//! and is the same for programs in other languages. A refusal is an SQL error: the transaction is aborted and cannot be
//! committed, even by a caller that overlooks the answer.
//!
//! Nothing here knows what you write, or how you reach your database: the pool, its TLS and its limits are yours.

mod migration;

use std::sync::Arc;

use deadpool_postgres::{Object, Pool, PoolError, TimeoutType};
use tokio_postgres::{
    IsolationLevel, Row, Transaction,
    types::{ToSql, Type},
};

use crate::{
    check::{TokenCheck, TokenGate},
    claim::{Claim, ObjectName, check_lock, token_from_sql},
    error::{DatabaseError, FenceError},
    rebinding::{RebindRequest, Rebinding},
};

pub(crate) use migration::Migrations;

const HIGHEST: &str = "SELECT token FROM holdfast_fence.marks WHERE lock = $1";
const CHECK_TOKEN: &str = "SELECT holdfast_fence.check_token($1, $2, $3)";
const ABORT: &str = "DO $$ BEGIN RAISE EXCEPTION 'the fence refused this transaction'; END $$";

/// Accepts writes in your PostgreSQL transactions with a token that is not lower than the highest seen. Cheap to clone.
///
/// ```no_run
/// use holdfast_fence::{FenceError, PostgresGuard, deadpool_postgres::Pool};
///
/// # async fn example(pool: Pool) -> Result<(), FenceError> {
/// let guard = PostgresGuard::open(pool.clone()).await?;
///
/// // The token comes with the grant of the lock. First raise the mark, then read.
/// let (lock, token) = ("stock/42", 7);
/// guard.advance(lock, token).await?;
///
/// let mut client = pool.get().await?;
/// let tx = client.transaction().await?;
/// guard.check(&tx, lock, token).await?; // a stale token ends here, with the newer one named
/// tx.execute("UPDATE stock SET left_over = 9 WHERE id = 42", &[]).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresGuard {
    pool: Pool,
    gate: TokenGate,
}

impl PostgresGuard {
    /// Brings the guard's tables and functions (schema `holdfast_fence`) up to date. Processes may do this at the same
    /// time. Where they are up to date already, the pool's user needs no right to create anything.
    ///
    /// # Errors
    /// No connection, no right to create the schema, an encoding other than UTF-8, or newer tables.
    pub async fn open(pool: Pool) -> Result<Self, FenceError> {
        migration::migrate(&mut connection(&pool).await?, &migration::GUARD).await?;
        Ok(Self { pool, gate: TokenGate::new(None) })
    }

    /// Asks the lock service about tokens above the mark from now on.
    #[must_use]
    pub fn with_token_check(mut self, check: Arc<dyn TokenCheck>) -> Self {
        self.gate = TokenGate::new(Some(check));
        self
    }

    /// Raises the mark inside your transaction, or refuses the token. Call it before the first read that your write
    /// depends on. Until the transaction ends it holds the mark's row: others that write under this lock wait, and none
    /// with a higher token can commit in between. Set `idle_in_transaction_session_timeout`, so that a writer that hangs
    /// does not keep its successors waiting.
    ///
    /// After an error the transaction is aborted: the server rolls it back, whatever is asked of it.
    ///
    /// This form knows no object. Use it where everything you write always belongs to `lock`; otherwise use
    /// [`PostgresGuard::check_object`].
    ///
    /// # Errors
    /// Any [`FenceError`] but `WrongLock`, `NotBound`, `Overloaded` and `OutcomeUnknown`.
    pub async fn check(&self, tx: &Transaction<'_>, lock: &str, token: u64) -> Result<(), FenceError> {
        self.check_or_abort(tx, lock, token, None).await
    }

    /// As [`PostgresGuard::check`], and binds `object` to `lock` if this is its first write.
    ///
    /// # Errors
    /// As [`PostgresGuard::check`], and [`FenceError::WrongLock`].
    pub async fn check_object(
        &self,
        tx: &Transaction<'_>,
        object: &str,
        lock: &str,
        token: u64,
    ) -> Result<(), FenceError> {
        self.check_or_abort(tx, lock, token, Some(object)).await
    }

    /// Raises the mark without writing anything, and returns it. A new holder does this before its first read: from then
    /// on no earlier holder's write is accepted.
    ///
    /// # Errors
    /// Any [`FenceError`] but `WrongLock` and `NotBound`.
    pub async fn advance(&self, lock: &str, token: u64) -> Result<u64, FenceError> {
        let mut client = connection(&self.pool).await?;
        let tx = begin(&mut client).await?;
        self.check(&tx, lock, token).await?;
        commit(tx).await?;
        Ok(token)
    }

    /// The highest token seen for a lock; `None` if there was none yet.
    ///
    /// # Errors
    /// The name is not valid, or the database failed.
    pub async fn highest(&self, lock: &str) -> Result<Option<u64>, FenceError> {
        check_lock(lock)?;
        let client = connection(&self.pool).await?;
        let row = client.query_typed_opt(HIGHEST, &[(&lock, Type::TEXT)]).await?;
        row.map(|row| Ok(token_from_sql(row.try_get(0)?))).transpose()
    }

    /// Binds an object to another lock and records it. An administrative act: the caller decides who may. A holder of the
    /// old lock is refused from here on.
    ///
    /// # Errors
    /// [`FenceError::NotBound`] if the object was never written, an invalid argument (`actor` 1 to 255 bytes, `reason` 1
    /// to 1,000), or the database failed.
    pub async fn rebind(
        &self,
        object: &str,
        lock: &str,
        actor: &str,
        reason: &str,
    ) -> Result<Rebinding, FenceError> {
        let request = RebindRequest::new(object, lock, actor, reason)?;
        let client = connection(&self.pool).await?;
        let answer = client
            .query_typed_one(
                "SELECT object, from_lock, to_lock, actor, reason, (extract(epoch FROM at) * 1000)::bigint
                 FROM holdfast_fence.rebind($1, $2, $3, $4)",
                &[
                    (&request.object.text(), Type::TEXT),
                    (&request.lock, Type::TEXT),
                    (&request.actor, Type::TEXT),
                    (&request.reason, Type::TEXT),
                ],
            )
            .await;
        match answer {
            Ok(row) => Ok(rebinding(&row)?),
            Err(error) if sql_state(&error) == Some("HF404") => {
                Err(FenceError::NotBound { object: object.to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Every rebinding of an object, oldest first.
    ///
    /// # Errors
    /// The name is not valid, or the database failed.
    pub async fn rebindings(&self, object: &str) -> Result<Vec<Rebinding>, FenceError> {
        let object = ObjectName::new(object)?;
        let client = connection(&self.pool).await?;
        let rows = client
            .query_typed(
                "SELECT object, from_lock, to_lock, actor, reason, (extract(epoch FROM at) * 1000)::bigint
                 FROM holdfast_fence.rebindings WHERE object = $1 ORDER BY id",
                &[(&object.text(), Type::TEXT)],
            )
            .await?;
        rows.iter().map(|row| Ok(rebinding(row)?)).collect()
    }

    /// Runs further migrations.
    pub(crate) async fn migrate(&self, migrations: &Migrations) -> Result<(), FenceError> {
        migration::migrate(&mut connection(&self.pool).await?, migrations).await
    }

    /// A connection of the guard's pool.
    pub(crate) async fn connection(&self) -> Result<Object, FenceError> {
        connection(&self.pool).await
    }

    async fn check_or_abort(
        &self,
        tx: &Transaction<'_>,
        lock: &str,
        token: u64,
        object: Option<&str>,
    ) -> Result<(), FenceError> {
        match self.admit(tx, lock, token, object).await {
            Ok((claim, object)) => check(tx, &claim, object.as_ref()).await,
            Err(refused) => {
                // The server has not refused anything yet. Its error is the point.
                let _ = tx.batch_execute(ABORT).await;
                Err(refused)
            }
        }
    }

    /// What can be refused without the mark's row.
    async fn admit(
        &self,
        tx: &Transaction<'_>,
        lock: &str,
        token: u64,
        object: Option<&str>,
    ) -> Result<(Claim, Option<ObjectName>), FenceError> {
        let claim = Claim::new(lock, token)?;
        let object = object.map(ObjectName::new).transpose()?;
        if self.gate.asks() {
            let row = tx.query_typed_opt(HIGHEST, &[(&claim.lock(), Type::TEXT)]).await?;
            let mark = row.map(|row| row.try_get(0).map(token_from_sql)).transpose()?;
            self.gate.admit(&claim, mark).await?;
        }
        Ok((claim, object))
    }
}

async fn check(tx: &Transaction<'_>, claim: &Claim, object: Option<&ObjectName>) -> Result<(), FenceError> {
    let object_text = object.map(ObjectName::text);
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&claim.lock(), Type::TEXT), (&claim.sql_token(), Type::INT8), (&object_text, Type::TEXT)];
    match tx.query_typed_one(CHECK_TOKEN, &parameters).await {
        Ok(_mark) => Ok(()),
        Err(error) => Err(refusal(error, claim, object)),
    }
}

/// Begins a transaction of our own. Its statements see what others have committed since, whatever the database's default.
pub(crate) async fn begin(client: &mut Object) -> Result<deadpool_postgres::Transaction<'_>, FenceError> {
    Ok(client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?)
}

/// Commits. A connection that breaks here leaves it open whether the server did.
pub(crate) async fn commit(tx: deadpool_postgres::Transaction<'_>) -> Result<(), FenceError> {
    tx.commit().await.map_err(|error| match error.as_db_error() {
        Some(_rolled_back) => error.into(),
        None => FenceError::OutcomeUnknown(DatabaseError::Postgres(error)),
    })
}

async fn connection(pool: &Pool) -> Result<Object, FenceError> {
    pool.get().await.map_err(FenceError::from)
}

impl From<PoolError> for FenceError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Timeout(TimeoutType::Wait) => Self::Overloaded,
            other => Self::Database(DatabaseError::PostgresPool(other)),
        }
    }
}

/// Reads the function's refusals back into words; everything else is trouble.
fn refusal(error: tokio_postgres::Error, claim: &Claim, object: Option<&ObjectName>) -> FenceError {
    let detail = error.as_db_error().and_then(|db| db.detail()).map(str::to_owned);
    match (sql_state(&error), detail, object) {
        (Some("HF412"), Some(highest), _) => match highest.parse() {
            Ok(highest) => claim.stale(highest),
            Err(_) => error.into(),
        },
        (Some("HF409"), Some(bound_to), Some(object)) => claim.wrong_lock(object, bound_to),
        _ => error.into(),
    }
}

fn sql_state(error: &tokio_postgres::Error) -> Option<&str> {
    error.code().map(tokio_postgres::error::SqlState::code)
}

fn rebinding(row: &Row) -> Result<Rebinding, tokio_postgres::Error> {
    Ok(Rebinding {
        object: row.try_get(0)?,
        from_lock: row.try_get(1)?,
        to_lock: row.try_get(2)?,
        actor: row.try_get(3)?,
        reason: row.try_get(4)?,
        at_ms: row.try_get(5)?,
    })
}
