//! What a member holds in memory of one group's log: vote, bounds, and the newest entries.
//!
//! Plain state without disk, thread or clock. It decides what a write means (and refuses holes), which entries a read
//! finds here and which on disk, and what may be forgotten: never an entry that is not on disk yet.

use std::{collections::VecDeque, ops::Range};

use super::group_number::GroupNumber;
use crate::raft::types::{Entry, LogId, Vote};

/// Most entries one group keeps in memory once they are on disk: enough for followers that lag by a round trip or two
/// under full load, so that only a member that comes back reads from disk.
pub(crate) const TAIL_ENTRIES: usize = 8_192;
/// Most bytes (as encoded) one group keeps in memory once they are on disk.
pub(crate) const TAIL_BYTES: usize = 8 << 20;

/// How much of a group's log stays in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailLimits {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

impl Default for TailLimits {
    fn default() -> TailLimits {
        TailLimits { entries: TAIL_ENTRIES, bytes: TAIL_BYTES }
    }
}

/// What the disk holds of a group when it is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct TailStart {
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
    pub(crate) purged: Option<LogId>,
    /// Index of the first entry above `purged`, and id of the last.
    pub(crate) present: Option<(u64, LogId)>,
}

/// A write that openraft should never ask for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TailError {
    #[error("entry {index} of group {group} would leave a hole in the log, which goes on at {next}")]
    Hole { group: GroupNumber, index: u64, next: u64 },
    #[error(
        "entries of group {group} to append do not follow one another: {index} stands where {next} belongs"
    )]
    Unordered { group: GroupNumber, index: u64, next: u64 },
}

#[derive(Debug)]
struct CachedEntry {
    entry: Entry,
    size: usize,
}

/// Where a read finds its entries.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    /// What the log contained of the range when the plan was made.
    pub(crate) range: Range<u64>,
    /// The part to read from disk; it comes first.
    pub(crate) disk: Range<u64>,
    /// The part that is in memory, right behind.
    pub(crate) cached: Vec<Entry>,
    epoch: u64,
}

/// The in-memory end of one group's log.
#[derive(Debug)]
pub(crate) struct Tail {
    group: GroupNumber,
    limits: TailLimits,
    vote: Option<Vote>,
    committed: Option<LogId>,
    /// Index up to which the commit mark has been handed to the disk.
    committed_queued: Option<u64>,
    purged: Option<LogId>,
    /// The last entry, or the purge mark where there is none.
    last: Option<LogId>,
    /// The log contains the entries `first..next`.
    first: u64,
    next: u64,
    /// The newest of them, without a gap up to `next`.
    cached: VecDeque<CachedEntry>,
    cached_bytes: usize,
    /// Entries below are on disk.
    durable: u64,
    /// Raised by each truncation: what was appended before says nothing about entries of the same index now.
    epoch: u64,
}

impl Tail {
    pub(crate) fn new(group: GroupNumber, limits: TailLimits, start: TailStart) -> Tail {
        let after_purge = start.purged.map_or(0, |id| id.index + 1);
        let (first, next, last) = match start.present {
            Some((first, last)) => (first, last.index + 1, Some(last)),
            None => (after_purge, after_purge, start.purged),
        };
        Tail {
            group,
            limits,
            vote: start.vote,
            committed_queued: start.committed.map(|id| id.index),
            committed: start.committed,
            purged: start.purged,
            last,
            first,
            next,
            cached: VecDeque::new(),
            cached_bytes: 0,
            durable: next,
            epoch: 0,
        }
    }

    pub(crate) fn vote(&self) -> Option<Vote> {
        self.vote
    }

    pub(crate) fn committed(&self) -> Option<LogId> {
        self.committed
    }

    pub(crate) fn purged(&self) -> Option<LogId> {
        self.purged
    }

