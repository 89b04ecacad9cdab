//! One write of one group, on its way to the disk, and who waits for it.
//!
//! Writes of one group are queued under that group's tail lock, so that their order in the queue is the order in which
//! they changed the tail. This module knows neither SQLite nor the simulated disk.

use std::{fmt, io, ops::Range, sync::Arc, time::Instant};

use openraft::storage::IOFlushed;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    codec::{self, DamagedRecord, Slot},
    group_number::GroupNumber,
    tail::Tail,
};
use crate::raft::types::{Entry, LogId, TypeConfig};

/// A group's tail, shared by its handles and whoever writes its ops.
pub(crate) type SharedTail = Arc<Mutex<Tail>>;

/// Encoded entries that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Index of the first.
    first: u64,
    /// All records, one behind the other.
    bytes: Vec<u8>,
    /// Length of each.
    sizes: Vec<usize>,
}

impl Rows {
    /// Encodes `entries`.
    pub(crate) fn encode(group: GroupNumber, entries: &[Entry]) -> Result<Rows, DamagedRecord> {
        let first = entries.first().map_or(0, |entry| entry.log_id.index);
        let mut bytes = Vec::new();
        let mut sizes = Vec::with_capacity(entries.len());
        for entry in entries {
            let before = bytes.len();
            bytes = codec::seal(group, Slot::Entry(entry.log_id.index), entry, bytes)?;
            sizes.push(bytes.len() - before);
        }
        Ok(Rows { first, bytes, sizes })
    }

    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Index behind the last.
    pub(crate) fn end(&self) -> u64 {
        self.first + u64::try_from(self.sizes.len()).unwrap_or(0)
    }

    /// Index and record of each entry.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = self.bytes.as_slice();
        (self.first..).zip(&self.sizes).map(move |(index, &size)| {
            let (record, behind) = rest.split_at(size.min(rest.len()));
            rest = behind;
            (index, record)
        })
    }
}

/// What is to be written.
#[derive(Debug)]
pub(crate) enum Write {
    /// New entries, appended in `epoch` of the tail.
    Append { rows: Rows, epoch: u64 },
    /// The sealed vote.
    Vote { record: Vec<u8> },
    /// Forget the entries from `from` on; `epoch` begins with this.
    Truncate { from: u64, epoch: u64 },
    /// Note the purge mark, then forget `range` piece by piece.
    Purge { record: Vec<u8>, range: Range<u64> },
    /// Nothing but the commit mark that rides along.
    CommitMark,
}

/// Who hears when a write is on disk.
pub(crate) enum Waiter {
    /// Nobody.
    Nobody,
    /// openraft's callback.
    Flushed(IOFlushed<TypeConfig>),
    /// A caller that waits.
    Caller(oneshot::Sender<io::Result<()>>),
}

impl Waiter {
    pub(crate) fn complete(self, result: io::Result<()>) {
        match self {
            Waiter::Nobody => {}
            Waiter::Flushed(callback) => callback.io_completed(result),
            // The caller may have gone away; the write stands all the same.
            Waiter::Caller(sender) => drop(sender.send(result)),
        }
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Waiter::Nobody => "Nobody",
            Waiter::Flushed(_) => "Flushed",
            Waiter::Caller(_) => "Caller",
        })
    }
}

/// One queued write.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) group: GroupNumber,
    pub(crate) tail: SharedTail,
    pub(crate) write: Write,
    /// The group's commit mark at that moment, if it is news.
    pub(crate) committed: Option<LogId>,
    pub(crate) waiter: Waiter,
    /// When it was queued; for statistics only, and absent in simulations.
    pub(crate) queued: Option<Instant>,
}

impl Op {
    /// Entries that this op brings.
    pub(crate) fn entries(&self) -> usize {
        match &self.write {
            Write::Append { rows, .. } => rows.sizes().len(),
            Write::Vote { .. } | Write::Truncate { .. } | Write::Purge { .. } | Write::CommitMark => 0,
        }
    }

    /// Bytes of entries that this op brings.
    pub(crate) fn bytes(&self) -> usize {
        match &self.write {
            Write::Append { rows, .. } => rows.bytes(),
            Write::Vote { .. } | Write::Truncate { .. } | Write::Purge { .. } | Write::CommitMark => 0,
        }
    }

    /// Tells the tail that this op is on disk.
    pub(crate) fn mark_durable(&self) {
        match &self.write {
            Write::Append { rows, epoch } => self.tail.lock().mark_durable(*epoch, rows.end()),
            Write::Truncate { from, epoch } => self.tail.lock().mark_durable(*epoch, *from),
            Write::Vote { .. } | Write::Purge { .. } | Write::CommitMark => {}
        }
    }
}
