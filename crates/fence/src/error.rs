//! What can go wrong at the fence, in words for the person who has to act on it.
//!
//! A refusal (stale, wrong lock, unknown token, invalid) is an answer: repeating the call changes nothing. The rest is
//! trouble: [`FenceError::retryable`] tells the two apart. HTTP statuses are not known here.

use tokio_rusqlite::rusqlite;

/// Why a guard did not accept a write, or could not answer.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// A newer holder of the lock has been seen. Stop writing and acquire the lock again.
    #[error(
        "token {token} for lock {lock:?} is stale: a newer holder has shown token {highest}; stop writing and acquire \
         the lock again"
    )]
    Stale {
        /// The lock.
        lock: String,
        /// The token that was refused.
        token: u64,
        /// The highest token seen for this lock.
        highest: u64,
    },
    /// The object belongs to another lock. Tokens of different locks cannot be compared.
    #[error(
        "object {object:?} is bound to lock {bound_to:?} and cannot be written under lock {lock:?}; hold {bound_to:?}, \
         or have an administrator rebind the object"
    )]
    WrongLock {
        /// The object.
        object: String,
        /// The lock that was shown.
        lock: String,
        /// The lock of the object's first write, or of its last rebinding.
        bound_to: String,
    },
    /// The lock service has not granted so high a token.
    #[error(
        "token {token} for lock {lock:?} was never granted (the highest granted is {highest_granted}); use the token \
         that came with the grant"
    )]
    UnknownToken {
        /// The lock.
        lock: String,
        /// The token that was refused.
        token: u64,
        /// The highest token the lock service has granted for this lock; 0 if none.
        highest_granted: u64,
    },
    /// A name, token or text is out of bounds; nothing was changed.
    #[error("the {what} is not valid: {fault}")]
    InvalidArgument {
        /// Which argument.
        what: &'static str,
        /// What is wrong with it.
        fault: String,
    },
    /// An object that was never written cannot be rebound.
    #[error("object {object:?} is bound to no lock: it was never written, so there is nothing to rebind")]
    NotBound {
        /// The object.
        object: String,
    },
    /// The lock service could not be asked about a token above the mark; nothing was changed.
    #[error("the lock service could not confirm token {token} for lock {lock:?}: {reason}; try again")]
    CheckUnavailable {
        /// The lock.
        lock: String,
        /// The token in question.
        token: u64,
        /// Why there was no answer.
        reason: String,
    },
    /// The queue in front of the database is full; nothing was changed.
    #[error("too many requests are waiting for the database already; try again in a moment")]
    Overloaded,
    /// The database failed during the commit. The write may or may not be there.
    #[error(
        "the answer to the commit was lost, so the write may or may not be stored; read the object, or repeat the \
         write with the same token"
    )]
    OutcomeUnknown(#[source] DatabaseError),
    /// The tables were made by a newer version.
    #[error(
        "the {component} tables are at version {found}, this program knows {known} at most; upgrade the program or \
         choose another database"
    )]
    NewerSchema {
        /// Which set of tables.
        component: &'static str,
        /// Version found in the database.
        found: i64,
        /// Newest version known here.
        known: i64,
    },
    /// The database failed before the commit; nothing was changed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl FenceError {
    /// A stable word for machines. The HTTP service uses it as the problem's `code`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Stale { .. } => "stale_token",
            Self::WrongLock { .. } => "wrong_lock",
            Self::UnknownToken { .. } => "unknown_token",
            Self::InvalidArgument { .. } => "invalid_argument",
            Self::NotBound { .. } => "not_found",
            Self::CheckUnavailable { .. } => "check_unavailable",
            Self::Overloaded => "overloaded",
            Self::OutcomeUnknown(_) => "outcome_unknown",
            Self::NewerSchema { .. } | Self::Database(_) => "unavailable",
        }
    }

    /// Whether the same call may succeed later. `false` for every refusal. After [`FenceError::OutcomeUnknown`] a repeat
    /// is safe for the fence, but the write itself may then happen twice.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Stale { .. }
            | Self::WrongLock { .. }
            | Self::UnknownToken { .. }
            | Self::InvalidArgument { .. }
            | Self::NotBound { .. }
            | Self::NewerSchema { .. } => false,
            Self::CheckUnavailable { .. }
            | Self::Overloaded
            | Self::OutcomeUnknown(_)
            | Self::Database(_) => true,
        }
    }
}

impl From<rusqlite::Error> for FenceError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(DatabaseError::Sqlite(error))
    }
}

impl From<tokio_postgres::Error> for FenceError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(DatabaseError::Postgres(error))
    }
}

/// What the database said.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite refused.
    #[error("sqlite: {0}")]
    Sqlite(#[source] rusqlite::Error),
    /// A SQLite file could not be opened.
    #[error("cannot open the sqlite file {path:?}: {source}")]
    SqliteOpen {
        /// The file.
        path: std::path::PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The journal could not be switched to write-ahead logging, which several processes need to share a file.
    #[error(
        "the sqlite database stays in journal mode {mode:?}; a guard needs a file on a local disk, where write-ahead \
         logging works"
    )]
    SqliteNotWal {
        /// The mode SQLite answered.
        mode: String,
    },
    /// The thread that owns the SQLite connection has ended: the guard was closed, or a closure panicked.
    #[error("the sqlite connection is closed; open the guard again")]
    SqliteClosed,
    /// PostgreSQL refused, or the connection broke.
    #[error("postgresql: {}", postgres_text(.0))]
    Postgres(#[source] tokio_postgres::Error),
    /// No connection to PostgreSQL was to be had.
    #[error("no connection to postgresql: {}", pool_text(.0))]
    PostgresPool(#[source] deadpool_postgres::PoolError),
    /// Names are UTF-8; a database in another encoding cannot hold them.
    #[error("the postgresql database has the encoding {encoding}; create it with ENCODING 'UTF8'")]
    PostgresEncoding {
        /// The encoding found.
        encoding: String,
    },
    /// A stored object does not read back as it was written.
    #[error("object {object:?} is damaged in the database: its data is no JSON")]
    DamagedObject {
        /// The object.
        object: String,
    },
}

/// The driver's own text for a server error is only "db error".
fn postgres_text(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", db.message(), db.code().code());
    }
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn pool_text(error: &deadpool_postgres::PoolError) -> String {
    match error {
        deadpool_postgres::PoolError::Backend(backend) => postgres_text(backend),
        other => other.to_string(),
    }
}
