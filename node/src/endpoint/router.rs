//! Sends a verb to the leader of its group, wherever that is, and tries again while that can help.
//!
//! The only place that retries between members. Whether a repeat is harmless is a property of the verb; ids in it make it
//! so ([`verbs`]). Knows no surface.

mod current;
mod far;
mod keepalives;
mod members;
mod silence;
mod verbs;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicU64},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use holdfast_locktable::{ids::SessionId, name::Name, outcome::CancelOutcome};
use holdfast_partitioner::{GroupId, MapEpoch};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tokio::{sync::watch, time::Instant};

pub use self::far::{ReplicaAnswer, ReplicaCall};
pub use self::keepalives::Said;
pub use self::members::Greeting;
use self::verbs::{elsewhere, end_of_acquire, leaves_no_record, repeatable};
pub(super) use self::{
    keepalives::{HANGS, MOMENT},
    silence::{Asked, Silences},
};
use crate::{
    config::MemberEntry,
    endpoint::{
        MapWatch,
        places::{Far, PlacesWatch},
    },
    group::{
        Group,
        call::{GroupAnswer, GroupCall, GroupResult},
        proposer::GroupError,
    },
    log::disk_id::DiskId,
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
    /// A verb for a replica that you carry, whether it leads or not.
    Replica(GroupId, ReplicaCall),
    /// May this member take part, from this disk?
    Hello {
        /// Where it can be reached.
        at: MemberEntry,
        /// Its disk.
        disk: DiskId,
    },
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum MemberAnswer {
    /// To [`MemberCall::Group`].
    Group(GroupResult),
    /// To [`MemberCall::Meta`].
    Meta(MetaResult),
    /// To [`MemberCall::Keepalive`]: one line per group led that has answered in time.
    Keepalive(Vec<Said>),
    /// To [`MemberCall::Ping`]: groups led.
    Pong(Vec<GroupId>),
    /// The call could not be read.
    Unreadable,
    /// To [`MemberCall::Replica`].
    Replica(Result<ReplicaAnswer, GroupError>),
    /// To [`MemberCall::Hello`].
    Greeting(Greeting),
}

struct Inner {
    member: MemberId,
    members: RwLock<Arc<Vec<MemberEntry>>>,
    transport: Arc<dyn Transport>,
    groups: RwLock<BTreeMap<GroupId, Group>>,
    /// Of the placement, the version that this member's groups are started and stopped by.
    carried: AtomicU64,
    /// The groups whose replica here is current.
    current: watch::Sender<BTreeSet<GroupId>>,
    /// Since when groups led here have renewed nothing.
    silences: Silences<GroupId>,
    meta: OnceLock<MetaGroup>,
    /// How long a group may be without leader before callers are told, in total.
    patience: Duration,
    map: MapWatch,
    places: PlacesWatch,
    far: Far,
    instruments: Instruments,
}

/// Whom a verb is for.
#[derive(Clone, Copy, Debug)]
enum Target<'a> {
    /// This group.
    Group(GroupId),
    /// Whichever group owns the name when it is asked.
    OwnerOf(&'a Name),
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
        members: Vec<MemberEntry>,
        transport: Arc<dyn Transport>,
        patience: Duration,
        map: MapWatch,
        places: PlacesWatch,
        instruments: Instruments,
    ) -> Self {
        let (groups, meta, carried, far) =
            (RwLock::default(), OnceLock::new(), AtomicU64::new(0), Far::default());
        let current = watch::Sender::new(BTreeSet::new());
        let inner = Inner {
            member,
            members: RwLock::default(),
            transport,
            groups,
            carried,
            current,
            silences: Silences::default(),
            meta,
            patience,
            map,
            places,
            far,
            instruments,
        };
        let router = Self { inner: Arc::new(inner) };
        router.learn(members);
        router
    }

    /// Hands over the meta group, once.
    pub fn install(&self, meta: MetaGroup) {
        // A second hand-over would be a defect of the start; the first one stays.
        let _ = self.inner.meta.set(meta);
    }

    /// Hands over a lock group that this member carries from now on.
    pub fn add_group(&self, group: Group) {
        self.inner.groups.write().insert(group.id(), group);
    }

    /// This member does not carry a lock group any more.
    pub fn remove_group(&self, id: GroupId) {
        self.inner.groups.write().remove(&id);
    }

    /// This member.
    pub fn member(&self) -> MemberId {
        self.inner.member
    }

    /// The lock groups on this member.
    pub fn groups(&self) -> Vec<Group> {
        self.inner.groups.read().values().cloned().collect()
    }

    /// A lock group on this member.
    pub fn group(&self, id: GroupId) -> Option<Group> {
        self.inner.groups.read().get(&id).cloned()
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
        self.call_at(Target::Group(group), call).await.1
    }

    /// As [`Self::call`], for the leader of whichever group owns a name, and after a move of the group that owns it then.
    /// Answers which one that was in the end.
    pub async fn call_owner(&self, name: &Name, call: GroupCall) -> (GroupId, GroupResult) {
        self.call_at(Target::OwnerOf(name), call).await
    }

    async fn call_at(&self, target: Target<'_>, call: GroupCall) -> (GroupId, GroupResult) {
        let (mut may_be_done, end) = (false, end_of_acquire(&call));
        let (group, result) = self.call_on(target, call, &mut may_be_done).await;
        match (result, end) {
            // True of the last attempt only.
            (Err(error), _) if may_be_done && error.not_executed() => (group, Err(GroupError::Unknown)),
            (Err(refusal), Some(end)) if may_be_done && leaves_no_record(&refusal) => {
                self.keep_out(target, end, refusal).await
            }
            (result, _) => (group, result),
        }
    }

    /// An acquire was refused while an earlier attempt of it may still be on its way: it must not be executed after the
    /// refusal was told (rule R11). Where it came in between, it is granted.
    async fn keep_out(
        &self,
        target: Target<'_>,
        end: GroupCall,
        refusal: GroupError,
    ) -> (GroupId, GroupResult) {
        let (group, ended) = self.call_on(target, end, &mut false).await;
        let result = match ended {
            Ok(GroupAnswer::Cancel(CancelOutcome::Granted { token, .. })) => {
                Ok(GroupAnswer::Granted { token, epoch: MapEpoch::NONE })
            }
            Ok(_) => Err(refusal),
            Err(_) => Err(GroupError::Unknown),
        };
        (group, result)
    }

    async fn call_on(
        &self,
        target: Target<'_>,
        call: GroupCall,
        may_be_done: &mut bool,
    ) -> (GroupId, GroupResult) {
        let started = Instant::now();
        let mut map = self.inner.map.clone();
        let mut missed_since: Option<(Instant, MapEpoch)> = None;
        let mut slow_answers = 0;
        loop {
            let asked = Instant::now();
            let (group, epoch) = target.group(&mut map);
            let error = match self.call_once(group, call.after(started.elapsed())).await {
                Err(GroupError::Unknown) if repeatable(&call) => {
                    *may_be_done = true;
                    // Leaders give up on a proposal after the patience; a call that took longer has waited in line.
                    let slow = (self.inner.patience..2 * self.inner.patience).contains(&asked.elapsed());
                    slow_answers = if slow { slow_answers + 1 } else { 0 };
                    if slow_answers > SLOW_REPEATS {
                        return (group, Err(GroupError::Unknown));
                    }
                    GroupError::Unknown
                }
                Err(error @ (GroupError::NotLeader { .. } | GroupError::HomeUnavailable { .. })) => error,
                // A fresh group that has not taken its ranges yet, or a range on its way.
                Err(error) if elsewhere(&error) => error,
                result => return (group, result),
            };
            // A leader that worked on the call for a while was there until now, and a name that moves again and again is not
            // missed.
            let since = match missed_since {
                Some((since, missed))
                    if asked.elapsed() < self.inner.patience && (missed == epoch || !elsewhere(&error)) =>
                {
                    since
                }
                Some(_) | None => self.quiet_since(group).unwrap_or_else(Instant::now),
            };
            missed_since = Some((since, epoch));
            if since.elapsed() >= self.inner.patience {
                return (group, Err(error));
            }
            if elsewhere(&error) {
                self.inner.instruments.service.redirected(Redirect::Moved);
                // Whichever comes first, the next look decides. A map that will never change, as the member goes down, is not
                // asked again at once.
                if let Ok(Err(_)) = tokio::time::timeout(RETRY, map.changed()).await {
                    tokio::time::sleep(RETRY).await;
                }
            } else {
                self.inner.instruments.service.redirected(Redirect::NotLeader);
                self.pause(group).await;
            }
        }
    }

    /// Since when this member has heard of no leader of a group. A replica that is not current need not hear of one: it counts as
    /// none, and then only a member that hears of no leader of the meta group either takes it that there is none.
    fn quiet_since(&self, group: GroupId) -> Option<Instant> {
        let leadership = match self.current_group(group) {
            Some(group) => group.raft().leadership(),
            None => self.meta()?.raft().leadership(),
        };
        let now = leadership.borrow();
        now.quiet_since
    }

    /// Waits until the group's leadership changes as this member sees it, but never long.
    async fn pause(&self, group: GroupId) {
        tokio::time::sleep(RETRY).await;
        let Some(group) = self.current_group(group) else { return };
        let mut leadership = group.raft().leadership();
        if leadership.borrow_and_update().leader.is_none() {
            // Whatever comes first, the next look decides.
            let _ = tokio::time::timeout(RETRY * 4, leadership.changed()).await;
        }
    }

    async fn call_once(&self, id: GroupId, call: GroupCall) -> GroupResult {
        let Some(group) = self.group(id) else { return Box::pin(self.call_far(id, call, None)).await };
        if group.leads().is_some() {
            return group.call(call).await;
        }
        let leader = group.leader().filter(|leader| *leader != self.inner.member);
        if self.is_spread() {
            // The replica here may be on its way in or out, and not hear of its leaders.
            return Box::pin(self.call_far(id, call, leader)).await;
        }
        let leader = leader.ok_or(GroupError::NotLeader { leader: None })?;
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

    pub(super) async fn meta_call_once(&self, call: &MetaCall) -> MetaResult {
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

    async fn answer(&self, from: MemberId, call: MemberCall) -> MemberAnswer {
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
            MemberCall::Replica(id, call) => MemberAnswer::Replica(self.answer_replica(id, call).await),
            MemberCall::Hello { at, disk } => {
                MemberAnswer::Greeting(self.greet(MemberEntry { id: from, ..at }, disk).await)
            }
        }
    }

    /// Groups this member leads, the meta group included.
    pub fn leads(&self) -> Vec<GroupId> {
        let meta = self.meta().filter(|meta| meta.leads()).map(|_| GroupId::META);
        let led = self.groups().into_iter().filter(|group| group.leads().is_some());
        meta.into_iter().chain(led.map(|group| group.id())).collect()
    }
}

impl Target<'_> {
    /// The group to ask now, and by which map; where there is no map yet, a group that leads nothing.
    fn group(&self, map: &mut MapWatch) -> (GroupId, MapEpoch) {
        let map = map.borrow_and_update();
        let epoch = map.as_ref().map_or(MapEpoch(0), |map| map.epoch());
        match self {
            Self::Group(group) => (*group, epoch),
            Self::OwnerOf(name) => {
                (map.as_ref().map_or(GroupId::META, |map| map.locate(name.internal())), epoch)
            }
        }
    }
}

impl CallHandler for Router {
    fn call(&self, from: MemberId, request: Bytes) -> BoxFuture<'static, Bytes> {
        let router = self.clone();
        Box::pin(async move {
            let answer = match postcard::from_bytes::<MemberCall>(&request) {
                Ok(call) => router.answer(from, call).await,
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
