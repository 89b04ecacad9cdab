//! One group's log as openraft sees it.
//!
//! The same handle stands over the SQLite file and over the simulated disk. It changes the group's tail and queues the
//! write; it never waits for the disk where openraft does not ask for it.

use std::{
    fmt, io,
    ops::{Bound, Range, RangeBounds},
    path::Path,
    sync::Arc,
    time::Instant,
};

use holdfast_locktable::mutant;
use openraft::{
    OptionalSend,
    storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage},
};
use tokio::sync::{mpsc, oneshot};

use super::{
    codec::{self, Slot},
    group_number::{GroupNumber, INDEX_END, IndexOutOfRange},
    load::{self, DiskRead, ReadError},
    memory::MemorySink,
    op::{Op, Rows, SharedTail, Waiter, Write},
    pump::{Order, Shared},
    tail::Tail,
};
use crate::raft::types::{Entry, LogId, TypeConfig, Vote};

/// Bytes of entries (as encoded) that one replication message carries at most, but for a single larger entry.
const READ_BYTES: usize = 1 << 20;
/// How often a read starts again because entries were purged or replaced meanwhile; each of these is rare.
const READ_ATTEMPTS: usize = 8;

/// The log of one group. Clones are the same log.
#[derive(Clone)]
pub struct LogHandle {
    group: GroupNumber,
    tail: SharedTail,
    sink: Sink,
}

/// Where writes go, and where entries are read that are no longer in memory.
#[derive(Clone)]
pub(crate) enum Sink {
    Pump(PumpSink),
    Memory(MemorySink),
}

#[derive(Clone)]
pub(crate) struct PumpSink {
    /// The file, for errors.
    pub(crate) path: Arc<Path>,
    pub(crate) queue: mpsc::Sender<Order>,
    pub(crate) reader: tokio_rusqlite::Connection,
    pub(crate) shared: Arc<Shared>,
}

impl LogHandle {
    pub(crate) fn new(group: GroupNumber, tail: SharedTail, sink: Sink) -> LogHandle {
        LogHandle { group, tail, sink }
    }

    /// The group whose log this is.
    #[must_use]
    pub fn group(&self) -> GroupNumber {
        self.group
    }

    /// The last purged entry: a snapshot must contain it.
    #[must_use]
    pub fn purged(&self) -> Option<LogId> {
        self.tail.lock().purged()
    }

    /// Lets go of all entries up to this one, which a durable snapshot holds; does nothing where they are gone already. Only
    /// where the group does not run: one that runs purges by itself.
    ///
    /// # Errors
    /// When the disk has failed, or the index is out of range.
    pub async fn shorten(&mut self, last: LogId) -> io::Result<()> {
        self.purge(last).await
    }

    /// Lets `change` change the tail and queues the write that it returns.
    async fn submit<F>(&self, waiter: Waiter, change: F) -> io::Result<()>
    where
        F: FnOnce(&mut Tail) -> io::Result<Option<Write>>,
    {
        match &self.sink {
            Sink::Pump(sink) => match sink.queue.reserve().await {
                Ok(permit) => self.change_tail(waiter, Some(Instant::now()), change, |op| {
                    permit.send(Order::Write(op));
                    Ok(())
                }),
                Err(mpsc::error::SendError(())) => {
                    waiter.complete(Err(sink.shared.failure.refusal()));
                    Err(sink.shared.failure.refusal())
                }
            },
            Sink::Memory(sink) => {
                let result = self.change_tail(waiter, None, change, |op| sink.push(op));
                sink.pushed();
                result
            }
        }
    }

    /// Change and queueing are one step under the tail's lock, so that both happen in the same order.
    fn change_tail<F, Q>(
        &self,
        waiter: Waiter,
        queued: Option<Instant>,
        change: F,
        queue: Q,
    ) -> io::Result<()>
    where
        F: FnOnce(&mut Tail) -> io::Result<Option<Write>>,
        Q: FnOnce(Op) -> Result<(), Box<(Op, io::Error)>>,
    {
        let mut tail = self.tail.lock();
        let (waiter, err) = match change(&mut tail) {
            Ok(Some(write)) => {
                let committed = tail.take_committed();
                let waiter = if mutant!("acknowledged-before-sync") {
                    waiter.complete(Ok(()));
                    Waiter::Nobody
                } else {
                    waiter
                };
                let op =
                    Op { group: self.group, tail: Arc::clone(&self.tail), write, committed, waiter, queued };
                match queue(op) {
                    Ok(()) => return Ok(()),
                    Err(refused) => {
                        let (op, err) = *refused;
                        (op.waiter, err)
                    }
                }
            }
            Ok(None) => {
                waiter.complete(Ok(()));
                return Ok(());
            }
            Err(err) => (waiter, err),
        };
        waiter.complete(Err(io::Error::new(err.kind(), err.to_string())));
        Err(err)
    }

    /// Like [`LogHandle::submit`], and waits until it is on disk.
    async fn submit_and_wait<F>(&self, change: F) -> io::Result<()>
    where
        F: FnOnce(&mut Tail) -> io::Result<Option<Write>>,
    {
        let (sender, receiver) = oneshot::channel();
        self.submit(Waiter::Caller(sender), change).await?;
        match receiver.await {
            Ok(result) => result,
            Err(oneshot::error::RecvError { .. }) => Err(self.refusal()),
        }
    }

