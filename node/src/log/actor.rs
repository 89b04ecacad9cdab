//! The control plane of a member's log: opens the file, hands out handles, watches over the disk, closes in order.
//!
//! Appends do not pass through this actor; they go from the handle straight to the pump. What it does is rare, so one
//! mailbox for all groups is enough.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture, WrapFuture,
};
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    durable_folder::sync_folder,
    error::{FailureSignal, LogFailure, OpenGroupError, OpenLogError},
    folder_lock::FolderLock,
    group_number::GroupNumber,
    handle::{LogHandle, PumpSink},
    identity::LogIdentity,
    op::{Op, Waiter, Write},
    opener::{LogOpener, OpenTails},
    pump::{Order, Pump, QUEUE_OPS, Shared},
    schema,
    stats::{CommitHook, Counters, IdleWatch, LogSpace, LogStats},
    tail::TailLimits,
    verify, witness,
};

/// Requests that may wait in the mailbox; the supervisor sends a handful per group at start. Beyond it the sender waits.
const MAILBOX: usize = 256;
/// How often the actor looks whether the log is idle.
const MAINTENANCE_TICK: Duration = Duration::from_secs(1);
/// Quiet ticks after which a checkpoint disturbs nobody.
const IDLE_TICKS_BEFORE_CHECKPOINT: u32 = 5;

/// How to open a member's log.
#[derive(Clone)]
pub struct LogOptions {
    /// The member's folder; made if it does not exist.
    pub folder: PathBuf,
    /// Whose log it is.
    pub identity: LogIdentity,
    /// Size that the file must not exceed, bytes; reaching it is a failure as a full disk is.
    pub size_limit_bytes: Option<u64>,
    /// Gets the figures of each batch.
    pub on_commit: Option<CommitHook>,
}

impl fmt::Debug for LogOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogOptions")
            .field("folder", &self.folder)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Owner of a member's log file.
pub struct LogActor {
    path: PathBuf,
    limits: TailLimits,
    shared: Arc<Shared>,
    queue: mpsc::Sender<Order>,
    /// Taken when the actor starts.
    pump: Option<Pump>,
    writer: tokio_rusqlite::Connection,
    reader: tokio_rusqlite::Connection,
    lock: Option<Arc<FolderLock>>,
    tails: OpenTails,
    idle: IdleWatch,
    /// Turns true when the file is closed.
    closed: watch::Sender<bool>,
}

impl fmt::Debug for LogActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogActor").field("path", &self.path).finish_non_exhaustive()
    }
}

impl LogActor {
    /// Opens the log in a folder. Blocks on the disk; call it before serving.
    ///
    /// # Errors
    /// See [`OpenLogError`]; nothing is left open then.
    pub fn open(options: LogOptions) -> Result<LogActor, OpenLogError> {
        let LogOptions { folder, identity, size_limit_bytes, on_commit } = options;
        let lock = Arc::new(FolderLock::acquire(&folder)?);
        let path = schema::log_path(&folder);
        witness::check_log_exists(&folder, &path)?;
        let writer = schema::open_writer(&path, &identity, size_limit_bytes)?;
        let witness = verify::confirmed(&writer, &folder, &path)?;
        let reader = schema::open_reader(&path)?;
        sync_folder(&folder).map_err(|source| OpenLogError::Folder { path: folder.clone(), source })?;
        let (queue, orders) = mpsc::channel(QUEUE_OPS);
        let shared = Arc::new(Shared {
            path: path.clone(),
            failure: FailureSignal::new(),
            counters: Counters::default(),
        });
        let pump = Pump::new(orders, Arc::clone(&shared), on_commit, witness, Arc::clone(&lock));
        Ok(LogActor {
            path,
            limits: TailLimits::default(),
            shared,
            queue,
            pump: Some(pump),
            writer: writer.into(),
            reader: reader.into(),
            lock: Some(lock),
            tails: Arc::default(),
            idle: IdleWatch::new(IDLE_TICKS_BEFORE_CHECKPOINT),
            closed: watch::Sender::new(false),
        })
    }

    /// Turns to `Some` when the disk has failed; then the process must end. Take it before the actor is started.
    #[must_use]
    pub fn failures(&self) -> watch::Receiver<Option<LogFailure>> {
        self.shared.failure.subscribe()
    }

    /// What opens groups, also before the actor is started.
    #[must_use]
    pub fn opener(&self) -> LogOpener {
        LogOpener {
            sink: PumpSink {
                queue: self.queue.clone(),
                path: self.path.as_path().into(),
                reader: self.reader.clone(),
                shared: Arc::clone(&self.shared),
            },
            limits: self.limits,
            tails: Arc::clone(&self.tails),
        }
    }

    fn tick(&mut self) {
        let quiet = self.idle.tick(Counters::get(&self.shared.counters.ops));
        if quiet > 0 {
            self.queue_commit_marks();
        }
        // A full queue means that there is no time for it.
        drop(self.queue.try_send(Order::GiveBack { quiet: self.idle.is_idle() }));
        if self.idle.is_idle() && self.shared.counters.checkpoint_due.load(Ordering::Relaxed) {
            // A full queue means that it is not idle after all.
            drop(self.queue.try_send(Order::Checkpoint(None)));
        }
    }

    /// Writes the commit marks that no write has carried along, so that a restart needs not wait for a leader.
    fn queue_commit_marks(&self) {
        for (&group, tail) in &*self.tails.lock() {
            let Ok(permit) = self.queue.try_reserve() else { return };
            let mut guard = tail.lock();
            if let Some(committed) = guard.take_committed() {
                permit.send(Order::Write(Op {
                    group,
                    tail: Arc::clone(tail),
                    write: Write::CommitMark,
                    committed: Some(committed),
                    waiter: Waiter::Nobody,
                    queued: None,
                }));
            }
        }
    }

