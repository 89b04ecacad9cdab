//! One lock group on one member: its Raft half, its actors, and the verbs its leader carries out.
//!
//! - [`call`]: the verbs, as they travel between members. `admission`: which of them are refused while there is too much to do.
//! - [`proposer`]: commands into the log. [`acquire`]: waiting for a lock. `cancel`: ending that. [`keepalive`]: renewing sessions.
//!   [`claims`]: partitions that sessions share.
//! - [`moves`]: giving a range away and taking one in. [`members`]: who is in the group.
//! - [`read`]: lists and details. [`locate`]: whether holds stand here. [`watching`]: what watches hear.
//! - `pulse`: whether all of it still answers.
//! - [`figures`]: what is measured. [`load`]: what names cost. [`steward`]: what starts and stops with leadership. [`ends`]: ends of sessions told to
//!   other groups. [`sink`]: what applying tells the actors.
//!
//! No verb here forwards: a group that does not lead says so.

pub mod acquire;
mod admission;
pub mod bootstrap;
pub mod call;
mod cancel;
pub mod claims;
pub mod ends;
pub mod figures;
pub mod keepalive;
pub mod load;
pub mod locate;
pub mod members;
pub mod moves;
pub mod observer;
pub mod proposer;
mod pulse;
pub mod read;
pub mod sink;
pub mod snapshots;
pub mod steward;
pub mod watching;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use actix::Addr;
use futures::future::BoxFuture;
use holdfast_locktable::{
    command::{Cancel, Command, OpenSession},
    ids::Term,
    outcome::Outcome,
    table::LockTable,
};
use holdfast_partitioner::GroupId;

use self::{
    call::{GroupAnswer, GroupCall, GroupResult},
    figures::GroupMetrics,
    moves::Sealing,
    proposer::{GroupError, Proposer},
};
use crate::{
    actors::Retire,
    clock::Clock,
    lease::LeaseManager,
    raft::{group::RaftGroup, types::MemberId},
    snapshot::actor::{Snapshotter, TakeSnapshot},
    watch::{
        Audiences, Detached, WatchFanout,
        give_ups::Intent,
        waits::{CallerId, DETACH_GRACE_MS, RequestKey, WaitKey},
    },
};

/// Calls the leader of another group, wherever it is: how a group reaches a session's home.
pub type Outward = Arc<dyn Fn(GroupId, GroupCall) -> BoxFuture<'static, GroupResult> + Send + Sync>;

/// Parts of a group, put together by the member.
#[allow(missing_debug_implementations, reason = "handles and closures, put together once and never shown")]
pub struct Parts {
    /// The Raft half.
    pub raft: RaftGroup,
    /// Its lease manager.
    pub lease: Addr<LeaseManager>,
    /// Its watch fan-out.
    pub fanout: Addr<WatchFanout>,
    /// Who listens to it here.
    pub audiences: Audiences,
    /// Whether its fan-out is giving up requests.
    pub giving_up: Intent,
    /// Sessions that are not acknowledged while a range is being sealed.
    pub sealing: Sealing,
    /// Its snapshotter.
    pub snapshotter: Addr<Snapshotter>,
    /// Commands into its log.
    pub proposer: Proposer,
    /// The member's clocks.
    pub clock: Clock,
    /// Its instruments.
    pub metrics: GroupMetrics,
    /// The way to other groups.
    pub outward: Outward,
    /// Which group is the home of a session.
    pub home_of: Arc<dyn Fn(holdfast_locktable::ids::SessionId) -> GroupId + Send + Sync>,
}

/// One lock group on this member. Cheap to clone.
#[derive(Clone)]
pub struct Group {
    parts: Arc<Parts>,
    next_caller: Arc<AtomicU64>,
    /// Whether this member does not carry the group any more.
    retired: Arc<AtomicBool>,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({})", self.id())
    }
}

