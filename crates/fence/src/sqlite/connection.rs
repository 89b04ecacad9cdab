//! Opens SQLite connections with the settings the guard relies on.
//!
//! Tables are not known here.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use tokio_rusqlite::{
    Connection,
    rusqlite::{self, ErrorCode},
};

use crate::error::{DatabaseError, FenceError};

/// How long a connection tries to get the write lock of the file.
const BUSY_LIMIT: Duration = Duration::from_secs(10);

/// The same in tries, as SQLite counts them.
const BUSY_TRIES: i32 = 10_000;

/// Pause between two tries. SQLite's own handler backs off to 100 ms, with which a process can lose every race against
/// another one that commits without a break.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

pub(super) async fn open_writer(path: &Path) -> Result<Connection, FenceError> {
    let connection = open(path).await?;
    super::run(&connection, |conn| {
        conn.busy_handler(Some(wait_a_moment))?;
        switch_to_wal(conn)?;
        // A commit is answered when it is on disk, on macOS past the drive's cache too.
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.pragma_update(None, "fullfsync", true)?;
        conn.pragma_update(None, "foreign_keys", true)?;
        Ok::<_, FenceError>(())
    })
    .await?;
    Ok(connection)
}

pub(super) async fn open_reader(path: &Path) -> Result<Connection, FenceError> {
    let connection = open(path).await?;
    super::run(&connection, |conn| {
        conn.busy_handler(Some(wait_a_moment))?;
        conn.pragma_update(None, "query_only", true)?;
        Ok::<_, FenceError>(())
    })
    .await?;
    Ok(connection)
}

async fn open(path: &Path) -> Result<Connection, FenceError> {
    Connection::open(path)
        .await
        .map_err(|source| DatabaseError::SqliteOpen { path: path.to_owned(), source }.into())
}

fn wait_a_moment(tries: i32) -> bool {
    thread::sleep(BUSY_PAUSE);
    tries < BUSY_TRIES
}

/// The switch needs the file for itself, and SQLite answers "busy" without asking the busy handler when several processes
/// open a new file at once.
fn switch_to_wal(conn: &rusqlite::Connection) -> Result<(), FenceError> {
    let deadline = Instant::now() + BUSY_LIMIT;
    loop {
        let answer = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match answer {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => return Err(DatabaseError::SqliteNotWal { mode }.into()),
            Err(rusqlite::Error::SqliteFailure(failure, _))
                if matches!(failure.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                    && Instant::now() < deadline =>
            {
                thread::sleep(BUSY_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
