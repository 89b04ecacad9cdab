//! The log over a simulated disk: the same handle, deterministic and without threads.
//!
//! Writes wait until [`MemoryLog::flush`] makes them durable, in order. [`MemoryLog::crash`] drops what was not flushed
//! and cuts off every handle, as the end of a process does; what `open_group` then finds is what a restart would find.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    ops::Range,
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use openraft::EntryPayload;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    codec::{self, DamagedRecord, Slot},
    error::{FailureSignal, LogFailure, OpenGroupError},
    group_number::GroupNumber,
    handle::{LogHandle, Sink},
    image::{self, Image, Purges},
    load::{self, DiskRead},
    op::{Op, Rows, SharedTail},
    tail::{Tail, TailLimits, TailStart},
};
use crate::raft::types::{Entry, LogId, Payload};

/// Index, term and encoded command of entries; the command is empty where the entry is Raft's own.
pub type Commands = Vec<(u64, u64, Bytes)>;

/// What failures call the disk.
const PLACE: &str = "memory";

/// When writes become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    /// At once, within the call that writes.
    Immediate,
    /// When [`MemoryLog::flush`] is called.
    Manual,
}

/// The simulated disk of one member, for all its groups. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct MemoryLog {
    disk: Arc<Disk>,
}

#[derive(Debug)]
struct Disk {
    mode: FlushMode,
    limits: TailLimits,
    state: Mutex<DiskState>,
    /// Held during a flush, so that two never answer out of order.
    flushing: Mutex<()>,
    failure: FailureSignal,
}

#[derive(Debug, Default)]
struct DiskState {
    /// Raised by each crash; handles of an earlier run are cut off.
    run: u64,
    image: MemoryImage,
    pending: VecDeque<Op>,
    purges: Purges,
    tails: BTreeMap<GroupNumber, SharedTail>,
    failing: Option<LogFailure>,
}

impl MemoryLog {
    /// An empty disk.
    #[must_use]
    pub fn new(mode: FlushMode) -> MemoryLog {
        MemoryLog::with_limits(mode, TailLimits::default())
    }

    pub(crate) fn with_limits(mode: FlushMode, limits: TailLimits) -> MemoryLog {
        let disk = Disk {
            mode,
            limits,
            state: Mutex::default(),
            flushing: Mutex::new(()),
            failure: FailureSignal::new(),
        };
        MemoryLog { disk: Arc::new(disk) }
    }

    /// The log of `group`, as the disk holds it or as its other handles see it.
    ///
    /// # Errors
    /// When a record of the group is damaged or its committed tail is lost.
    pub fn open_group(&self, group: GroupNumber) -> Result<LogHandle, OpenGroupError> {
        let mut state = self.disk.state.lock();
        let run = state.run;
        let tail = match state.tails.get(&group) {
            Some(tail) => Arc::clone(tail),
            None => {
                let start = state.image.load(group)?;
                let tail = Arc::new(Mutex::new(Tail::new(group, self.disk.limits, start)));
                state.tails.insert(group, Arc::clone(&tail));
                tail
            }
        };
        let sink = MemorySink { disk: Arc::clone(&self.disk), run };
        Ok(LogHandle::new(group, tail, Sink::Memory(sink)))
    }

    /// Makes all waiting writes durable and answers those who wait. Returns their number.
    pub fn flush(&self) -> usize {
        self.disk.flush(usize::MAX)
    }

    /// Like [`MemoryLog::flush`], but at most the oldest `ops` writes.
    pub fn flush_some(&self, ops: usize) -> usize {
        self.disk.flush(ops)
    }

    /// Writes that wait to become durable.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.disk.state.lock().pending.len()
    }

    /// Loses every write that is not durable, without an answer, and cuts off all handles.
    pub fn crash(&self) {
        let lost = {
            let mut state = self.disk.state.lock();
            state.run += 1;
            state.tails.clear();
            state.purges = Purges::default();
            std::mem::take(&mut state.pending)
        };
        drop(lost);
    }

    /// From now on the disk refuses every write, as a dying disk does.
    pub fn break_disk(&self, reason: &str) {
        self.disk.state.lock().failing =
            Some(LogFailure::new(Path::new(PLACE), "committing to disk", reason));
    }

    /// The disk takes writes again, as one that was full does once there is room. Call it while no process uses it.
    pub fn mend_disk(&self) {
        self.disk.state.lock().failing = None;
        self.disk.failure.clear();
    }

    /// The durable commands of a group with indexes in `range`, each with index and term; entries of Raft's own have none.
    ///
    /// # Errors
    /// When a record is damaged.
    pub fn commands(&self, group: GroupNumber, range: &Range<u64>) -> Result<Commands, DamagedRecord> {
        let read = self.disk.state.lock().image.read(group, range, None)?;
        let command = |entry: Entry| match entry.payload {
            EntryPayload::Normal(command) => (entry.log_id.index, entry.log_id.leader_id.term, command.0),
            EntryPayload::Blank | EntryPayload::Membership(_) => {
                (entry.log_id.index, entry.log_id.leader_id.term, Payload::NOTHING.0)
            }
        };
        Ok(read.entries.into_iter().map(command).collect())
    }

    /// Flips one bit of a durable entry. False if there is no such entry.
    pub fn damage(&self, group: GroupNumber, index: u64) -> bool {
        let mut state = self.disk.state.lock();
        let record = state.image.groups.get_mut(&group).and_then(|group| group.entries.get_mut(&index));
        match record.and_then(|record| record.last_mut()) {
            Some(byte) => {
                *byte ^= 1;
                true
            }
            None => false,
        }
    }

    /// Turns to `Some` when the disk has failed.
    #[must_use]
    pub fn failures(&self) -> watch::Receiver<Option<LogFailure>> {
        self.disk.failure.subscribe()
    }
}