impl Group {
    /// Puts a group together.
    pub fn new(parts: Parts) -> Self {
        let (next_caller, retired) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicBool::new(false)));
        Self { parts: Arc::new(parts), next_caller, retired }
    }

    /// Its number.
    pub fn id(&self) -> GroupId {
        self.parts.raft.id()
    }

    /// Its Raft half.
    pub fn raft(&self) -> &RaftGroup {
        &self.parts.raft
    }

    /// Its watch fan-out.
    pub fn fanout(&self) -> &Addr<WatchFanout> {
        &self.parts.fanout
    }

    /// Who listens to it on this member.
    pub fn audiences(&self) -> &Audiences {
        &self.parts.audiences
    }

    /// Reads this member's replica of the group's table, briefly: applying waits meanwhile.
    pub fn locks<T>(&self, read: impl FnOnce(&LockTable) -> T) -> T {
        self.parts.raft.with_table(|table, _| match table.locks() {
            Some(locks) => read(locks),
            // A lock group is started with a lock table; this keeps readers total.
            None => read(&LockTable::new(self.id())),
        })
    }

    /// The leader of this group as this member knows it.
    pub fn leader(&self) -> Option<MemberId> {
        self.parts.raft.leadership().borrow().leader
    }

    /// Whether this member leads the group and has applied an entry of its own term; then, the term.
    pub fn leads(&self) -> Option<Term> {
        let leadership = self.parts.raft.leadership();
        let now = leadership.borrow();
        now.here.then_some(now.term)
    }

    fn next_caller(&self) -> CallerId {
        CallerId(self.next_caller.fetch_add(1, Ordering::Relaxed))
    }

    /// Carries out a verb, if this member leads the group. Dropping the future of a waiting acquire detaches the caller;
    /// dropping any other does not take back what was proposed.
    pub async fn call(&self, call: GroupCall) -> GroupResult {
        if self.leads().is_none() {
            return Err(GroupError::NotLeader { leader: self.leader() });
        }
        // What apply would refuse need not go into the log first; the caller asks again.
        if let Some(name) = call.changes() {
            self.owned(name).await?;
        }
        match call {
            GroupCall::Acquire(attempt, request) => self.acquire(attempt, request).await,
            GroupCall::Detached { name, session, request, attempt } => {
                let who = self.caller(None, attempt, &name, session, &request);
                let key = WaitKey { name, session, request: RequestKey::from(&request) };
                self.parts.fanout.do_send(Detached { key, request, who, grace_ms: DETACH_GRACE_MS });
                Ok(GroupAnswer::Done)
            }
            GroupCall::Locks { kind, prefix, after, limit } => {
                self.read_locks(kind, &prefix, after, limit).await
            }
            GroupCall::Lock(name) => self.read_lock(&name).await,
            GroupCall::Sessions => self.read_sessions().await,
            GroupCall::Session(session) => self.read_session(session).await,
            GroupCall::Locate(holds) => self.locate(&holds).await,
            GroupCall::Status => Ok(GroupAnswer::Status(Box::new(self.status()))),
            GroupCall::Load => Ok(GroupAnswer::Load(self.load().map(Box::new))),
            GroupCall::TakeSnapshot => self.take_snapshot().await,
            GroupCall::Move(call) => self.move_call(call).await,
            GroupCall::Claim(call) => self.claim_call(call).await,
            // Rare and large: it would be part of every other call's future.
            GroupCall::Members(call) => Box::pin(self.members_call(call)).await,
            GroupCall::OpenSession { .. } => {
                self.admit()?;
                self.write(call).await
            }
            GroupCall::Cancel { name, session, request, reason, granted } => {
                let cancel = Cancel { name, session, request, reason, granted };
                self.cancel(cancel).await.map(GroupAnswer::Cancel)
            }
            GroupCall::EndSession { .. }
            | GroupCall::AttachSession { .. }
            | GroupCall::LearnEnds(_)
            | GroupCall::Release { .. }
            | GroupCall::ForceRelease { .. }
            | GroupCall::Proclaim { .. } => self.write(call).await,
        }
    }

    /// Ends the group's actors, once its Raft half has ended here for good: who follows a hold looks for it elsewhere, who watches
    /// is told to go on from where it is.
    pub async fn retire(&self) {
        // Before the first of them ends, so that nobody takes its silence for that of a member that is going down.
        self.retired.store(true, Ordering::Release);
        let Parts { lease, fanout, snapshotter, .. } = &*self.parts;
        // One that has ended already needs no telling.
        let ended = tokio::join!(lease.send(Retire), fanout.send(Retire), snapshotter.send(Retire));
        tracing::debug!(group = %self.id(), ?ended, "the group's actors have ended");
    }

    /// What it means that an actor of the group did not do what it was asked. Where this member does not carry the group any more,
    /// another one leads it by now, and may be asked; nothing was done. Not for what may have been proposed.
    fn unanswered(&self, why: impl fmt::Display) -> GroupError {
        if self.retired.load(Ordering::Acquire) {
            GroupError::NotLeader { leader: None }
        } else {
            GroupError::Fatal(why.to_string())
        }
    }

    /// Verbs that are one command each.
    async fn write(&self, call: GroupCall) -> GroupResult {
        let Some(command) = command_of(&call) else {
            return Err(GroupError::Fatal(format!("{call:?} is no single command")));
        };
        let ttl = match &call {
            GroupCall::OpenSession { ttl_ms, metadata, .. } => Some((*ttl_ms, metadata.clone())),
            _ => None,
        };
        let outcome = self.parts.proposer.propose(command).await?;
        Ok(match (outcome, ttl) {
            (Outcome::SessionOpened { epoch }, Some((ttl_ms, metadata))) => {
                self.parts.metrics.session_opened();
                GroupAnswer::Session { epoch, ttl_ms, metadata }
            }
            (Outcome::SessionAttached { epoch, ttl_ms, metadata }, _) => {
                GroupAnswer::Session { epoch, ttl_ms, metadata }
            }
            (Outcome::Released { released }, _) => GroupAnswer::Released(released),
            (Outcome::ForceReleased { session }, _) => GroupAnswer::ForceReleased(session),
            (Outcome::Proclaimed { revision }, _) => GroupAnswer::Proclaimed(revision),
            (_, _) => GroupAnswer::Done,
        })
    }

    async fn take_snapshot(&self) -> GroupResult {
        let taken = self.parts.snapshotter.send(TakeSnapshot).await;
        match taken {
            Ok(Ok(manifest)) => Ok(GroupAnswer::Snapshot(Box::new(manifest.into()))),
            Ok(Err(error)) => Err(self.unanswered(format_args!("the snapshot was not taken: {error}"))),
            Err(error) => Err(self.unanswered(format_args!("the snapshotter has stopped: {error}"))),
        }
    }
}

