//! Reads the log's file: a group's bounds when it is opened, and entries that are no longer in memory.
//!
//! Runs on the reading connection's thread; it never writes.

use std::ops::Range;

use holdfast_locktable::mutant;
use openraft::entry::RaftEntry;
use tokio_rusqlite::rusqlite::{self, Connection, OptionalExtension, params};

use super::{
    codec::{self, DamagedRecord, RecordFault, Slot},
    error::OpenGroupError,
    group_number::GroupNumber,
    tail::TailStart,
};
use crate::raft::types::Entry;

/// What a group's part of the file holds.
#[derive(Debug)]
pub(crate) struct LoadedGroup {
    pub(crate) start: TailStart,
    /// Entries that were purged but not deleted yet.
    pub(crate) leftover: Range<u64>,
}

/// Entries read from disk.
#[derive(Debug, Default)]
pub(crate) struct DiskRead {
    pub(crate) entries: Vec<Entry>,
    /// It stopped early because of its budget.
    pub(crate) cut: bool,
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Damaged(#[from] DamagedRecord),
}

/// The key of a record in the table `meta`; entries stand in `log`.
pub(crate) fn meta_key(slot: Slot) -> &'static str {
    match slot {
        Slot::Entry(_) => "entry",
        Slot::Vote => "vote",
        Slot::Committed => "committed",
        Slot::Purged => "purged",
        Slot::Commits => "commits",
    }
}

/// Finds the bounds of a group's log and checks that nothing is missing between them and every entry is whole: a member
/// that starts has all it ever acknowledged.
pub(crate) fn load_group(conn: &Connection, group: GroupNumber) -> Result<LoadedGroup, OpenGroupError> {
    let sqlite = |source| OpenGroupError::Sqlite { group: group.get(), source };
    let vote = read_meta(conn, group, Slot::Vote)?;
    let committed = read_meta::<crate::raft::types::LogId>(conn, group, Slot::Committed)?;
    let purged = read_meta::<crate::raft::types::LogId>(conn, group, Slot::Purged)?;
    let after_purge = purged.map_or(0, |id| id.index + 1);

    let leftover = leftover(conn, group, 0..after_purge).map_err(sqlite)?;
    let present = match first_index(conn, group, after_purge..u64::MAX).map_err(sqlite)? {
        None => None,
        Some(first) => {
            let last = last_entry(conn, group, first)?;
            check_entries(conn, group, first, last.log_id().index)?;
            Some((first, last.log_id()))
        }
    };
    let start = check_tail(group, TailStart { vote, committed, purged, present })?;
    Ok(LoadedGroup { start, leftover })
}

/// Refuses a log that ends before an entry known to be committed: its disk has lost acknowledged entries.
pub(crate) fn check_tail(group: GroupNumber, start: TailStart) -> Result<TailStart, OpenGroupError> {
    let mut start = start;
    if mutant!("vote-forgotten") {
        start.vote = None;
    }
    let last = start.present.map(|(_, last)| last).or(start.purged);
    match start.committed {
        Some(committed) if last.is_none_or(|last| committed.index > last.index) => {
            Err(OpenGroupError::LostTail { group: group.get(), committed: committed.index })
        }
        Some(_) | None => Ok(start),
    }
}

/// Reads the entries in `range`, in order, at least one and then as many as fit `budget` bytes.
pub(crate) fn read_entries(
    conn: &Connection,
    group: GroupNumber,
    range: &Range<u64>,
    budget: Option<usize>,
) -> Result<DiskRead, ReadError> {
    let mut read = DiskRead::default();
    let Some((from, to)) = group.rows(range) else { return Ok(read) };
    let mut statement =
        conn.prepare_cached("SELECT id, e FROM log WHERE id BETWEEN ?1 AND ?2 ORDER BY id")?;
    let mut rows = statement.query(params![from, to])?;
    let mut bytes = 0usize;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let record = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        bytes = bytes.saturating_add(record.len());
        if !read.entries.is_empty() && budget.is_some_and(|budget| bytes > budget) {
            read.cut = true;
            break;
        }
        read.entries.push(decode_entry(group, GroupNumber::index_of(id), record)?);
    }
    Ok(read)
}

