//! Sends a verb to the leader of its group, wherever that is, and tries again while that can help.
//!
//! The only place that retries between members. Whether a repeat is harmless is a property of the verb; ids in it make it
//! so. Knows no surface.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use holdfast_locktable::{
    command::{CancelReason, IfGranted, Wait},
    ids::SessionId,
    outcome::{CancelOutcome, Rejection},
};
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::{
    endpoint::types::AcquireRequest,
    group::{
        Group,
        call::{GroupAnswer, GroupCall, GroupResult},
        claims::ClaimCall,
        keepalive::Renewal,
        proposer::GroupError,
    },
    meta::group::{MetaCall, MetaGroup, MetaResult},
    metrics::{Instruments, service::Redirect},
    peer::{CallError, CallHandler, Transport},
    raft::types::MemberId,
};

/// Pause before a group without known leader is asked again.
const RETRY: Duration = Duration::from_millis(25);

/// How often a verb is sent again that its leader took and had not agreed on in its time: once, for the leader may have
/// changed. One that is there and slow would be asked for ever, and the caller would hear nothing.
const SLOW_REPEATS: u32 = 1;

/// What one member asks another.
#[derive(Debug, Serialize, Deserialize)]
pub enum MemberCall {
    /// A verb for a lock group you lead.
    Group(GroupId, GroupCall),
    /// A verb for the meta group you lead.
    Meta(MetaCall),
    /// Renew these sessions in all groups you lead.
    Keepalive(Vec<SessionId>),
    /// Are you there, and what do you lead?
    Ping,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum MemberAnswer {
    /// To [`MemberCall::Group`].
    Group(GroupResult),
    /// To [`MemberCall::Meta`].
    Meta(MetaResult),
    /// To [`MemberCall::Keepalive`]: one line per group led.
    Keepalive(Vec<(GroupId, Result<Vec<Renewal>, GroupError>)>),
    /// To [`MemberCall::Ping`]: groups led.
    Pong(Vec<GroupId>),
    /// The call could not be read.
    Unreadable,
}

struct Inner {
    member: MemberId,
    peers: Vec<MemberId>,
    transport: Arc<dyn Transport>,
    groups: OnceLock<BTreeMap<GroupId, Group>>,
    meta: OnceLock<MetaGroup>,
    /// How long a group may be without leader before callers are told, in total.
    patience: Duration,
    instruments: Instruments,
}

/// The way to every group of the cluster. Cheap to clone.
#[derive(Clone)]
pub struct Router {
    inner: Arc<Inner>,
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Router(member {})", self.inner.member)
    }
}

impl Router {
    /// A router without groups yet. `patience` is three times the longest election timeout.
    pub fn new(
        member: MemberId,
        peers: Vec<MemberId>,
        transport: Arc<dyn Transport>,
        patience: Duration,
        instruments: Instruments,
    ) -> Self {
        let (groups, meta) = (OnceLock::new(), OnceLock::new());
        Self { inner: Arc::new(Inner { member, peers, transport, groups, meta, patience, instruments }) }
    }

    /// Hands over the groups, once.
    pub fn install(&self, groups: BTreeMap<GroupId, Group>, meta: MetaGroup) {
        // A second hand-over would be a defect of the start; the first one stays.
        let _ = self.inner.groups.set(groups);
        let _ = self.inner.meta.set(meta);
    }

    /// This member.
    pub fn member(&self) -> MemberId {
        self.inner.member
    }

    /// The other members.
    pub fn peers(&self) -> &[MemberId] {
        &self.inner.peers
    }

