//! What the log counts, and the hook through which a batch's figures go to the metrics.
//!
//! This module knows no metrics library.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// Figures of one committed batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitSample {
    /// Writes in it, of all groups.
    pub ops: usize,
    /// Entries in it.
    pub entries: usize,
    /// Encoded bytes of those entries.
    pub bytes: usize,
    /// Duration of COMMIT alone: writing the write-ahead log and its fsync, and now and then a checkpoint.
    pub fsync: Duration,
    /// Duration of the whole transaction.
    pub transaction: Duration,
    /// From the moment the oldest write was queued until it was on disk.
    pub oldest_wait: Duration,
}

/// Called on the commit thread after each commit, before the callbacks; it must be quick and must not block.
pub type CommitHook = Arc<dyn Fn(&CommitSample) + Send + Sync>;

/// What a member's log has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Groups with an open handle.
    pub groups: usize,
    /// Entries that their logs contain.
    pub entries: u64,
    /// Committed transactions, each one fsync.
    pub commits: u64,
    /// Writes committed.
    pub ops: u64,
    /// Entries appended.
    pub appended_entries: u64,
    /// Encoded bytes of those.
    pub appended_bytes: u64,
    /// Purged entries that were deleted.
    pub deleted_entries: u64,
    /// Writes waiting in the queue.
    pub queue_len: usize,
    /// Size of the database file, bytes.
    pub file_bytes: u64,
    /// How much of it holds nothing and waits for the next entries, bytes; seen about once a second.
    pub free_bytes: u64,
    /// Size of its write-ahead log, bytes.
    pub wal_bytes: u64,
    /// Why the log is dead, if it is.
    pub failure: Option<String>,
}

/// What a member's log takes on its disk, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSpace {
    /// The database file.
    pub file_bytes: u64,
    /// How much of it holds nothing and waits for the next entries.
    pub free_bytes: u64,
    /// Its write-ahead log.
    pub wal_bytes: u64,
}

/// Counters that the commit thread raises and others read.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) ops: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) deleted: AtomicU64,
    /// Pages of the file that hold nothing.
    pub(crate) free_pages: AtomicU64,
    /// Entries were deleted or pages given back since the last full checkpoint.
    pub(crate) checkpoint_due: AtomicBool,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").field("commits", &self.commits).finish_non_exhaustive()
    }
}

/// Notices when nothing was written for a while. Plain state: one call per tick of a fixed length.
#[derive(Debug)]
pub(crate) struct IdleWatch {
    idle_ticks_wanted: u32,
    idle_ticks: u32,
    seen_ops: u64,
}

impl IdleWatch {
    pub(crate) fn new(idle_ticks_wanted: u32) -> IdleWatch {
        IdleWatch { idle_ticks_wanted, idle_ticks: 0, seen_ops: 0 }
    }

    /// Number of whole ticks without a write, given how many writes there were so far.
    pub(crate) fn tick(&mut self, ops: u64) -> u32 {
        self.idle_ticks = if ops == self.seen_ops { self.idle_ticks.saturating_add(1) } else { 0 };
        self.seen_ops = ops;
        self.idle_ticks
    }

    /// Whether it has been quiet for long enough.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle_ticks >= self.idle_ticks_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_begins_after_the_wanted_quiet_ticks() {
        let mut watch = IdleWatch::new(2);
        let idle: Vec<bool> = [5, 5, 5, 6, 6, 6, 6]
            .into_iter()
            .map(|ops| {
                watch.tick(ops);
                watch.is_idle()
            })
            .collect();
        assert_eq!(idle, [false, false, true, false, false, true, true]);
    }
}
