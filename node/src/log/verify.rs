//! Whether the log's file is whole: its structure, its marks, and the count of its commits.
//!
//! Entries are checked when their group is opened, see `load`. This module decides nothing but whether to go on.

use std::path::Path;

use tokio_rusqlite::rusqlite::{self, Connection, OptionalExtension, params};

use super::{
    codec::{self, DamagedRecord, RecordFault, Slot},
    error::OpenLogError,
    group_number::GroupNumber,
    load::meta_key,
    witness::Witness,
};

/// The group under whose number the count of commits stands.
const COMMITS_GROUP: u32 = 0;

/// What can stand in the table `meta`.
const MARKS: [Slot; 4] = [Slot::Vote, Slot::Committed, Slot::Purged, Slot::Commits];

/// Why a commit cannot be counted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CountError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Damaged(#[from] DamagedRecord),
}

/// Checks the pages of the file: a row that fell out of its table is found by nothing else.
pub(crate) fn check_structure(conn: &Connection, path: &Path) -> Result<(), OpenLogError> {
    let said: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|source| OpenLogError::Sqlite { path: path.to_owned(), source })?;
    if said == "ok" {
        return Ok(());
    }
    let fault = said.lines().next_back().unwrap_or_default().to_owned();
    Err(OpenLogError::Damaged { path: path.to_owned(), fault })
}

/// Checks all marks, also of groups that nobody opens: a mark under a damaged name is no mark, and a vote that cannot be
/// found would be given twice.
pub(crate) fn check_marks(conn: &Connection, path: &Path) -> Result<(), OpenLogError> {
    let sqlite = |source| OpenLogError::Sqlite { path: path.to_owned(), source };
    let damaged = |fault: String| OpenLogError::Damaged { path: path.to_owned(), fault };
    let mut statement = conn.prepare("SELECT grp, k, v FROM meta").map_err(sqlite)?;
    let mut rows = statement.query([]).map_err(sqlite)?;
    while let Some(row) = rows.next().map_err(sqlite)? {
        let mark: rusqlite::Result<(i64, String, Vec<u8>)> =
            (|| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))();
        let (number, key, record) = mark.map_err(|err| damaged(format!("a mark cannot be read ({err})")))?;
        let group = u32::try_from(number).ok().and_then(|number| GroupNumber::new(number).ok());
        let slot = MARKS.into_iter().find(|slot| meta_key(*slot) == key);
        let (Some(group), Some(slot)) = (group, slot) else {
            return Err(damaged(format!("it holds a mark {key:?} of group {number}, which does not exist")));
        };
        codec::content(group, slot, &record).map_err(|fault| unreadable(path, fault))?;
    }
    Ok(())
}

/// What to say of a mark that cannot be read.
fn unreadable(path: &Path, DamagedRecord { group, slot, fault }: DamagedRecord) -> OpenLogError {
    let (path, what) = (path.to_owned(), format!("{slot} of group {group}"));
    match fault {
        RecordFault::Format { found } => OpenLogError::NewerFormat { path, what, found },
        fault => OpenLogError::Damaged { path, fault: format!("{what} {fault}") },
    }
}

/// Whether nothing was ever written to the tables.
pub(crate) fn is_unused(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("SELECT NOT EXISTS(SELECT 1 FROM log) AND NOT EXISTS(SELECT 1 FROM meta)", [], |row| {
        row.get(0)
    })
}

/// Compares the commits in the log with those that were confirmed, and answers where the next ones are noted.
pub(crate) fn confirmed(conn: &Connection, folder: &Path, path: &Path) -> Result<Witness, OpenLogError> {
    let found = commits(conn).map_err(|err| match err {
        CountError::Sqlite(source) => OpenLogError::Sqlite { path: path.to_owned(), source },
        CountError::Damaged(record) => unreadable(path, record),
    })?;
    Witness::open(folder, path, found)
}

/// Number of the last commit; 0 in a log that no version has counted yet.
fn commits(conn: &Connection) -> Result<u64, CountError> {
    let group = counted_for()?;
    let sql = "SELECT v FROM meta WHERE grp = ?1 AND k = ?2";
    let key = meta_key(Slot::Commits);
    let record: Option<Vec<u8>> =
        conn.query_row(sql, params![group.get(), key], |row| row.get(0)).optional()?;
    Ok(record.map(|record| codec::unseal(group, Slot::Commits, &record)).transpose()?.unwrap_or(0))
}

/// Writes the number of a commit, within its transaction.
pub(crate) fn count_commit(conn: &Connection, number: u64) -> Result<(), CountError> {
    let group = counted_for()?;
    let record = codec::seal(group, Slot::Commits, &number, Vec::new())?;
    let sql = "INSERT OR REPLACE INTO meta(grp, k, v) VALUES (?1, ?2, ?3)";
    conn.prepare_cached(sql)?.execute(params![group.get(), meta_key(Slot::Commits), record])?;
    Ok(())
}

fn counted_for() -> Result<GroupNumber, rusqlite::Error> {
    GroupNumber::new(COMMITS_GROUP).map_err(|err| rusqlite::Error::ToSqlConversionFailure(Box::new(err)))
}
