//! The guard for SQLite: your closure runs in the transaction of the token check.
//!
//! One connection writes, in order of arrival; another one reads. Several guards and several processes may open the same
//! file: `BEGIN IMMEDIATE` lets one transaction in at a time, before it reads anything, so a check never sees an old mark.
//! The file is switched to write-ahead logging with `synchronous=FULL`: a commit is on disk when it is answered.
//!
//! Nothing here knows what your closure writes, and reading your own tables is up to you.

mod connection;
mod mark;
mod migration;

use std::{path::Path, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rusqlite::{
    Connection,
    rusqlite::{self, Transaction, TransactionBehavior},
};

use crate::{
    check::{TokenCheck, TokenGate},
    claim::{Claim, ObjectName, check_lock},
    error::{DatabaseError, FenceError},
    rebinding::{RebindRequest, Rebinding},
};

pub(crate) use migration::Migrations;

/// Writes that may wait for the one connection. One more is answered [`FenceError::Overloaded`]; at a millisecond per
/// commit a full queue is about a second of work.
const MAX_WAITING_WRITES: usize = 1_024;

/// Reads that may wait for the other connection, answered in the same way.
const MAX_WAITING_READS: usize = 1_024;

/// Accepts writes to a SQLite file with a token that is not lower than the highest seen. Cheap to clone; clones share
/// the connections.
///
/// ```
/// use holdfast_fence::{FenceError, SqliteGuard};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), FenceError> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let path = folder.path().join("stock.db");
/// let guard = SqliteGuard::open(&path).await?;
///
/// // The token comes with the grant of the lock. First raise the mark, then read.
/// let (lock, token) = ("stock/42", 7);
/// guard.advance(lock, token).await?;
///
/// guard
///     .write(lock, token, |tx| {
///         tx.execute_batch("CREATE TABLE IF NOT EXISTS stock (id INTEGER PRIMARY KEY, left_over INTEGER)")?;
///         tx.execute("INSERT OR REPLACE INTO stock VALUES (42, 9)", [])?;
///         Ok::<_, FenceError>(())
///     })
///     .await?;
///
/// // A holder that slept through the end of its lease is told who came after it, and writes nothing.
/// let late = guard
///     .write("stock/42", 6, |tx| Ok::<_, FenceError>(tx.execute("DELETE FROM stock", [])?))
///     .await;
/// assert!(matches!(late, Err(FenceError::Stale { highest: 7, .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteGuard {
    writer: Connection,
    reader: Connection,
    gate: TokenGate,
    waiting_writes: Arc<Semaphore>,
    waiting_reads: Arc<Semaphore>,
}