fn command_of(call: &GroupCall) -> Option<Command> {
    Some(match call.clone() {
        GroupCall::OpenSession { session, ttl_ms, metadata } => {
            Command::OpenSession(OpenSession { session, ttl_ms, metadata })
        }
        GroupCall::EndSession { session, reason } => Command::EndSession { session, epoch: None, reason },
        GroupCall::AttachSession { session, group } => Command::AttachSession { session, group },
        GroupCall::LearnEnds(ends) => Command::LearnEnds { ends },
        GroupCall::Release { name, session, token } => Command::Release { name, session, token },
        GroupCall::ForceRelease { name, token } => Command::ForceRelease { name, token },
        GroupCall::Proclaim { name, session, token, value } => {
            Command::Proclaim { name, session, token, value }
        }
        GroupCall::Acquire(..)
        | GroupCall::Cancel { .. }
        | GroupCall::Detached { .. }
        | GroupCall::Locks { .. }
        | GroupCall::Lock(_)
        | GroupCall::Sessions
        | GroupCall::Session(_)
        | GroupCall::Locate(_)
        | GroupCall::Status
        | GroupCall::TakeSnapshot
        | GroupCall::Move(_)
        | GroupCall::Claim(_)
        | GroupCall::Load
        | GroupCall::Members(_) => return None,
    })
}
