//! What a batch of ops does to the disk, the same for SQLite and for the simulated disk.
//!
//! Purged entries are deleted piece by piece, a little with every batch, so that no append waits for a long deletion.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
};

use super::{
    codec::{self, DamagedRecord, Slot},
    group_number::GroupNumber,
    op::{Op, Rows, Write},
};
use crate::raft::types::LogId;

/// Entries deleted per batch, on top of as many as the batch appends: about a third of a millisecond of work, and a
/// purge always catches up with the appends.
const PURGE_PIECE_ENTRIES: u64 = 512;

/// A disk that can be changed.
pub(crate) trait Image {
    /// Why it refused.
    type Error: From<DamagedRecord>;

    /// Adds entries that are not there yet.
    fn insert(&mut self, group: GroupNumber, rows: &Rows) -> Result<(), Self::Error>;
    /// Writes a record other than an entry.
    fn put(&mut self, group: GroupNumber, slot: Slot, record: &[u8]) -> Result<(), Self::Error>;
    /// Deletes the entries in `range`.
    fn delete(&mut self, group: GroupNumber, range: &Range<u64>) -> Result<(), Self::Error>;
}

/// Applies one op. Deletions of purged entries only go on `purges`.
pub(crate) fn apply<I: Image>(op: &Op, image: &mut I, purges: &mut Purges) -> Result<(), I::Error> {
    match &op.write {
        Write::Append { rows, .. } => image.insert(op.group, rows)?,
        Write::Vote { record } => image.put(op.group, Slot::Vote, record)?,
        Write::Truncate { from, .. } => image.delete(op.group, &(*from..u64::MAX))?,
        Write::Purge { record, range } => {
            image.put(op.group, Slot::Purged, record)?;
            purges.add(op.group, range.clone());
        }
        Write::CommitMark => {}
    }
    Ok(())
}

/// Writes the newest commit mark of each group that `ops` bring.
pub(crate) fn apply_commit_marks<I: Image>(ops: &[Op], image: &mut I) -> Result<(), I::Error> {
    let newest: BTreeMap<GroupNumber, &LogId> =
        ops.iter().filter_map(|op| Some((op.group, op.committed.as_ref()?))).collect();
    for (group, committed) in newest {
        let record = codec::seal(group, Slot::Committed, committed, Vec::new())?;
        image.put(group, Slot::Committed, &record)?;
    }
    Ok(())
}

/// Deletions that are under way.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    pending: VecDeque<(GroupNumber, Range<u64>)>,
}

impl Purges {
    pub(crate) fn add(&mut self, group: GroupNumber, range: Range<u64>) {
        if !range.is_empty() {
            self.pending.push_back((group, range));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Deletes the next piece, from the front of the range, so that no hole appears. `appended`: entries that the same
    /// batch has added.
    pub(crate) fn delete_piece<I: Image>(&mut self, image: &mut I, appended: u64) -> Result<u64, I::Error> {
        let Some((group, range)) = self.pending.front_mut() else { return Ok(0) };
        let end = range.start.saturating_add(PURGE_PIECE_ENTRIES + appended).min(range.end);
        let piece = range.start..end;
        image.delete(*group, &piece)?;
        range.start = end;
        if range.is_empty() {
            self.pending.pop_front();
        }
        Ok(piece.end - piece.start)
    }
}