    /// The lock groups on this member.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.inner.groups.get().into_iter().flat_map(BTreeMap::values)
    }

    /// A lock group on this member.
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.inner.groups.get()?.get(&id)
    }

    /// The meta group on this member.
    pub fn meta(&self) -> Option<&MetaGroup> {
        self.inner.meta.get()
    }

    /// How long a group may be without leader before callers are told.
    pub fn patience(&self) -> Duration {
        self.inner.patience
    }

    /// Carries out a verb at the group's leader. Tries on while the group has no leader, at most for the patience counted
    /// from when the leader was missed; after that, `NotLeader`. A verb whose repeat could do harm is not repeated once it
    /// may have been executed: then `Unknown`, as where a leader is there and too slow.
    pub async fn call(&self, group: GroupId, call: GroupCall) -> GroupResult {
        let (mut may_be_done, end) = (false, end_of_acquire(&call));
        match (self.call_on(group, call, &mut may_be_done).await, end) {
            // True of the last attempt only.
            (Err(error), _) if may_be_done && error.not_executed() => Err(GroupError::Unknown),
            (Err(refusal), Some(end)) if may_be_done && leaves_no_record(&refusal) => {
                self.keep_out(group, end, refusal).await
            }
            (result, _) => result,
        }
    }

    /// An acquire was refused while an earlier attempt of it may still be on its way: it must not be executed after the
    /// refusal was told (rule R11). Where it came in between, it is granted.
    async fn keep_out(&self, group: GroupId, end: GroupCall, refusal: GroupError) -> GroupResult {
        match self.call_on(group, end, &mut false).await {
            Ok(GroupAnswer::Cancel(CancelOutcome::Granted { token, .. })) => Ok(GroupAnswer::Granted(token)),
            Ok(_) => Err(refusal),
            Err(_) => Err(GroupError::Unknown),
        }
    }

    async fn call_on(&self, group: GroupId, call: GroupCall, may_be_done: &mut bool) -> GroupResult {
        let started = Instant::now();
        let mut missed_since: Option<Instant> = None;
        let mut slow_answers = 0;
        loop {
            let asked = Instant::now();
            let error = match self.call_once(group, call.after(started.elapsed())).await {
                Err(GroupError::Unknown) if repeatable(&call) => {
                    *may_be_done = true;
                    // Leaders give up on a proposal after the patience; a call that took longer has waited in line.
                    let slow = (self.inner.patience..2 * self.inner.patience).contains(&asked.elapsed());
                    slow_answers = if slow { slow_answers + 1 } else { 0 };
                    if slow_answers > SLOW_REPEATS {
                        return Err(GroupError::Unknown);
                    }
                    GroupError::Unknown
                }
                Err(error @ (GroupError::NotLeader { .. } | GroupError::HomeUnavailable { .. })) => error,
                // A fresh group that has not taken its ranges yet.
                Err(error @ GroupError::Rejected(Rejection::NotOwner)) => error,
                result => return result,
            };
            // A leader that worked on the call for a while was there until now.
            let since = match missed_since {
                Some(since) if asked.elapsed() < self.inner.patience => since,
                Some(_) | None => self.quiet_since(group).unwrap_or_else(Instant::now),
            };
            missed_since = Some(since);
            if since.elapsed() >= self.inner.patience {
                return Err(error);
            }
            self.inner.instruments.service.redirected(Redirect::NotLeader);
            self.pause(group).await;
        }
    }

    /// Since when this member has heard of no leader of a group.
    fn quiet_since(&self, group: GroupId) -> Option<Instant> {
        let raft = match self.group(group) {
            Some(group) => group.raft(),
            None => self.meta()?.raft(),
        };
        raft.leadership().borrow().quiet_since
    }

    /// Waits until the group's leadership changes as this member sees it, but never long.
    async fn pause(&self, group: GroupId) {
        tokio::time::sleep(RETRY).await;
        let Some(group) = self.group(group) else { return };
        let mut leadership = group.raft().leadership();
        if leadership.borrow_and_update().leader.is_none() {
            // Whatever comes first, the next look decides.
            let _ = tokio::time::timeout(RETRY * 4, leadership.changed()).await;
        }
    }

    async fn call_once(&self, id: GroupId, call: GroupCall) -> GroupResult {
        let group = self.group(id).ok_or(GroupError::NotLeader { leader: None })?;
        if group.leads().is_some() {
            return group.call(call).await;
        }
        let Some(leader) = group.leader().filter(|leader| *leader != self.inner.member) else {
            return Err(GroupError::NotLeader { leader: None });
        };
        match self.ask(leader, &MemberCall::Group(id, call)).await? {
            MemberAnswer::Group(result) => result,
            other => Err(GroupError::Fatal(format!("member {leader} answered {other:?}"))),
        }
    }

    /// Carries out a verb at the leader of the meta group, as [`Self::call`] does. A line of the audit log that may have
    /// been written is written again: twice is better than never.
    pub async fn meta_call(&self, call: MetaCall) -> MetaResult {
        let started = Instant::now();
        loop {
            let error = match self.meta_call_once(&call).await {
                Err(error @ (GroupError::NotLeader { .. } | GroupError::Unknown)) => error,
                result => return result,
            };
            if started.elapsed() >= self.inner.patience {
                return Err(error);
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn meta_call_once(&self, call: &MetaCall) -> MetaResult {
        let meta = self.meta().ok_or(GroupError::NotLeader { leader: None })?;
        if meta.leads() {
            return meta.call(call.clone()).await;
        }
        let leader = meta.leader().filter(|leader| *leader != self.inner.member);
        let leader = leader.ok_or(GroupError::NotLeader { leader: None })?;
        match self.ask(leader, &MemberCall::Meta(call.clone())).await? {
            MemberAnswer::Meta(result) => result,
            other => Err(GroupError::Fatal(format!("member {leader} answered {other:?}"))),
        }
    }

    /// Asks one member.
    pub async fn ask(&self, member: MemberId, call: &MemberCall) -> Result<MemberAnswer, GroupError> {
        let request =
            postcard::to_allocvec(call).map_err(|e| GroupError::Fatal(format!("encoding a call: {e}")))?;
        match self.inner.transport.call(member, Bytes::from(request)).await {
            Ok(answer) => postcard::from_bytes(&answer).map_err(|e| {
                GroupError::Fatal(format!("member {member} answered what this version cannot read: {e}"))
            }),
            Err(error @ CallError::NotDelivered { .. }) => {
                tracing::debug!(member, %error, "a member cannot be reached");
                Err(GroupError::NotLeader { leader: None })
            }
            Err(error @ CallError::Unknown { .. }) => {
                tracing::debug!(member, %error, "a member's answer was lost");
                Err(GroupError::Unknown)
            }
        }
    }

    async fn answer(&self, call: MemberCall) -> MemberAnswer {
        match call {
            MemberCall::Group(id, call) => MemberAnswer::Group(match self.group(id) {
                Some(group) => group.call(call).await,
                None => Err(GroupError::NotLeader { leader: None }),
            }),
            MemberCall::Meta(call) => MemberAnswer::Meta(match self.meta() {
                Some(meta) => meta.call(call).await,
                None => Err(GroupError::NotLeader { leader: None }),
            }),
            MemberCall::Keepalive(sessions) => {
                MemberAnswer::Keepalive(self.keepalive_here(sessions.into()).await)
            }
            MemberCall::Ping => MemberAnswer::Pong(self.leads()),
        }
    }

    /// Groups this member leads, the meta group included.
    pub fn leads(&self) -> Vec<GroupId> {
        let meta = self.meta().filter(|meta| meta.leads()).map(|_| GroupId::META);
        meta.into_iter().chain(self.groups().filter(|group| group.leads().is_some()).map(Group::id)).collect()
    }

    /// Renews sessions in all groups that this member leads.
    pub async fn keepalive_here(
        &self,
        sessions: Arc<[SessionId]>,
    ) -> Vec<(GroupId, Result<Vec<Renewal>, GroupError>)> {
        let led = self.groups().filter(|group| group.leads().is_some());
        let renewals = led.map(|group| {
            let sessions = sessions.clone();
            async move { (group.id(), group.keepalive(sessions).await) }
        });
        futures::future::join_all(renewals).await
    }
}

/// Whether an acquire was refused for what stands in the queue or is outstanding now, so that a copy of it could be executed
/// later. Of all other refusals the group keeps a record, or they hold for ever.
fn leaves_no_record(refusal: &GroupError) -> bool {
    matches!(
        refusal,
        GroupError::Rejected(
            Rejection::Busy { .. }
                | Rejection::AlreadyHeld { .. }
                | Rejection::AlreadyWaiting
                | Rejection::TooManyOutstanding
        )
    )
}

/// What ends an acquire for good, so that no copy of it is executed any more; a hold it has already is left alone.
fn end_of_acquire(call: &GroupCall) -> Option<GroupCall> {
    let GroupCall::Acquire(_, AcquireRequest { name, session, request, .. }) = call else { return None };
    Some(GroupCall::Cancel {
        name: name.clone(),
        session: *session,
        request: request.clone(),
        reason: CancelReason::Cancelled,
        granted: IfGranted::Keep,
    })
}

/// Whether a verb may be sent again after it may have been executed.
fn repeatable(call: &GroupCall) -> bool {
    match call {
        GroupCall::Acquire(..)
        | GroupCall::AttachSession { .. }
        | GroupCall::LearnEnds(_)
        | GroupCall::Detached { .. }
        | GroupCall::Cancel { .. }
        | GroupCall::Release { .. }
        | GroupCall::Proclaim { .. }
        | GroupCall::Locks { .. }
        | GroupCall::Lock(_)
        | GroupCall::Sessions
        | GroupCall::Session(_)
        | GroupCall::Status
        | GroupCall::Claim(_) => true,
        GroupCall::OpenSession { .. }
        | GroupCall::EndSession { .. }
        | GroupCall::ForceRelease { .. }
        | GroupCall::TakeSnapshot => false,
    }
}

impl CallHandler for Router {
    fn call(&self, from: MemberId, request: Bytes) -> BoxFuture<'static, Bytes> {
        let router = self.clone();
        Box::pin(async move {
            let answer = match postcard::from_bytes::<MemberCall>(&request) {
                Ok(call) => router.answer(call).await,
                Err(error) => {
                    tracing::warn!(from, %error, "a member asked what this version cannot read");
                    MemberAnswer::Unreadable
                }
            };
            // An answer that cannot be encoded reaches the caller as one it cannot read.
            postcard::to_allocvec(&answer).map(Bytes::from).unwrap_or_default()
        })
    }
}

impl GroupCall {
    /// The call as it is to be repeated after so long: a wait limit counts from the first sending.
    fn after(&self, elapsed: Duration) -> Self {
        let mut call = self.clone();
        if let Self::Acquire(_, request) = &mut call
            && let Wait::AtMost(ms) = &mut request.wait
        {
            *ms = ms.saturating_sub(elapsed.as_millis() as u64);
        }
        if let Self::Claim(ClaimCall::Await { wait_ms, .. }) = &mut call {
            *wait_ms = wait_ms.saturating_sub(elapsed.as_millis() as u64);
        }
        call
    }
}

impl GroupAnswer {
    /// The name of the variant, for messages about answers that make no sense.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Session { .. } => "session",
            Self::Granted(_) => "granted",
            Self::NotGranted(_) => "not granted",
            Self::Cancel(_) => "cancel",
            Self::Released(_) => "released",
            Self::ForceReleased(_) => "force released",
            Self::Proclaimed(_) => "proclaimed",
            Self::Locks { .. } => "locks",
            Self::Lock(_) => "lock",
            Self::Sessions(_) => "sessions",
            Self::Status(_) => "status",
            Self::Snapshot(_) => "snapshot",
            Self::Claim(_) => "claim",
        }
    }
}