    fn pump_ended(&mut self, result: Result<(), tokio_rusqlite::Error<LogFailure>>, ctx: &mut Context<Self>) {
        match result {
            Ok(()) => tracing::info!(path = %self.path.display(), "the log is closed"),
            // Raised by the pump itself.
            Err(tokio_rusqlite::Error::Error(_failure)) => {}
            Err(_) => {
                let reason = "the commit thread ended unexpectedly";
                let failure = LogFailure::new(&self.path, "committing to disk", reason);
                self.shared.failure.raise(failure);
            }
        }
        let (reader, writer) = (self.reader.clone(), self.writer.clone());
        let close = async move {
            // The writer last: whoever closes last folds the write-ahead log into the file.
            for connection in [reader, writer] {
                if let Err(err) = connection.close().await {
                    tracing::warn!(error = %err, "the log was not closed cleanly; the next start recovers it");
                }
            }
        };
        ctx.wait(close.into_actor(self).map(|(), act, _ctx| {
            act.lock = None;
            act.closed.send_replace(true);
        }));
    }

    /// Has the pump carry out an order behind what is queued, and waits for its answer.
    fn behind_the_queue(
        &self,
        order: impl FnOnce(oneshot::Sender<()>) -> Order,
    ) -> ResponseFuture<Result<(), io::Error>> {
        let (queue, shared) = (self.queue.clone(), Arc::clone(&self.shared));
        let (done, answer) = oneshot::channel();
        let order = order(done);
        Box::pin(async move {
            let sent = queue.send(order).await.is_ok();
            if sent && answer.await.is_ok() { Ok(()) } else { Err(shared.failure.refusal()) }
        })
    }
}

impl Actor for LogActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        if let Some(pump) = self.pump.take() {
            let writer = self.writer.clone();
            let run = async move { writer.call(move |conn| pump.run(conn)).await };
            ctx.spawn(run.into_actor(self).map(|result, act, ctx| act.pump_ended(result, ctx)));
        }
        ctx.run_interval(MAINTENANCE_TICK, |act, _ctx| act.tick());
    }
}

/// Asks for a group's handle.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<LogHandle, OpenGroupError>")]
pub struct OpenGroup(pub GroupNumber);

impl Handler<OpenGroup> for LogActor {
    type Result = ResponseFuture<Result<LogHandle, OpenGroupError>>;

    fn handle(&mut self, OpenGroup(group): OpenGroup, _ctx: &mut Context<Self>) -> Self::Result {
        let opener = self.opener();
        Box::pin(async move { opener.open_group(group).await })
    }
}

/// Asks what the log has done so far.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "LogStats")]
pub struct GetLogStats;

impl Handler<GetLogStats> for LogActor {
    type Result = actix::MessageResult<GetLogStats>;

    fn handle(&mut self, _: GetLogStats, _ctx: &mut Context<Self>) -> Self::Result {
        let counters = &self.shared.counters;
        let LogSpace { file_bytes, free_bytes, wal_bytes } = self.shared.space();
        let tails = self.tails.lock();
        actix::MessageResult(LogStats {
            groups: tails.len(),
            entries: tails.values().map(|tail| tail.lock().len()).sum(),
            commits: Counters::get(&counters.commits),
            ops: Counters::get(&counters.ops),
            appended_entries: Counters::get(&counters.entries),
            appended_bytes: Counters::get(&counters.bytes),
            deleted_entries: Counters::get(&counters.deleted),
            queue_len: self.queue.max_capacity() - self.queue.capacity(),
            file_bytes,
            free_bytes,
            wal_bytes,
            failure: self.shared.failure.get().map(|failure| failure.to_string()),
        })
    }
}

/// Asks whether the actor and the thread that commits still answer: passes through both, behind what is queued.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<(), io::Error>")]
pub struct Pulse;

impl Handler<Pulse> for LogActor {
    type Result = ResponseFuture<Result<(), io::Error>>;

    fn handle(&mut self, _: Pulse, _ctx: &mut Context<Self>) -> Self::Result {
        self.behind_the_queue(Order::Pulse)
    }
}

/// Folds the write-ahead log into the file now, behind what is queued.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<(), io::Error>")]
pub struct Checkpoint;

impl Handler<Checkpoint> for LogActor {
    type Result = ResponseFuture<Result<(), io::Error>>;

    fn handle(&mut self, _: Checkpoint, _ctx: &mut Context<Self>) -> Self::Result {
        self.behind_the_queue(|done| Order::Checkpoint(Some(done)))
    }
}

/// Writes what is queued, closes the file and stops the actor. Later writes are refused.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<(), LogFailure>")]
pub struct CloseLog;

impl Handler<CloseLog> for LogActor {
    type Result = ResponseFuture<Result<(), LogFailure>>;

    fn handle(&mut self, _: CloseLog, ctx: &mut Context<Self>) -> Self::Result {
        self.queue_commit_marks();
        let queue = self.queue.clone();
        let shared = Arc::clone(&self.shared);
        let mut closed = self.closed.subscribe();
        let addr = ctx.address();
        Box::pin(async move {
            // It fails only where the pump has ended already.
            drop(queue.send(Order::Stop).await);
            // It fails only where the actor is gone, and then so is the file.
            drop(closed.wait_for(|closed| *closed).await);
            addr.do_send(StopActor);
            shared.failure.get().map_or(Ok(()), Err)
        })
    }
}

/// Ends the actor itself, once the file is closed and everybody was answered.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
struct StopActor;

impl Handler<StopActor> for LogActor {
    type Result = ();

    fn handle(&mut self, _: StopActor, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}
