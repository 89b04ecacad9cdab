//! One Raft group on one member: what everything above consensus holds in its hands.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use holdfast_locktable::{
    ids::{Revision, Term},
    table::{LockTable, Position},
};
use holdfast_partitioner::GroupId;
use openraft::{
    BasicNode, Raft,
    async_runtime::watch::WatchReceiver,
    errors::{InitializeError as OpenraftInitializeError, RaftError},
    metrics::WaitError,
    storage::RaftLogStorage,
};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::{
    ages::Ages,
    confirm::{Confirmer, NotLeader},
    fault::{InitializeError, SnapshotError, StartError, TransferError},
    leadership::{Follow, GroupFatal, Leadership},
    machine::{State, StateMachine},
    network::GroupLinks,
    observe::RaftObserver,
    propose::{ProposeError, Proposer},
    silence::Silence,
    status::GroupStatus,
    table::{Machine, Table},
    timing::Timing,
    types::{LeaderId, MemberId, Reply, SnapshotMeta, TypeConfig},
};
use crate::{meta::MetaTable, peer::transport::Transport, snapshot::local::RaftSnapshots};

/// Pause before openraft is told once more of a snapshot.
const SNAPSHOT_RETRY: Duration = Duration::from_millis(500);

/// What a group is made of.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// The group.
    pub id: GroupId,
    /// This member.
    pub member: MemberId,
    /// How patient its members are with each other; the same on all of them.
    pub timing: Timing,
    /// Where this member keeps the group's snapshot.
    pub snapshots: RaftSnapshots,
    /// The way to the other members.
    pub transport: Arc<dyn Transport>,
    /// What is replicated, and who is told.
    pub machine: Machine,
    /// Who keeps figures.
    pub observer: Arc<dyn RaftObserver>,
}

/// One Raft group on this member. Clones are the same group.
///
/// Ends with [`RaftGroup::shutdown`]; merely dropping all clones leaves its Raft core running.
#[derive(Clone)]
pub struct RaftGroup {
    inner: Arc<Inner>,
}

struct Inner {
    id: GroupId,
    member: MemberId,
    timing: Timing,
    raft: Raft<TypeConfig, StateMachine>,
    state: Arc<State>,
    proposer: Proposer,
    confirmer: Confirmer,
    ages: Ages,
    leadership: watch::Receiver<Leadership>,
    fatal: watch::Receiver<Option<GroupFatal>>,
    /// One snapshot at a time.
    snapshot: tokio::sync::Mutex<()>,
    /// The tasks that belong to the group; they end with it.
    tasks: Mutex<JoinSet<()>>,
    /// The task that tells who leads; it ends by itself when the Raft core has.
    follow: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for RaftGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaftGroup")
            .field("id", &self.inner.id)
            .field("member", &self.inner.member)
            .finish_non_exhaustive()
    }
}

