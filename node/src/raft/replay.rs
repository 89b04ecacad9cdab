//! The state of a group as one member has it, without starting the group: its snapshot, and then its log.
//!
//! All entries count that are in the log, also those that nobody knows to be agreed on: what was acknowledged is among them as
//! far as this member has it. Reads only. Knows nothing of why the group does not run.

use std::io;

use openraft::{EntryPayload, RaftLogReader, storage::RaftLogStorage};

use super::{
    machine::position,
    table::{Sink, Table},
    types::{LogId, Payload},
};
use crate::{
    log::handle::LogHandle,
    snapshot::local::{RaftSnapshotError, RaftSnapshots},
};

/// Entries that are read at a time.
const CHUNK: u64 = 1_024;

/// What a member has of a group.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The state.
    pub(crate) table: Table,
    /// The last entry in it; none where the group has never had any.
    pub(crate) last: Option<LogId>,
    /// Entries at the end of which this member does not know that they were agreed on.
    pub(crate) undecided: u64,
}

/// Why that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The snapshot is missing or damaged.
    #[error(transparent)]
    Snapshot(#[from] RaftSnapshotError),
    /// The log is damaged, or of a newer version.
    #[error("the log of a group cannot be applied: {0}")]
    Log(#[from] io::Error),
}

/// Reads a group.
///
/// # Errors
/// See [`ReplayError`].
pub(crate) async fn replay(
    empty: Table,
    sink: &Sink,
    snapshots: &RaftSnapshots,
    mut log: LogHandle,
) -> Result<Replayed, ReplayError> {
    snapshots.check_covers(log.purged()).await?;
    let (mut table, mut last) = match snapshots.load().await? {
        Some((meta, state)) => (sink.decode_table(&state)?, meta.last_log_id),
        None => (empty, None),
    };
    // What is in a snapshot was agreed on.
    let covered = last.map_or(0, |id| id.index + 1);
    let end = log.get_log_state().await?.last_log_id.map_or(0, |id| id.index + 1);
    let mut next = covered;
    'log: while next < end {
        let entries = log.try_get_log_entries(next..end.min(next + CHUNK)).await?;
        let mut batch = sink.new_batch(entries.len());
        for entry in entries {
            // What an installed snapshot has overtaken and the log was not rid of yet: terms never go back in what is agreed on.
            if Some(entry.log_id) < last {
                break 'log;
            }
            next = entry.log_id.index + 1;
            last = Some(entry.log_id);
            if let EntryPayload::Normal(payload) = entry.payload
                && payload != Payload::NOTHING
            {
                let command = sink.decode(&payload)?;
                table.apply(position(&entry.log_id), command, &mut batch)?;
            }
        }
    }
    let agreed = log.read_committed().await?.map_or(0, |id| id.index + 1);
    Ok(Replayed { table, last, undecided: next.saturating_sub(agreed.max(covered).max(1)) })
}