impl SqliteGuard {
    /// Opens or creates the file and brings the guard's tables (`holdfast_fence_…`) up to date. Processes may do this at
    /// the same time.
    ///
    /// # Errors
    /// The file cannot be opened, is on a file system without write-ahead logging, or has newer tables.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, FenceError> {
        let path = path.as_ref();
        let writer = connection::open_writer(path).await?;
        run(&writer, |conn| migration::migrate(conn, &migration::GUARD)).await?;
        let reader = connection::open_reader(path).await?;
        Ok(Self {
            writer,
            reader,
            gate: TokenGate::new(None),
            waiting_writes: Arc::new(Semaphore::new(MAX_WAITING_WRITES)),
            waiting_reads: Arc::new(Semaphore::new(MAX_WAITING_READS)),
        })
    }

    /// Asks the lock service about tokens above the mark from now on.
    #[must_use]
    pub fn with_token_check(mut self, check: Arc<dyn TokenCheck>) -> Self {
        self.gate = TokenGate::new(Some(check));
        self
    }

    /// Runs `write` in one transaction with the token check and commits both, or neither. `write` sees the database as of
    /// its turn; no other writer comes between. Keep it short: everybody else waits.
    ///
    /// This form knows no object. Use it where everything `write` touches always belongs to `lock`; otherwise use
    /// [`SqliteGuard::write_object`].
    ///
    /// The transaction goes on to its end even if the returned future is dropped. A `write` that panics ends the guard:
    /// every later call answers [`DatabaseError::SqliteClosed`].
    ///
    /// # Errors
    /// The error of `write`, which rolls back, or any [`FenceError`] but `WrongLock` and `NotBound`.
    pub async fn write<F, R, E>(&self, lock: &str, token: u64, write: F) -> Result<R, E>
    where
        F: FnOnce(&Transaction<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<FenceError> + Send + 'static,
    {
        self.write_claimed(Claim::new(lock, token)?, None, write).await
    }

    /// As [`SqliteGuard::write`], and binds `object` to `lock` if this is its first write.
    ///
    /// # Errors
    /// As [`SqliteGuard::write`], and [`FenceError::WrongLock`].
    pub async fn write_object<F, R, E>(&self, object: &str, lock: &str, token: u64, write: F) -> Result<R, E>
    where
        F: FnOnce(&Transaction<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<FenceError> + Send + 'static,
    {
        self.write_claimed(Claim::new(lock, token)?, Some(ObjectName::new(object)?), write).await
    }

    /// Raises the mark without writing anything, and returns it. A new holder does this before its first read: from then
    /// on no earlier holder's write is accepted.
    ///
    /// # Errors
    /// Any [`FenceError`] but `WrongLock` and `NotBound`.
    pub async fn advance(&self, lock: &str, token: u64) -> Result<u64, FenceError> {
        self.write(lock, token, move |_tx| Ok(token)).await
    }

    /// The highest token seen for a lock; `None` if there was none yet.
    ///
    /// # Errors
    /// The name is not valid, or the database failed.
    pub async fn highest(&self, lock: &str) -> Result<Option<u64>, FenceError> {
        check_lock(lock)?;
        let lock = lock.to_owned();
        self.read(move |conn| Ok(mark::highest(conn, &lock)?)).await
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
        let permit = permit(&self.waiting_writes)?;
        run(&self.writer, move |conn| {
            let _permit = permit;
            transact(conn, |tx| mark::rebind(tx, &request))
        })
        .await
    }

    /// Every rebinding of an object, oldest first.
    ///
    /// # Errors
    /// The name is not valid, or the database failed.
    pub async fn rebindings(&self, object: &str) -> Result<Vec<Rebinding>, FenceError> {
        let object = ObjectName::new(object)?;
        self.read(move |conn| Ok(mark::rebindings(conn, &object)?)).await
    }

    /// Closes both connections. Writes that were queued before are finished first.
    ///
    /// # Errors
    /// SQLite could not close the file.
    pub async fn close(self) -> Result<(), FenceError> {
        for connection in [self.reader, self.writer] {
            match connection.close().await {
                Ok(()) | Err(tokio_rusqlite::Error::ConnectionClosed) => {}
                Err(tokio_rusqlite::Error::Close((_, error)) | tokio_rusqlite::Error::Error(error)) => {
                    return Err(error.into());
                }
                Err(_) => return Err(DatabaseError::SqliteClosed.into()),
            }
        }
        Ok(())
    }

    /// Runs further migrations on the writing connection.
    pub(crate) async fn migrate(&self, migrations: &'static Migrations) -> Result<(), FenceError> {
        run(&self.writer, |conn| migration::migrate(conn, migrations)).await
    }

    /// Runs `read` on the reading connection, which cannot write.
    pub(crate) async fn read<F, R>(&self, read: F) -> Result<R, FenceError>
    where
        F: FnOnce(&rusqlite::Connection) -> Result<R, FenceError> + Send + 'static,
        R: Send + 'static,
    {
        let permit = permit(&self.waiting_reads)?;
        run(&self.reader, move |conn| {
            let _permit = permit;
            read(conn)
        })
        .await
    }

    async fn write_claimed<F, R, E>(&self, claim: Claim, object: Option<ObjectName>, write: F) -> Result<R, E>
    where
        F: FnOnce(&Transaction<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<FenceError> + Send + 'static,
    {
        let permit = permit(&self.waiting_writes)?;
        if self.gate.asks() {
            let mark = self.highest(claim.lock()).await?;
            self.gate.admit(&claim, mark).await?;
        }
        run(&self.writer, move |conn| {
            // Held until the write is done, not until the caller stops waiting: it bounds the queue.
            let _permit = permit;
            transact(conn, |tx| {
                mark::raise(tx, &claim)?;
                if let Some(object) = &object {
                    mark::bind(tx, object, &claim)?;
                }
                write(tx)
            })
        })
        .await
    }
}

/// A place in a queue, given back when the work is done.
fn permit(queue: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, FenceError> {
    Arc::clone(queue).try_acquire_owned().map_err(|_full| FenceError::Overloaded)
}

/// Runs a closure on the connection's thread.
async fn run<F, R, E>(connection: &Connection, work: F) -> Result<R, E>
where
    F: FnOnce(&mut rusqlite::Connection) -> Result<R, E> + Send + 'static,
    R: Send + 'static,
    E: From<FenceError> + Send + 'static,
{
    match connection.call_raw(work).await {
        Ok(result) => result,
        Err(_closed) => Err(FenceError::from(DatabaseError::SqliteClosed).into()),
    }
}

/// One transaction that holds the file's write lock from its first statement on. Dropping it rolls back.
fn transact<R, E>(
    conn: &mut rusqlite::Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<R, E>,
) -> Result<R, E>
where
    E: From<FenceError>,
{
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(FenceError::from)?;
    let result = work(&tx)?;
    // After a failed fsync nobody knows what the disk holds.
    tx.commit().map_err(|error| FenceError::OutcomeUnknown(DatabaseError::Sqlite(error)))?;
    Ok(result)
}