impl RaftGroup {
    /// Starts the group on this member from its snapshot and log. The state is that of the last known commit when this
    /// returns; the sink has been told of all that was applied on the way.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start<L>(options: GroupOptions, log: L) -> Result<Self, StartError>
    where
        L: RaftLogStorage<TypeConfig>,
    {
        let GroupOptions { id, member, timing, snapshots, transport, machine, observer } = options;
        let config = timing.config(&format!("group {id}"))?;
        let state = State::new(machine, snapshots, Arc::clone(&observer));
        let silence = Silence::default();
        let links = GroupLinks {
            member,
            group: id,
            transport,
            answer_limit: timing.election_timeout_max,
            silence: silence.clone(),
        };
        let stopped = |err: &dyn fmt::Display| StartError::Storage { group: id, reason: err.to_string() };
        let raft = Raft::new(member, config, links, log, StateMachine::new(Arc::clone(&state)))
            .await
            .map_err(|err| stopped(&err))?;

        let mut tasks = JoinSet::new();
        let (leadership, leadership_now) = watch::channel(Leadership::UNKNOWN);
        let (patience, ages) = (timing.election_timeout_max, Ages::default());
        let (proposer, proposing) =
            Proposer::new(raft.clone(), leadership_now.clone(), ages.clone(), Arc::clone(&observer));
        tasks.spawn(proposing);
        let (confirmer, confirming) =
            Confirmer::new(raft.clone(), state.applied(), patience, ages.clone(), Arc::clone(&observer));
        tasks.spawn(confirming);
        let (fatal, fatal_now) = watch::channel(None);
        let follow = Follow {
            group: id,
            member,
            raft: raft.clone(),
            applied: state.applied(),
            leadership,
            fatal,
            observer,
            silence,
            timing,
        };
        let follow = tokio::spawn(follow.run());
        let inner = Inner {
            id,
            member,
            timing,
            raft,
            state,
            proposer,
            confirmer,
            ages,
            leadership: leadership_now,
            fatal: fatal_now,
            snapshot: tokio::sync::Mutex::default(),
            tasks: Mutex::new(tasks),
            follow: Mutex::new(Some(follow)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The group.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.inner.id
    }

    /// This member.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.inner.member
    }

    /// How patient the group's members are with each other.
    #[must_use]
    pub fn timing(&self) -> Timing {
        self.inner.timing
    }

    /// Gives a group that has never had any its voters, with their peer addresses. Does nothing where the log is not
    /// empty. The same call on several members is harmless if all name the same voters.
    ///
    /// # Errors
    /// See [`InitializeError`].
    pub async fn initialize(&self, voters: BTreeMap<MemberId, String>) -> Result<(), InitializeError> {
        let Inner { id, member, raft, .. } = &*self.inner;
        let not_a_voter = || InitializeError::NotAVoter { group: *id, member: *member };
        if !voters.contains_key(member) {
            return Err(not_a_voter());
        }
        let voters: BTreeMap<MemberId, BasicNode> =
            voters.into_iter().map(|(member, addr)| (member, BasicNode { addr })).collect();
        match raft.initialize(voters).await {
            Ok(()) | Err(RaftError::APIError(OpenraftInitializeError::NotAllowed(_))) => Ok(()),
            Err(RaftError::APIError(OpenraftInitializeError::NotInMembers(_))) => Err(not_a_voter()),
            Err(RaftError::Fatal(err)) => Err(InitializeError::Stopped(err.to_string())),
        }
    }

    /// Has a command agreed on and applied, and answers what it did. It travels with whatever else is proposed at the same
    /// time. Waits as long as it takes: where this member was cut off after it took the command, until it hears from a
    /// leader again; whoever cannot wait drops the future, which says nothing about the command.
    ///
    /// # Errors
    /// See [`ProposeError`], and [`ProposeError::not_executed`] in particular.
    pub async fn propose(&self, payload: Bytes) -> Result<Reply, ProposeError> {
        self.inner.proposer.propose(payload).await
    }

    /// Like [`RaftGroup::propose`], but only if this member leads in exactly this term when the command is appended.
    ///
    /// # Errors
    /// [`ProposeError::NotLeader`] under any other leadership; otherwise as [`RaftGroup::propose`].
    pub async fn propose_in_term(&self, payload: Bytes, term: Term) -> Result<Reply, ProposeError> {
        let leader = LeaderId { term: term.0, node_id: self.inner.member };
        self.inner.proposer.propose_as(&self.inner.raft, leader, payload).await
    }

    /// Proves that this member leads (rule R1): answers its term once a quorum round that started after this call has
    /// ended and everything agreed on before is applied here, an entry of that term included. What is read from the state
    /// afterwards is linearizable. One round serves all who asked before it started.
    ///
    /// # Errors
    /// [`NotLeader`] where it does not lead, or no quorum answers within two and a half of the longest election timeout.
    pub async fn confirm_leadership(&self) -> Result<Term, NotLeader> {
        self.inner.confirmer.confirm().await
    }

    /// How long the oldest proposal or proof of leadership here has been waiting for its outcome; zero where none does. While
    /// it grows, the group is given more than it can do.
    #[must_use]
    pub fn oldest_wait(&self) -> Duration {
        self.inner.ages.oldest()
    }

    /// Follows who leads.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.inner.leadership.clone()
    }

    /// Turns to `Some`, once and for ever, when the group cannot go on; then the process must end.
    #[must_use]
    pub fn fatal(&self) -> watch::Receiver<Option<GroupFatal>> {
        self.inner.fatal.clone()
    }

    /// Lets `read` look at the state as of the last applied entry, whose position it gets. Keep it short: applying waits
    /// meanwhile.
    pub fn with_table<R>(&self, read: impl FnOnce(&Table, Option<Position>) -> R) -> R {
        self.inner.state.read(read)
    }

    /// The same for a lock group; `None` for the meta group.
    pub fn with_locks<R>(&self, read: impl FnOnce(&LockTable, Option<Position>) -> R) -> Option<R> {
        self.with_table(|table, at| table.locks().map(|locks| read(locks, at)))
    }

    /// The same for the meta group; `None` for a lock group.
    pub fn with_meta<R>(&self, read: impl FnOnce(&MetaTable, Option<Position>) -> R) -> Option<R> {
        self.with_table(|table, at| table.meta().map(|meta| read(meta, at)))
    }

    /// Waits until an entry at this index or behind it is applied here.
    pub async fn applied(&self, index: u64) {
        let mut applied = self.inner.state.applied();
        // Its sender lives as long as the state, which `self` holds.
        applied.wait_for(|id| id.is_some_and(|id| id.index >= index)).await.ok();
    }