impl Disk {
    fn flush(&self, limit: usize) -> usize {
        let _in_order = self.flushing.lock();
        let (ops, result) = {
            let mut state = self.state.lock();
            let count = state.pending.len().min(limit);
            let ops: Vec<Op> = state.pending.drain(..count).collect();
            let result = state.write(&ops);
            (ops, result)
        };
        if let Err(failure) = &result {
            self.failure.raise(failure.clone());
        }
        let count = ops.len();
        for op in ops {
            match &result {
                Ok(()) => {
                    op.mark_durable();
                    op.waiter.complete(Ok(()));
                }
                Err(failure) => op.waiter.complete(Err(failure.io())),
            }
        }
        count
    }
}

impl DiskState {
    fn write(&mut self, ops: &[Op]) -> Result<(), LogFailure> {
        if let Some(failure) = &self.failing {
            return Err(failure.clone());
        }
        let mut fill = || -> Result<(), DamagedRecord> {
            for op in ops {
                image::apply(op, &mut self.image, &mut self.purges)?;
            }
            image::apply_commit_marks(ops, &mut self.image)?;
            self.purges.delete_piece(&mut self.image, 0).map(|_deleted| ())
        };
        fill().map_err(|err| LogFailure::new(Path::new(PLACE), "writing entries", &err))
    }
}

/// A handle's way to the simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct MemorySink {
    disk: Arc<Disk>,
    run: u64,
}

impl MemorySink {
    pub(crate) fn push(&self, op: Op) -> Result<(), Box<(Op, io::Error)>> {
        let mut state = self.disk.state.lock();
        if state.run != self.run || state.failing.is_some() && self.disk.failure.get().is_some() {
            drop(state);
            return Err(Box::new((op, self.refusal())));
        }
        state.pending.push_back(op);
        Ok(())
    }

    /// To be called after a push, without the tail's lock.
    pub(crate) fn pushed(&self) {
        match self.disk.mode {
            FlushMode::Immediate => {
                self.disk.flush(usize::MAX);
            }
            FlushMode::Manual => {}
        }
    }

    pub(crate) fn refusal(&self) -> io::Error {
        self.disk.failure.refusal()
    }

    pub(crate) fn read(
        &self,
        group: GroupNumber,
        range: &Range<u64>,
        budget: Option<usize>,
    ) -> io::Result<DiskRead> {
        let state = self.disk.state.lock();
        if state.run != self.run {
            return Err(self.refusal());
        }
        state.image.read(group, range, budget).map_err(io::Error::other)
    }
}

/// What is durable.
#[derive(Debug, Default)]
struct MemoryImage {
    groups: BTreeMap<GroupNumber, GroupImage>,
}

#[derive(Debug, Default)]
struct GroupImage {
    entries: BTreeMap<u64, Vec<u8>>,
    records: BTreeMap<Slot, Vec<u8>>,
}

impl MemoryImage {
    fn load(&mut self, group: GroupNumber) -> Result<TailStart, OpenGroupError> {
        let image = self.groups.entry(group).or_default();
        let record = |slot: Slot| image.records.get(&slot);
        let vote = record(Slot::Vote).map(|r| codec::unseal(group, Slot::Vote, r)).transpose()?;
        let mark = |slot: Slot| -> Result<Option<LogId>, DamagedRecord> {
            record(slot).map(|r| codec::unseal(group, slot, r)).transpose()
        };
        let committed = mark(Slot::Committed)?;
        let purged = mark(Slot::Purged)?;
        let after_purge = purged.map_or(0, |id| id.index + 1);
        image.entries.retain(|index, _| *index >= after_purge);
        let present = match (image.entries.first_key_value(), image.entries.last_key_value()) {
            (Some((&first, _)), Some((&last, record))) => {
                for (expected, &index) in (first..).zip(image.entries.keys()) {
                    if expected != index {
                        return Err(load::missing(group, expected).into());
                    }
                }
                Some((first, load::decode_entry(group, last, record)?.log_id))
            }
            (None, _) | (_, None) => None,
        };
        load::check_tail(group, TailStart { vote, committed, purged, present })
    }

    fn read(
        &self,
        group: GroupNumber,
        range: &Range<u64>,
        budget: Option<usize>,
    ) -> Result<DiskRead, DamagedRecord> {
        let mut read = DiskRead::default();
        let Some(image) = self.groups.get(&group) else { return Ok(read) };
        let mut bytes = 0;
        for (&index, record) in image.entries.range(range.clone()) {
            bytes += record.len();
            if !read.entries.is_empty() && budget.is_some_and(|budget| bytes > budget) {
                read.cut = true;
                break;
            }
            read.entries.push(load::decode_entry(group, index, record)?);
        }
        Ok(read)
    }
}

impl Image for MemoryImage {
    type Error = DamagedRecord;

    fn insert(&mut self, group: GroupNumber, rows: &Rows) -> Result<(), DamagedRecord> {
        let image = self.groups.entry(group).or_default();
        image.entries.extend(rows.iter().map(|(index, record)| (index, record.to_vec())));
        Ok(())
    }

    fn put(&mut self, group: GroupNumber, slot: Slot, record: &[u8]) -> Result<(), DamagedRecord> {
        self.groups.entry(group).or_default().records.insert(slot, record.to_vec());
        Ok(())
    }

    fn delete(&mut self, group: GroupNumber, range: &Range<u64>) -> Result<(), DamagedRecord> {
        if range.is_empty() {
            return Ok(());
        }
        let image = self.groups.entry(group).or_default();
        let mut behind = image.entries.split_off(&range.start);
        image.entries.append(&mut behind.split_off(&range.end));
        Ok(())
    }
}
