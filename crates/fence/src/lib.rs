//! The protected resource's side of a lock: guards that accept a write only with a fencing token that is not lower than
//! the highest one seen, and the Storage Service over them.
//!
//! A lease cannot stop a holder that slept through its end and then writes. The resource can: it keeps a **mark**, the
//! highest token seen per lock name, and refuses what comes with a lower one. Check and write are one transaction.
//!
//! - [`SqliteGuard`]: runs your closure in the transaction of the check.
//! - [`PostgresGuard`]: does the check inside your transaction, at any isolation level. Other languages call the same
//!   SQL function: `SELECT holdfast_fence.check_token('jobs/42', 7)`.
//! - [`serve`]: the Storage Service, objects over HTTP, on SQLite or PostgreSQL.
//! - [`TokenCheck`]: asks the lock service about a token above the mark, so that nobody bricks a lock's objects with a
//!   huge number.
//!
//! # The rules
//! 1. One mark per lock name. Lower tokens are refused as stale, equal ones (the same holder) are accepted.
//! 2. An object belongs to the lock of its first write; under another lock it is refused, as tokens of different locks
//!    cannot be compared. Moving it is [an audited act](SqliteGuard::rebind).
//! 3. Tokens are 1 to 2^53 − 1. Lock and object names are 1 to 2,047 bytes of UTF-8 without control characters.
//! 4. **A new holder advances the mark before its first read** ([`SqliteGuard::advance`], [`PostgresGuard::advance`],
//!    `POST /v1/fence`). Until the mark has seen the new token, a write of the old holder is still accepted, lease or no
//!    lease; afterwards never again. So what the new holder reads stays as it read it.
//! 5. A mark that is lost with its last commits protects nobody. Both guards wait for the disk on every commit. A
//!    PostgreSQL standby that takes over must have been synchronous.
//!
//! This crate knows nothing of sessions, leases or Raft, and holds no client of the lock service.

mod check;
mod claim;
mod error;
mod postgres;
mod rebinding;
mod sqlite;
mod storage;

pub use check::{TokenCheck, TokenVerdict, VerdictFuture};
pub use claim::{MAX_NAME_BYTES, MAX_TOKEN};
pub use deadpool_postgres;
pub use error::{DatabaseError, FenceError};
pub use postgres::PostgresGuard;
pub use rebinding::Rebinding;
pub use sqlite::SqliteGuard;
pub use storage::{Database, InvalidDatabase, Options, ServeError, StorageService, serve};
pub use tokio_rusqlite::rusqlite;