    /// Waits until this member has caught up with everything that was agreed on before it started, as its leader tells.
    /// `false` if that takes longer than `limit`.
    pub async fn caught_up(&self, limit: Duration) -> bool {
        self.inner.raft.wait_for_recovery(Some(limit)).await.is_ok()
    }

    /// Passes through the group's Raft core and back; `false` where the core has ended. Waits as long as the core is busy.
    pub async fn pulse(&self) -> bool {
        self.inner.raft.with_raft_state(|_state| ()).await.is_ok()
    }

    /// Where the group stands.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        let applied = self.inner.state.last_applied();
        GroupStatus::of(&self.inner.raft.metrics().borrow_watched(), applied)
    }

    /// Hands leadership to another voter, and waits until it has it.
    ///
    /// # Errors
    /// See [`TransferError`]. After [`TransferError::TimedOut`] the group elects anew; this member refuses commands until
    /// then.
    pub async fn transfer_leader(&self, to: MemberId) -> Result<(), TransferError> {
        let status = self.status();
        if status.leader != Some(self.inner.member) {
            return Err(TransferError::NotLeader { leader: status.leader });
        }
        if to == self.inner.member {
            return Ok(());
        }
        if !status.voters.iter().any(|voter| voter.member == to) {
            return Err(TransferError::NotAVoter { to });
        }
        let mut leadership = self.leadership();
        let stopped = TransferError::NotLeader { leader: None };
        self.inner.raft.trigger().transfer_leader(to).await.map_err(|_| stopped)?;
        let other = |now: &Leadership| now.leader.is_some_and(|leader| leader != self.inner.member);
        match timeout(self.inner.timing.election_timeout_max * 2, leadership.wait_for(other)).await {
            Ok(Ok(now)) if now.leader == Some(to) => Ok(()),
            Ok(Ok(_)) | Err(_) => Err(TransferError::TimedOut { to }),
            Ok(Err(_)) => Err(stopped),
        }
    }

    /// Takes a snapshot of the state as it is, and answers the position of the last entry inside. It is on disk when this
    /// returns, so that [`RaftGroup::purge_upto`] may rely on it.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub async fn build_snapshot(&self) -> Result<Position, SnapshotError> {
        let Inner { id: group, raft, state, .. } = &*self.inner;
        let group = *group;
        let _one = self.inner.snapshot.lock().await;
        if state.last_applied().is_none() {
            return Err(SnapshotError::Empty { group });
        }
        let stored = |err: std::io::Error| SnapshotError::Store { group, reason: err.to_string() };
        let meta = state.prepare_snapshot().await.map_err(stored)?;
        let last = meta.last_log_id.ok_or(SnapshotError::Empty { group })?;
        // openraft has to know of it before it purges anything or sends it to others. It takes no order while it is busy
        // with another one, which then may have been too early.
        loop {
            raft.trigger().snapshot().await.map_err(|_| SnapshotError::Stopped { group })?;
            let wait = raft.wait(Some(SNAPSHOT_RETRY));
            match wait.metrics(|now| now.snapshot >= Some(last), "the snapshot is known").await {
                Ok(_) => break,
                Err(WaitError::Timeout(..)) => {}
                Err(WaitError::ShuttingDown) => return Err(SnapshotError::Stopped { group }),
            }
        }
        Ok(super::machine::position(&last))
    }

    /// The present state as bytes with its place in the log and its revision, without storing it.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub async fn capture(&self) -> std::io::Result<(SnapshotMeta, Bytes, Revision)> {
        self.inner.state.capture().await
    }

    /// Removes entries up to this index from the log, but none that is not in a durable snapshot (rule R21). Answers
    /// before it is done. Leave a wide margin: a member that needs a removed entry gets the whole snapshot instead.
    ///
    /// # Errors
    /// [`SnapshotError::Stopped`].
    pub async fn purge_upto(&self, index: u64) -> Result<(), SnapshotError> {
        let group = self.inner.id;
        self.inner.raft.trigger().purge_log(index).await.map_err(|_| SnapshotError::Stopped { group })
    }

    /// Stops the group on this member. What is in its log stays.
    pub async fn shutdown(&self) {
        // It fails only where the core has ended before, which is what was wanted.
        self.inner.raft.shutdown().await.ok();
        let follow = self.inner.follow.lock().take();
        if let Some(follow) = follow {
            // A panic in it would have ended the process or been logged by its hook.
            follow.await.ok();
        }
        let mut tasks = std::mem::take(&mut *self.inner.tasks.lock());
        tasks.shutdown().await;
    }

    pub(crate) fn raft(&self) -> &Raft<TypeConfig, StateMachine> {
        &self.inner.raft
    }
}
