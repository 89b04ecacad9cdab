//! The state machine as openraft drives it: entries in, state, sink and answers out; snapshots both ways.
//!
//! The state lives in memory and is rebuilt from the newest snapshot and the log after each start. It knows nothing of
//! leaders or of the network.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use holdfast_locktable::{
    ids::{Revision, Term},
    table::{LockTable, Position},
};
use openraft::{
    EntryPayload, OptionalSend, RaftSnapshotBuilder,
    storage::{ApplyResponder, EntryResponder, RaftStateMachine, Snapshot},
};
use parking_lot::{Mutex, RwLock};
use tokio::{sync::watch, time::Instant};

use super::{
    observe::RaftObserver,
    table::{Decoded, Machine, Sink, Table},
    types::{Entry, LogId, MemberId, Payload, Reply, SnapshotMeta, StoredMembership, TypeConfig},
};
use crate::snapshot::local::RaftSnapshots;

/// Entries applied under one hold of the state's lock, so that readers get their turn in between.
const APPLY_CHUNK: usize = 128;
/// Snapshots from this size on are encoded and decoded on a thread that may block, smaller ones in place.
const LARGE_SNAPSHOT: usize = 256 * 1024;

/// A snapshot in memory.
pub(crate) type Shot = Snapshot<
    openraft::type_config::alias::CommittedLeaderIdOf<TypeConfig>,
    MemberId,
    openraft::BasicNode,
    Bytes,
>;

/// The state of a group on this member, shared by the task that applies, readers and snapshots.
#[derive(Debug)]
pub(crate) struct State {
    inner: RwLock<Inner>,
    /// The last applied entry; raised after the sink has been told.
    applied: watch::Sender<Option<LogId>>,
    snapshots: RaftSnapshots,
    /// A snapshot that was stored and that openraft is about to be told of.
    stored: Mutex<Option<(SnapshotMeta, Bytes)>>,
    sink: Sink,
    observer: Arc<dyn RaftObserver>,
}

#[derive(Debug)]
struct Inner {
    table: Table,
    applied: Option<LogId>,
    membership: StoredMembership,
    /// Size of the last encoded state, to judge the next one's.
    encoded_len: usize,
}

impl State {
    pub(crate) fn new(
        machine: Machine,
        snapshots: RaftSnapshots,
        observer: Arc<dyn RaftObserver>,
    ) -> Arc<Self> {
        let (table, sink) = machine.into_parts();
        let membership = StoredMembership::default();
        Arc::new(Self {
            inner: RwLock::new(Inner { table, applied: None, membership, encoded_len: 0 }),
            applied: watch::Sender::new(None),
            snapshots,
            stored: Mutex::new(None),
            sink,
            observer,
        })
    }

    /// Lets `read` look at the state, with the position of the last entry in it. Keep it short: applying waits.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Table, Option<Position>) -> R) -> R {
        let inner = self.inner.read();
        read(&inner.table, inner.applied.as_ref().map(position))
    }

    /// Follows the last applied entry.
    pub(crate) fn applied(&self) -> watch::Receiver<Option<LogId>> {
        self.applied.subscribe()
    }

    /// The last applied entry.
    pub(crate) fn last_applied(&self) -> Option<LogId> {
        *self.applied.borrow()
    }

    /// Stores a snapshot of the present state, to be handed to openraft by the next [`Builder`]. It is on disk when
    /// this returns.
    pub(crate) async fn prepare_snapshot(self: &Arc<Self>) -> io::Result<SnapshotMeta> {
        let (meta, bytes) = self.save_snapshot().await?;
        *self.stored.lock() = Some((meta.clone(), bytes));
        Ok(meta)
    }

    /// Stores a snapshot of the present state. It is on disk when this returns.
    async fn save_snapshot(self: &Arc<Self>) -> io::Result<(SnapshotMeta, Bytes)> {
        let (meta, bytes, _revision) = self.capture().await?;
        self.snapshots.save(&meta, &bytes).await?;
        Ok((meta, bytes))
    }

    /// The present state as bytes, with its place in the log and its revision, which the meta group has none of.
    pub(crate) async fn capture(self: &Arc<Self>) -> io::Result<(SnapshotMeta, Bytes, Revision)> {
        if self.inner.read().encoded_len < LARGE_SNAPSHOT {
            return self.encode();
        }
        let state = Arc::clone(self);
        tokio::task::spawn_blocking(move || state.encode()).await.map_err(io::Error::other)?
    }

    fn encode(&self) -> io::Result<(SnapshotMeta, Bytes, Revision)> {
        let (meta, bytes, revision) = {
            let inner = self.inner.read();
            let meta = SnapshotMeta { last_log_id: inner.applied, last_membership: inner.membership.clone() };
            let revision = inner.table.locks().map_or(Revision(0), LockTable::revision);
            (meta, inner.table.encode()?, revision)
        };
        self.inner.write().encoded_len = bytes.len();
        Ok((meta, bytes, revision))
    }

    fn restore(&self, meta: &SnapshotMeta, table: Table, encoded_len: usize) {
        {
            let mut inner = self.inner.write();
            inner.table = table;
            inner.applied = meta.last_log_id;
            inner.membership = meta.last_membership.clone();
            inner.encoded_len = encoded_len;
        }
        self.sink.restored();
        self.applied.send_replace(meta.last_log_id);
    }

    /// Applies entries that follow each other, tells the sink, then answers those who wait here.
    fn apply(&self, entries: Vec<EntryResponder<TypeConfig>>) -> io::Result<()> {
        let (started, count) = (Instant::now(), entries.len());
        let mut todo = Vec::with_capacity(entries.len());
        for (entry, responder) in entries {
            todo.push((self.decode(entry)?, responder));
        }
        let Some((last, _)) = todo.last() else { return Ok(()) };
        let last = last.id;
        let mut batch = self.sink.new_batch(todo.len());
        let mut answers: Vec<(ApplyResponder<TypeConfig>, Reply)> = Vec::with_capacity(todo.len());
        {
            let mut inner = self.inner.write();
            for (item, responder) in todo {
                let command = match item.content {
                    Content::Nothing => None,
                    Content::Membership(membership) => {
                        inner.membership = membership;
                        None
                    }
                    Content::Command(command) => Some(command),
                };
                let is_command = command.is_some();
                if let Some(command) = command {
                    inner.table.apply(position(&item.id), command, &mut batch)?;
                }
                if let Some(responder) = responder {
                    let reply = if is_command { batch.last_reply() } else { Reply::Nothing };
                    answers.push((responder, reply));
                }
            }
            inner.applied = Some(last);
        }
        self.sink.applied(batch);
        self.applied.send_replace(Some(last));
        self.observer.applied(count, started.elapsed());
        for (responder, reply) in answers {
            responder.send(reply);
        }
        Ok(())
    }

    fn decode(&self, entry: Entry) -> io::Result<Item> {
        let id = entry.log_id;
        let content = match entry.payload {
            EntryPayload::Blank => Content::Nothing,
            EntryPayload::Membership(membership) => {
                Content::Membership(StoredMembership::new(Some(id), membership))
            }
            EntryPayload::Normal(payload) if payload == Payload::NOTHING => Content::Nothing,
            EntryPayload::Normal(payload) => Content::Command(self.sink.decode(&payload).map_err(|err| {
                io::Error::other(format!(
                    "entry {} of the log holds a command that this version cannot read: {err}",
                    id.index
                ))
            })?),
        };
        Ok(Item { id, content })
    }
}

