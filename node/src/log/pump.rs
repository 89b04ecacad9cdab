//! The commit pump: one long closure on the writing connection's thread that turns whatever is waiting, of all groups,
//! into one transaction and so one fsync, and then tells everybody who waited, in order.
//!
//! After the first error nothing is written any more: a failed fsync must never be tried again, because the system may
//! have dropped the pages and would report success. This module knows no entries, only ops.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{mpsc, oneshot};
use tokio_rusqlite::rusqlite::{self, Connection, params};

use super::{
    codec::{DamagedRecord, Slot},
    error::{FailureSignal, LogFailure},
    folder_lock::FolderLock,
    group_number::{GroupNumber, IndexOutOfRange},
    image::{self, Image, Purges},
    load::meta_key,
    op::{Op, Rows},
    schema,
    space::{self, Space},
    stats::{CommitHook, CommitSample, Counters, LogSpace},
    verify,
    witness::Witness,
};

/// Writes that may wait for the disk. When it is full, whoever appends waits (openraft's core of that group): the disk
/// is the bottleneck then, and more queueing would only add delay.
pub(crate) const QUEUE_OPS: usize = 4_096;
/// Most writes in one transaction, so that no answer waits for an endless batch.
const BATCH_OPS: usize = 1_024;
/// Bytes of entries from which on a transaction takes no further write.
const BATCH_BYTES: usize = 4 << 20;
/// How long a commit waits for a foreign process (somebody's `sqlite3` shell) that holds the write lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// What the pump is asked to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Write this.
    Write(Op),
    /// Empty the write-ahead log, if no reader is in the way.
    Checkpoint(Option<oneshot::Sender<()>>),
    /// See how much of the file is free, and give back a step of it.
    GiveBack {
        /// Whether nobody has written for a while.
        quiet: bool,
    },
    /// Answer: what was queued before is on disk then.
    Pulse(oneshot::Sender<()>),
    /// Write what is queued, then end.
    Stop,
}

/// What the pump shares with the actor and the handles.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The file, for failures.
    pub(crate) path: PathBuf,
    pub(crate) failure: FailureSignal,
    pub(crate) counters: Counters,
}

impl Shared {
    /// What the file and its write-ahead log take now.
    pub(crate) fn space(&self) -> LogSpace {
        let size = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
        let mut wal = self.path.clone().into_os_string();
        wal.push("-wal");
        LogSpace {
            file_bytes: size(&self.path),
            free_bytes: Counters::get(&self.counters.free_pages) * u64::from(schema::PAGE_SIZE),
            wal_bytes: size(wal.as_ref()),
        }
    }
}

/// The pump, before and while it runs.
pub(crate) struct Pump {
    queue: mpsc::Receiver<Order>,
    backlog: VecDeque<Order>,
    purges: Purges,
    shared: Arc<Shared>,
    hook: Option<CommitHook>,
    /// Remembers what was confirmed.
    witness: Witness,
    /// Nobody else may open the folder while this thread can still write.
    _lock: Arc<FolderLock>,
}

impl Pump {
    pub(crate) fn new(
        queue: mpsc::Receiver<Order>,
        shared: Arc<Shared>,
        hook: Option<CommitHook>,
        witness: Witness,
        lock: Arc<FolderLock>,
    ) -> Pump {
        Pump {
            queue,
            backlog: VecDeque::new(),
            purges: Purges::default(),
            shared,
            hook,
            witness,
            _lock: lock,
        }
    }

    /// Works until it is told to stop, all handles are gone, or the disk fails.
    pub(crate) fn run(mut self, conn: &mut Connection) -> Result<(), LogFailure> {
        let result = self.work(conn);
        if let Err(failure) = &result {
            self.refuse_all(failure);
        }
        result
    }

    fn work(&mut self, conn: &mut Connection) -> Result<(), LogFailure> {
        while self.refill() {
            let batch = self.take_batch();
            if !batch.is_empty() || !self.purges.is_empty() {
                self.commit(conn, batch)?;
            }
            self.obey(conn)?;
        }
        Ok(())
    }

