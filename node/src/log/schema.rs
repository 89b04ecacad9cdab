//! The log's SQLite file: settings, tables, versions, and whose file it is.
//!
//! This module knows no entries; see `load` and `pump` for what stands in the tables.

use std::path::{Path, PathBuf};

use tokio_rusqlite::rusqlite::{self, Connection, OpenFlags, OptionalExtension, params};

use super::{
    error::OpenLogError,
    identity::{ClusterId, LogIdentity},
    verify,
};

/// Name of the file within the member's folder.
pub(crate) const LOG_FILE: &str = "raft-log.sqlite";

/// Marks the file as ours ("HfLg").
const APPLICATION_ID: i32 = 0x4866_4c67;

/// What brings a file from schema version `i` to `i + 1`. SQLite keeps the version without a checksum, so from version 2 on
/// each step also notes its number in `identity` under `schema`: a higher version that is not noted is damage.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE log(id INTEGER PRIMARY KEY, e BLOB NOT NULL) STRICT;
    CREATE TABLE meta(grp INTEGER NOT NULL, k TEXT NOT NULL, v BLOB NOT NULL, PRIMARY KEY(grp, k)) STRICT, WITHOUT ROWID;
    CREATE TABLE identity(k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT, WITHOUT ROWID;
"];

/// Page size, bytes: measured to be best for the write-ahead log.
pub(crate) const PAGE_SIZE: u32 = 4096;
/// Pages in the write-ahead log at which a commit also checkpoints: a log that wraps is overwritten in place, which is
/// nearly twice as fast as one that grows.
const AUTOCHECKPOINT_PAGES: u32 = 1000;
/// Size to which a write-ahead log is cut when it starts from its beginning, bytes: far above what a checkpoint waits for,
/// so that only one that a slow reader has let grow is cut.
const WAL_KEPT_BYTES: u32 = 16 << 20;
/// Statements kept prepared per connection: more than there are in this crate.
const STATEMENTS: usize = 32;

/// Where the file is, given the member's folder.
pub(crate) fn log_path(folder: &Path) -> PathBuf {
    folder.join(LOG_FILE)
}

/// Opens the file for writing, makes or migrates its tables, and checks whose it is. `size_limit_bytes`: the file never
/// grows beyond it; a write that would is refused as on a full disk.
pub(crate) fn open_writer(
    path: &Path,
    identity: &LogIdentity,
    size_limit_bytes: Option<u64>,
) -> Result<Connection, OpenLogError> {
    let sqlite = |source| OpenLogError::Sqlite { path: path.to_owned(), source };
    let mut conn = Connection::open(path).map_err(sqlite)?;
    configure(&conn).map_err(sqlite)?;
    // Damage is found before anything is written.
    verify::check_structure(&conn, path)?;
    migrate(&mut conn, path)?;
    verify::check_marks(&conn, path)?;
    check_identity(&mut conn, path, identity)?;
    if let Some(limit) = size_limit_bytes {
        let pages = (limit / u64::from(PAGE_SIZE)).max(1);
        let _pages: i64 = conn
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get(0))
            .map_err(sqlite)?;
    }
    Ok(conn)
}

/// Opens a second connection for reading.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, OpenLogError> {
    let sqlite = |source| OpenLogError::Sqlite { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

fn configure(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "page_size", PAGE_SIZE)?;
    let pages: u32 = conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    if pages == 0 {
        // Then free pages can be given back a few at a time; a file that has tables cannot be given this.
        conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(format!("this file system does not support a write-ahead log (journal mode {mode})")),
        ));
    }
    // FULL, never less: with NORMAL a commit is not fsynced, and an acknowledged entry is lost with the power (P3).
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", AUTOCHECKPOINT_PAGES)?;
    // It answers with the limit.
    conn.query_row(&format!("PRAGMA journal_size_limit = {WAL_KEPT_BYTES}"), [], |row| row.get::<_, i64>(0))
        .map(drop)
}

fn migrate(conn: &mut Connection, path: &Path) -> Result<(), OpenLogError> {
    let sqlite = |source| OpenLogError::Sqlite { path: path.to_owned(), source };
    let found: u32 = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(sqlite)?;
    let application: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(sqlite)?;
    let tables: u32 =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sqlite)?;
    let fresh = application == 0 && found == 0 && tables == 0;
    if application != APPLICATION_ID && !fresh {
        return Err(OpenLogError::Foreign { path: path.to_owned() });
    }
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if found > known {
        let path = path.to_owned();
        let noted = identity_value(conn, "schema").map_err(sqlite)?;
        return Err(if noted == Some(found.to_string()) {
            OpenLogError::NewerSchema { path, found, known }
        } else {
            let fault =
                format!("it says that it has schema version {found}, and it was never raised to that");
            OpenLogError::Damaged { path, fault }
        });
    }
    for (version, migration) in (1..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        let step = || -> rusqlite::Result<()> {
            let transaction = conn.transaction()?;
            transaction.execute_batch(migration)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()
        };
        let mut step = step;
        step().map_err(sqlite)?;
    }
    Ok(())
}

fn identity_value(conn: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT v FROM identity WHERE k = ?1", [key], |row| row.get(0)).optional()
}

fn check_identity(conn: &mut Connection, path: &Path, identity: &LogIdentity) -> Result<(), OpenLogError> {
    let sqlite = |source| OpenLogError::Sqlite { path: path.to_owned(), source };
    let cluster = identity_value(conn, "cluster").map_err(sqlite)?;
    let member = identity_value(conn, "member").map_err(sqlite)?;
    let wanted: &ClusterId = &identity.cluster;
    match (cluster, member) {
        (None, None) if !verify::is_unused(conn).map_err(sqlite)? => {
            Err(OpenLogError::Nameless { path: path.to_owned() })
        }
        (None, None) => {
            let write = |conn: &mut Connection| -> rusqlite::Result<()> {
                let transaction = conn.transaction()?;
                let sql = "INSERT INTO identity(k, v) VALUES (?1, ?2)";
                transaction.execute(sql, params!["cluster", wanted.as_str()])?;
                transaction.execute(sql, params!["member", identity.member.to_string()])?;
                transaction.commit()
            };
            write(conn).map_err(sqlite)
        }
        (cluster, _) if cluster.as_deref() != Some(wanted.as_str()) => Err(OpenLogError::OtherCluster {
            path: path.to_owned(),
            found: cluster.unwrap_or_default(),
            wanted: wanted.clone(),
        }),
        (_, member) if member.as_deref() != Some(identity.member.to_string().as_str()) => {
            Err(OpenLogError::OtherMember {
                path: path.to_owned(),
                found: member.unwrap_or_default(),
                wanted: identity.member,
            })
        }
        (_, _) => Ok(()),
    }
}