/// Decodes the entry that stands at `index`.
pub(crate) fn decode_entry(group: GroupNumber, index: u64, record: &[u8]) -> Result<Entry, DamagedRecord> {
    let slot = Slot::Entry(index);
    let entry: Entry = codec::unseal(group, slot, record)?;
    if entry.log_id.index == index {
        Ok(entry)
    } else {
        Err(DamagedRecord { group, slot, fault: RecordFault::OtherIndex { found: entry.log_id.index } })
    }
}

fn read_meta<T: serde::de::DeserializeOwned>(
    conn: &Connection,
    group: GroupNumber,
    slot: Slot,
) -> Result<Option<T>, OpenGroupError> {
    let record: Option<Vec<u8>> = conn
        .prepare_cached("SELECT v FROM meta WHERE grp = ?1 AND k = ?2")
        .and_then(|mut query| {
            query.query_row(params![group.get(), meta_key(slot)], |row| row.get(0)).optional()
        })
        .map_err(|source| OpenGroupError::Sqlite { group: group.get(), source })?;
    Ok(record.map(|record| codec::unseal(group, slot, &record)).transpose()?)
}

fn first_index(conn: &Connection, group: GroupNumber, range: Range<u64>) -> rusqlite::Result<Option<u64>> {
    let Some((from, to)) = group.rows(&range) else { return Ok(None) };
    let id: Option<i64> =
        conn.query_row("SELECT min(id) FROM log WHERE id BETWEEN ?1 AND ?2", [from, to], |row| row.get(0))?;
    Ok(id.map(GroupNumber::index_of))
}

/// The indexes of the entries in `range`, from the first to the last.
fn leftover(conn: &Connection, group: GroupNumber, range: Range<u64>) -> rusqlite::Result<Range<u64>> {
    let Some((from, to)) = group.rows(&range) else { return Ok(0..0) };
    let sql = "SELECT min(id), max(id) FROM log WHERE id BETWEEN ?1 AND ?2";
    let (first, last): (Option<i64>, Option<i64>) =
        conn.query_row(sql, [from, to], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let index = |id: Option<i64>| id.map(GroupNumber::index_of);
    Ok(index(first).unwrap_or(0)..index(last).map_or(0, |last| last + 1))
}

fn last_entry(conn: &Connection, group: GroupNumber, first: u64) -> Result<Entry, OpenGroupError> {
    let sqlite = |source| OpenGroupError::Sqlite { group: group.get(), source };
    let Some((from, to)) = group.rows(&(first..u64::MAX)) else {
        return Err(missing(group, first).into());
    };
    let (id, record): (i64, Vec<u8>) = conn
        .query_row(
            "SELECT id, e FROM log WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1",
            [from, to],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(sqlite)?;
    Ok(decode_entry(group, GroupNumber::index_of(id), &record)?)
}

fn check_entries(conn: &Connection, group: GroupNumber, first: u64, last: u64) -> Result<(), OpenGroupError> {
    let sqlite = |source: rusqlite::Error| OpenGroupError::Sqlite { group: group.get(), source };
    let Some((from, to)) = group.rows(&(first..last + 1)) else {
        return Err(missing(group, first).into());
    };
    let mut statement = conn
        .prepare_cached("SELECT id, e FROM log WHERE id BETWEEN ?1 AND ?2 ORDER BY id")
        .map_err(sqlite)?;
    let mut rows = statement.query([from, to]).map_err(sqlite)?;
    let mut expected = first;
    while let Some(row) = rows.next().map_err(sqlite)? {
        let index = GroupNumber::index_of(row.get(0).map_err(sqlite)?);
        if index != expected {
            return Err(missing(group, expected).into());
        }
        let record = row.get_ref(1).and_then(|value| Ok(value.as_blob()?)).map_err(sqlite)?;
        codec::content(group, Slot::Entry(index), record)?;
        expected += 1;
    }
    Ok(())
}

/// The error for an entry that should be there.
pub(crate) fn missing(group: GroupNumber, index: u64) -> DamagedRecord {
    DamagedRecord { group, slot: Slot::Entry(index), fault: RecordFault::Missing }
}