    /// Waits until there is something to do; false when there never will be.
    fn refill(&mut self) -> bool {
        if !self.backlog.is_empty() {
            return true;
        }
        let mut orders = Vec::new();
        if self.purges.is_empty() {
            if self.queue.blocking_recv_many(&mut orders, BATCH_OPS) == 0 {
                return false;
            }
        } else {
            // Deletions go on while nobody writes.
            while orders.len() < BATCH_OPS {
                match self.queue.try_recv() {
                    Ok(order) => orders.push(order),
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) if orders.is_empty() => return false,
                    Err(mpsc::error::TryRecvError::Disconnected) => break,
                }
            }
        }
        self.backlog.extend(orders);
        true
    }

    /// The next writes, up to the first other order.
    fn take_batch(&mut self) -> Vec<Op> {
        let mut batch = Vec::with_capacity(self.backlog.len());
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            match self.backlog.pop_front() {
                Some(Order::Write(op)) => {
                    bytes += op.bytes();
                    batch.push(op);
                }
                Some(
                    order @ (Order::Checkpoint(_) | Order::GiveBack { .. } | Order::Pulse(_) | Order::Stop),
                ) => {
                    self.backlog.push_front(order);
                    break;
                }
                None => break,
            }
        }
        batch
    }

    /// Carries out orders other than writes that are next.
    fn obey(&mut self, conn: &Connection) -> Result<(), LogFailure> {
        loop {
            match self.backlog.pop_front() {
                Some(Order::Checkpoint(waiter)) => {
                    self.checkpoint(conn)?;
                    if let Some(waiter) = waiter {
                        // Whoever asked may have gone away.
                        let _ = waiter.send(());
                    }
                }
                Some(Order::GiveBack { quiet }) => self.give_back(conn, quiet)?,
                Some(Order::Pulse(waiter)) => {
                    // As above.
                    let _ = waiter.send(());
                }
                Some(Order::Stop) => self.queue.close(),
                Some(order @ Order::Write(_)) => {
                    self.backlog.push_front(order);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    fn commit(&mut self, conn: &Connection, batch: Vec<Op>) -> Result<(), LogFailure> {
        let began = Instant::now();
        let entries: usize = batch.iter().map(Op::entries).sum();
        let number = self.witness.confirmed() + 1;
        let appended = u64::try_from(entries).unwrap_or(0);
        let path = &self.shared.path;
        let written = write(conn, path, &batch, &mut self.purges, appended, number).and_then(|written| {
            // Before anybody is told.
            self.witness
                .confirm(number)
                .map_err(|err| LogFailure::new(self.witness.path(), "noting a commit", &err))?;
            Ok(written)
        });
        match written {
            Ok(written) => {
                self.count(&batch, entries, &written, began);
                for op in batch {
                    op.mark_durable();
                    op.waiter.complete(Ok(()));
                }
                Ok(())
            }
            Err(failure) => {
                self.shared.failure.raise(failure.clone());
                for op in batch {
                    op.waiter.complete(Err(failure.io()));
                }
                Err(failure)
            }
        }
    }

    fn count(&self, batch: &[Op], entries: usize, written: &Written, began: Instant) {
        let counters = &self.shared.counters;
        let bytes: usize = batch.iter().map(Op::bytes).sum();
        let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Counters::add(&counters.commits, 1);
        Counters::add(&counters.ops, wide(batch.len()));
        Counters::add(&counters.entries, wide(entries));
        Counters::add(&counters.bytes, wide(bytes));
        Counters::add(&counters.deleted, written.deleted);
        if written.deleted > 0 {
            counters.checkpoint_due.store(true, Ordering::Relaxed);
        }
        if let Some(hook) = &self.hook {
            let now = Instant::now();
            let oldest = batch.iter().filter_map(|op| op.queued).min().unwrap_or(began);
            hook(&CommitSample {
                ops: batch.len(),
                entries,
                bytes,
                fsync: written.fsync,
                transaction: now - began,
                oldest_wait: now.saturating_duration_since(oldest),
            });
        }
    }

    fn checkpoint(&self, conn: &Connection) -> Result<(), LogFailure> {
        let synced = self
            .witness
            .sync()
            .map_err(|err| LogFailure::new(self.witness.path(), "syncing what was confirmed", &err));
        let truncated = synced.and_then(|()| {
            truncate_wal(conn).map_err(|err| LogFailure::new(&self.shared.path, "checkpointing", &err))
        });
        match truncated {
            Ok(done) => {
                self.shared.counters.checkpoint_due.store(!done, Ordering::Relaxed);
                Ok(())
            }
            Err(failure) => {
                self.shared.failure.raise(failure.clone());
                Err(failure)
            }
        }
    }

    fn give_back(&self, conn: &Connection, quiet: bool) -> Result<(), LogFailure> {
        let counters = &self.shared.counters;
        let given = || -> rusqlite::Result<Space> {
            let before = Space::look(conn)?;
            let pages = before.step(quiet);
            if pages == 0 {
                return Ok(before);
            }
            conn.busy_timeout(Duration::ZERO)?;
            space::give_back(conn, pages)?;
            conn.busy_timeout(BUSY_TIMEOUT)?;
            let after = Space::look(conn)?;
            if after.pages < before.pages {
                // The file itself shrinks at the next checkpoint.
                counters.checkpoint_due.store(true, Ordering::Relaxed);
            }
            Ok(after)
        };
        match given() {
            Ok(now) => {
                counters.free_pages.store(now.free, Ordering::Relaxed);
                Ok(())
            }
            Err(err) => {
                let failure = LogFailure::new(&self.shared.path, "giving free pages back", &err);
                self.shared.failure.raise(failure.clone());
                Err(failure)
            }
        }
    }

    /// Answers everything that is queued, and everything that still comes, with the failure.
    fn refuse_all(&mut self, failure: &LogFailure) {
        self.queue.close();
        let backlog = std::mem::take(&mut self.backlog);
        for order in backlog {
            refuse(order, failure);
        }
        while let Some(order) = self.queue.blocking_recv() {
            refuse(order, failure);
        }
    }
}

fn refuse(order: Order, failure: &LogFailure) {
    match order {
        Order::Write(op) => op.waiter.complete(Err(failure.io())),
        Order::Checkpoint(_) | Order::GiveBack { .. } | Order::Pulse(_) | Order::Stop => {}
    }
}

struct Written {
    fsync: Duration,
    deleted: u64,
}

/// One transaction, the one of this number.
fn write(
    conn: &Connection,
    path: &Path,
    batch: &[Op],
    purges: &mut Purges,
    appended: u64,
    number: u64,
) -> Result<Written, LogFailure> {
    let run = |sql: &'static str| conn.prepare_cached(sql)?.execute([]);
    run("BEGIN IMMEDIATE").map_err(|err| LogFailure::new(path, "beginning a transaction", &err))?;
    let mut image = SqliteImage { conn };
    let mut fill = || -> Result<u64, WriteError> {
        for op in batch {
            image::apply(op, &mut image, purges)?;
        }
        image::apply_commit_marks(batch, &mut image)?;
        verify::count_commit(conn, number)?;
        purges.delete_piece(&mut image, appended)
    };
    let committed =
        fill().map_err(|err| LogFailure::new(path, "writing entries", &err)).and_then(|deleted| {
            let began = Instant::now();
            run("COMMIT").map_err(|err| LogFailure::new(path, "committing to disk", &err))?;
            Ok(Written { fsync: began.elapsed(), deleted })
        });
    if committed.is_err() && !conn.is_autocommit() {
        // Nothing is written any more after this; the rollback only lets go of the file. What it says is of no use.
        drop(run("ROLLBACK"));
    }
    committed
}

/// Copies the write-ahead log into the database file and empties it, unless a reader is in the way. True when done.
fn truncate_wal(conn: &Connection) -> rusqlite::Result<bool> {
    conn.busy_timeout(Duration::ZERO)?;
    let busy: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    Ok(busy == 0)
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Damaged(#[from] DamagedRecord),
    #[error(transparent)]
    Index(#[from] IndexOutOfRange),
    #[error(transparent)]
    Count(#[from] verify::CountError),
}

struct SqliteImage<'conn> {
    conn: &'conn Connection,
}

impl Image for SqliteImage<'_> {
    type Error = WriteError;

    fn insert(&mut self, group: GroupNumber, rows: &Rows) -> Result<(), WriteError> {
        let mut statement = self.conn.prepare_cached("INSERT INTO log(id, e) VALUES (?1, ?2)")?;
        for (index, record) in rows.iter() {
            statement.execute(params![group.row(index)?, record])?;
        }
        Ok(())
    }

    fn put(&mut self, group: GroupNumber, slot: Slot, record: &[u8]) -> Result<(), WriteError> {
        let sql = "INSERT OR REPLACE INTO meta(grp, k, v) VALUES (?1, ?2, ?3)";
        self.conn.prepare_cached(sql)?.execute(params![group.get(), meta_key(slot), record])?;
        Ok(())
    }

    fn delete(&mut self, group: GroupNumber, range: &std::ops::Range<u64>) -> Result<(), WriteError> {
        if let Some((from, to)) = group.rows(range) {
            self.conn.prepare_cached("DELETE FROM log WHERE id BETWEEN ?1 AND ?2")?.execute([from, to])?;
        }
        Ok(())
    }
}