    pub(crate) fn last(&self) -> Option<LogId> {
        self.last
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of entries that the log contains.
    pub(crate) fn len(&self) -> u64 {
        self.next - self.first
    }

    pub(crate) fn set_vote(&mut self, vote: Vote) {
        self.vote = Some(vote);
    }

    /// Notes the newest committed entry; it goes to disk with the group's next write.
    pub(crate) fn set_committed(&mut self, committed: Option<LogId>) {
        if committed.map(|id| id.index) > self.committed.map(|id| id.index) {
            self.committed = committed;
        }
    }

    /// The commit mark, if it is newer than the last one taken. It must be queued behind all that was queued so far, so
    /// that it never reaches the disk before the entry that it names.
    pub(crate) fn take_committed(&mut self) -> Option<LogId> {
        let newest = self.committed?;
        if self.committed_queued >= Some(newest.index) {
            return None;
        }
        self.committed_queued = Some(newest.index);
        Some(newest)
    }

    /// Adds entries with their encoded sizes.
    pub(crate) fn append(&mut self, entries: Vec<Entry>, sizes: &[usize]) -> Result<(), TailError> {
        let Some(first) = entries.first().map(|entry| entry.log_id.index) else { return Ok(()) };
        let empty = self.first == self.next;
        // An empty log that was never purged may begin anywhere: it may be the rest of one that a snapshot replaced.
        let free_start = empty && self.purged.is_none();
        if first != self.next && !free_start {
            return Err(TailError::Hole { group: self.group, index: first, next: self.next });
        }
        for (next, entry) in (first..).zip(&entries) {
            if entry.log_id.index != next {
                return Err(TailError::Unordered { group: self.group, index: entry.log_id.index, next });
            }
        }
        if empty {
            self.first = first;
            self.next = first;
            self.durable = first;
        }
        for (entry, &size) in entries.into_iter().zip(sizes) {
            self.next = entry.log_id.index + 1;
            self.last = Some(entry.log_id);
            self.cached_bytes += size;
            self.cached.push_back(CachedEntry { entry, size });
        }
        self.evict();
        Ok(())
    }

    /// Forgets the entries behind `keep` and returns the index from which the disk must forget them too.
    pub(crate) fn truncate_after(&mut self, keep: Option<LogId>) -> u64 {
        let from = keep.map_or(0, |id| id.index + 1).max(self.first);
        if from < self.next {
            while self.cached_first() < self.next && self.next > from {
                if let Some(dropped) = self.cached.pop_back() {
                    self.cached_bytes -= dropped.size;
                }
                self.next -= 1;
            }
            self.next = from;
            self.last = if self.first == self.next { self.purged } else { keep };
            self.durable = self.durable.min(from);
        }
        self.epoch += 1;
        from
    }

    /// Forgets the entries up to `upto`, which may lie behind the end. Returns the range that the disk must forget, or
    /// nothing if that was purged before.
    pub(crate) fn purge(&mut self, upto: LogId) -> Option<Range<u64>> {
        let start = upto.index + 1;
        if self.purged.is_some_and(|purged| purged.index >= upto.index) {
            return None;
        }
        // A snapshot from elsewhere may be far ahead: what was never here need not be deleted.
        let (from, end) = (self.first, start.min(self.next));
        self.purged = Some(upto);
        if start >= self.next {
            self.next = start;
            self.last = Some(upto);
        }
        self.first = self.first.max(start);
        while self.cached.front().is_some_and(|cached| cached.entry.log_id.index < start) {
            self.pop_front();
        }
        self.durable = self.durable.max(self.first);
        Some(from.min(end)..end)
    }

    /// Notes that everything below `next` that was appended in `epoch` is on disk.
    pub(crate) fn mark_durable(&mut self, epoch: u64, next: u64) {
        if epoch == self.epoch {
            self.durable = self.durable.max(next.min(self.next));
        }
        self.evict();
    }

    /// Says where the entries of `range` are that the log contains.
    pub(crate) fn plan_read(&self, range: Range<u64>) -> ReadPlan {
        let start = range.start.max(self.first);
        let end = range.end.min(self.next).max(start);
        let split = self.cached_first().clamp(start, end);
        let skip = usize::try_from(split.saturating_sub(self.cached_first())).unwrap_or(usize::MAX);
        let take = usize::try_from(end - split).unwrap_or(usize::MAX);
        let cached = self.cached.iter().skip(skip).take(take).map(|cached| cached.entry.clone()).collect();
        ReadPlan { range: start..end, disk: start..split, cached, epoch: self.epoch }
    }

    /// Like [`Tail::plan_read`], but either from disk only, where the reader keeps to the budget, or from memory only, up
    /// to `budget` bytes and at least one entry.
    pub(crate) fn plan_limited_read(&self, range: Range<u64>, budget: usize) -> ReadPlan {
        if range.start < self.cached_first() {
            return self.plan_read(range.start..range.end.min(self.cached_first()));
        }
        let skip = usize::try_from(range.start - self.cached_first()).unwrap_or(usize::MAX);
        let mut end = range.start;
        let mut bytes = 0;
        for cached in self.cached.iter().skip(skip) {
            if end >= range.end || (bytes > 0 && bytes + cached.size > budget) {
                break;
            }
            bytes += cached.size;
            end += 1;
        }
        self.plan_read(range.start..end)
    }

    /// Whether entries were truncated since `plan` was made, so that what stands on disk may be of another leader.
    pub(crate) fn rewritten_since(&self, plan: &ReadPlan) -> bool {
        self.epoch != plan.epoch
    }

    /// Whether entries of `plan` were purged since it was made, so that some may be missing on disk.
    pub(crate) fn purged_since(&self, plan: &ReadPlan) -> bool {
        self.first > plan.range.start
    }

    /// Index of the first entry in memory, or the end of the log.
    fn cached_first(&self) -> u64 {
        self.next - u64::try_from(self.cached.len()).unwrap_or(self.next)
    }

    fn evict(&mut self) {
        while self.cached.len() > self.limits.entries || self.cached_bytes > self.limits.bytes {
            let Some(oldest) = self.cached.front() else { return };
            if oldest.entry.log_id.index >= self.durable {
                return;
            }
            self.pop_front();
        }
    }

    fn pop_front(&mut self) {
        if let Some(dropped) = self.cached.pop_front() {
            self.cached_bytes -= dropped.size;
        }
    }
}

#[cfg(test)]
mod tests;