struct Item {
    id: LogId,
    content: Content,
}

enum Content {
    Nothing,
    Membership(StoredMembership),
    Command(Decoded),
}

/// A log position without its leader.
pub(crate) fn position(id: &LogId) -> Position {
    Position { index: id.index, term: Term(id.leader_id.term) }
}

/// What openraft is given.
#[derive(Debug)]
pub(crate) struct StateMachine {
    state: Arc<State>,
}

impl StateMachine {
    pub(crate) fn new(state: Arc<State>) -> Self {
        Self { state }
    }

    /// Stores the snapshot before the state is replaced, so that a restart at any point finds either.
    async fn install(&self, meta: &SnapshotMeta, snapshot: Bytes) -> io::Result<()> {
        let len = snapshot.len();
        let table = if len < LARGE_SNAPSHOT {
            self.state.sink.decode_table(&snapshot)?
        } else {
            let (sink, bytes) = (self.state.sink.clone(), snapshot.clone());
            tokio::task::spawn_blocking(move || sink.decode_table(&bytes))
                .await
                .map_err(io::Error::other)??
        };
        self.state.snapshots.save(meta, &snapshot).await?;
        self.state.restore(meta, table, len);
        Ok(())
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = Bytes;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let inner = self.state.inner.read();
        Ok((inner.applied, inner.membership.clone()))
    }

    /// An entry that cannot be read is never skipped: the error ends the group, and with it the process.
    async fn apply<S>(&mut self, entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut chunks = entries.ready_chunks(APPLY_CHUNK);
        while let Some(chunk) = chunks.next().await {
            let entries = chunk.into_iter().collect::<Result<Vec<_>, _>>()?;
            self.state.apply(entries)?;
            // Other tasks get their turn in a long run of entries.
            tokio::task::consume_budget().await;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder { state: Arc::clone(&self.state) }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: Bytes) -> Result<(), io::Error> {
        let started = Instant::now();
        let installed = self.install(meta, snapshot).await;
        self.state.observer.installed(started.elapsed(), installed.is_ok());
        installed
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Shot>, io::Error> {
        let current = self.state.snapshots.load().await?;
        Ok(current.map(|(meta, snapshot)| Shot { meta, snapshot }))
    }
}

/// Hands openraft a snapshot: the one that [`State::prepare_snapshot`] has stored, otherwise a new one.
///
/// An error here ends the group, so snapshots that are wanted and not needed are stored before openraft hears of them:
/// a disk too full for a snapshot is no reason to stop.
#[derive(Debug)]
pub(crate) struct Builder {
    state: Arc<State>,
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    type SnapshotData = Bytes;

    async fn build_snapshot(&mut self) -> Result<Shot, io::Error> {
        let stored = self.state.stored.lock().take();
        let (meta, snapshot) = match stored {
            Some(stored) => stored,
            None => self.state.save_snapshot().await?,
        };
        Ok(Shot { meta, snapshot })
    }
}