    fn refusal(&self) -> io::Error {
        match &self.sink {
            Sink::Pump(sink) => sink.shared.failure.refusal(),
            Sink::Memory(sink) => sink.refusal(),
        }
    }

    /// Reads what the log contains of `range`; with a budget at least one entry and then what fits.
    async fn read(&self, range: Range<u64>, budget: Option<usize>) -> io::Result<Vec<Entry>> {
        for _attempt in 0..READ_ATTEMPTS {
            let plan = {
                let tail = self.tail.lock();
                match budget {
                    Some(budget) => tail.plan_limited_read(range.clone(), budget),
                    None => tail.plan_read(range.clone()),
                }
            };
            if plan.disk.is_empty() {
                return Ok(plan.cached);
            }
            let read = self.read_disk(plan.disk.clone(), budget).await?;
            let (rewritten, purged) = {
                let tail = self.tail.lock();
                (tail.rewritten_since(&plan), tail.purged_since(&plan))
            };
            if rewritten {
                continue;
            }
            let mut entries = read.entries;
            let gap = plan.disk.clone().zip(&entries).find(|(index, entry)| *index != entry.log_id.index);
            let read_end = plan.disk.start + u64::try_from(entries.len()).unwrap_or(u64::MAX);
            match gap {
                None if read.cut => return Ok(entries),
                None if read_end == plan.disk.end => {
                    entries.extend(plan.cached);
                    return Ok(entries);
                }
                _ if purged => {}
                gap => {
                    let index = gap.map_or(read_end, |(index, _)| index);
                    return Err(io::Error::other(load::missing(self.group, index)));
                }
            }
        }
        Err(io::Error::other(format!(
            "the entries {range:?} of group {} kept changing while they were read",
            self.group
        )))
    }

    async fn read_disk(&self, range: Range<u64>, budget: Option<usize>) -> io::Result<DiskRead> {
        let group = self.group;
        match &self.sink {
            Sink::Pump(sink) => {
                sink.reader.call(move |conn| load::read_entries(conn, group, &range, budget)).await.map_err(
                    |err: tokio_rusqlite::Error<ReadError>| match err {
                        tokio_rusqlite::Error::Error(err) => {
                            io::Error::other(format!("{err} (in {})", sink.path.display()))
                        }
                        _ => sink.shared.failure.refusal(),
                    },
                )
            }
            Sink::Memory(sink) => sink.read(group, &range, budget),
        }
    }

    fn check_index(&self, index: u64) -> io::Result<()> {
        if index < INDEX_END {
            Ok(())
        } else {
            Err(io::Error::other(IndexOutOfRange { group: self.group, index }))
        }
    }
}

impl fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogHandle").field("group", &self.group).finish_non_exhaustive()
    }
}

fn plain_range(range: &impl RangeBounds<u64>) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => end.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    start..end
}

impl RaftLogReader<TypeConfig> for LogHandle {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> Result<Vec<Entry>, io::Error>
    where
        RB: RangeBounds<u64> + Clone + fmt::Debug + OptionalSend,
    {
        let range = plain_range(&range);
        self.read(range, None).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.tail.lock().vote())
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        self.read(start..end, Some(READ_BYTES)).await
    }
}

impl RaftLogStorage<TypeConfig> for LogHandle {
    type LogReader = LogHandle;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let tail = self.tail.lock();
        Ok(LogState { last_purged_log_id: tail.purged(), last_log_id: tail.last() })
    }

    async fn get_log_reader(&mut self) -> LogHandle {
        self.clone()
    }

    /// Returns once the vote is on disk, behind everything that was queued before.
    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let vote = *vote;
        let record = codec::seal(self.group, Slot::Vote, &vote, Vec::new()).map_err(io::Error::other)?;
        self.submit_and_wait(move |tail| {
            tail.set_vote(vote);
            Ok(Some(Write::Vote { record }))
        })
        .await
    }

    /// Only notes it; it goes to disk with the group's next write, or when the log is idle.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        self.tail.lock().set_committed(committed);
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.tail.lock().committed())
    }

    /// Returns once the entries can be read and are queued; `callback` fires once they are on disk.
    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let encoded = entries
            .last()
            .map_or(Ok(()), |last| self.check_index(last.log_id.index))
            .and_then(|()| Rows::encode(self.group, &entries).map_err(io::Error::other));
        let waiter = Waiter::Flushed(callback);
        match encoded {
            Ok(rows) => {
                self.submit(waiter, move |tail| {
                    tail.append(entries, rows.sizes()).map_err(io::Error::other)?;
                    Ok(Some(Write::Append { rows, epoch: tail.epoch() }))
                })
                .await
            }
            Err(err) => {
                waiter.complete(Err(io::Error::new(err.kind(), err.to_string())));
                Err(err)
            }
        }
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        self.submit_and_wait(move |tail| {
            let from = tail.truncate_after(last_log_id);
            Ok(Some(Write::Truncate { from, epoch: tail.epoch() }))
        })
        .await
    }

    /// Returns at once; the entries are out of sight now and deleted little by little.
    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        self.check_index(log_id.index)?;
        let record = codec::seal(self.group, Slot::Purged, &log_id, Vec::new()).map_err(io::Error::other)?;
        self.submit(Waiter::Nobody, move |tail| {
            Ok(tail.purge(log_id).map(|range| Write::Purge { record, range }))
        })
        .await
    }
}
