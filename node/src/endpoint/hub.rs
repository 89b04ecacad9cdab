//! Collects keepalives of all clients of this member and spreads them, one message per member, to every group leader.
//!
//! A batch goes out as soon as the one before is on its way; nothing waits for a tick. Knows no deadlines: the leaders do.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use holdfast_locktable::ids::SessionId;
use holdfast_partitioner::{GroupId, MapEpoch};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::{
    router::{MemberAnswer, MemberCall, Router},
    types::{GroupLease, LeaseState},
};
use crate::{group::keepalive::Renewal, raft::types::MemberId};

/// Keepalives that may be under way. Beyond it callers are refused as overloaded and try again.
const MAX_UNDER_WAY: usize = 131_072;
/// A batch of at least so many goes out without gathering more.
const BATCH: usize = 4_096;
/// How long to gather after the first keepalive of a batch, so that many clients share one quorum round. A round of all
/// groups costs the members as much as some hundred keepalives; no TTL is so short that this delay matters.
const GATHER: Duration = Duration::from_millis(30);

/// What all groups said of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewals {
    /// One line per lock group, in order.
    pub groups: Vec<GroupLease>,
    /// The session's TTL in milliseconds, where any group renewed it.
    pub ttl_ms: Option<u64>,
}

/// Sessions of one caller, and where it waits.
#[derive(Debug)]
struct Keepalives {
    sessions: Arc<[SessionId]>,
    caller: oneshot::Sender<Vec<Renewals>>,
    /// Their share of what may be under way.
    _room: OwnedSemaphorePermit,
}

/// The way into the hub. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeepaliveHub {
    queue: mpsc::UnboundedSender<Keepalives>,
    room: Arc<Semaphore>,
}

impl KeepaliveHub {
    /// Starts the hub; it ends with its last handle. A member that does not answer within `patience` counts as unavailable.
    pub fn start(router: Router, patience: Duration) -> Self {
        let (queue, keepalives) = mpsc::unbounded_channel();
        tokio::spawn(gather(router, patience, keepalives));
        Self { queue, room: Arc::new(Semaphore::new(MAX_UNDER_WAY)) }
    }

    /// Renews sessions everywhere: one answer per session, in order. `None` where too many keepalives are under way
    /// already, or the member is going down.
    pub async fn renew(&self, sessions: Arc<[SessionId]>) -> Option<Vec<Renewals>> {
        let count = u32::try_from(sessions.len()).ok()?;
        let room = self.room.clone().try_acquire_many_owned(count).ok()?;
        let (caller, answer) = oneshot::channel();
        self.queue.send(Keepalives { sessions, caller, _room: room }).ok()?;
        answer.await.ok()
    }
}

async fn gather(router: Router, patience: Duration, mut queue: mpsc::UnboundedReceiver<Keepalives>) {
    while let Some(first) = queue.recv().await {
        if first.sessions.len() < BATCH {
            tokio::time::sleep(GATHER).await;
        }
        let mut count = first.sessions.len();
        let mut batch = vec![first];
        while count < BATCH
            && let Ok(keepalives) = queue.try_recv()
        {
            count += keepalives.sessions.len();
            batch.push(keepalives);
        }
        tokio::spawn(spread(router.clone(), patience, batch));
    }
}

/// Sends one batch to every member that leads anything, and answers each caller.
async fn spread(router: Router, patience: Duration, batch: Vec<Keepalives>) {
    let sessions: Arc<[SessionId]> =
        batch.iter().flat_map(|keepalives| keepalives.sessions.iter().copied()).collect();
    let asked = router.leaders().into_iter().map(|member| {
        let (router, sessions) = (router.clone(), sessions.clone());
        async move { tokio::time::timeout(patience, ask(&router, member, sessions)).await.unwrap_or_default() }
    });
    let answers: BTreeMap<GroupId, Vec<Renewal>> =
        futures::future::join_all(asked).await.into_iter().flatten().collect();
    let groups = router.all_groups();
    for group in &groups {
        match answers.get(group).and_then(|renewals| renewals.iter().map(|renewal| renewal.epoch).max()) {
            Some(epoch) => router.note_epoch(*group, epoch),
            None => router.note_silence(*group),
        }
    }
    let mut next = 0;
    for keepalives in batch {
        let mine = next..next + keepalives.sessions.len();
        next = mine.end;
        // A caller that went away needs no answer.
        let _ = keepalives.caller.send(mine.map(|at| renewals(at, &groups, &answers)).collect());
    }
}

async fn ask(router: &Router, member: MemberId, sessions: Arc<[SessionId]>) -> Vec<(GroupId, Vec<Renewal>)> {
    let answered = if member == router.member() {
        router.keepalive_here(sessions).await
    } else {
        match router.ask(member, &MemberCall::Keepalive(sessions.to_vec())).await {
            Ok(MemberAnswer::Keepalive(groups)) => groups,
            Ok(_) | Err(_) => Vec::new(),
        }
    };
    let answered: Vec<(GroupId, Vec<Renewal>)> =
        answered.into_iter().filter_map(|(group, renewals)| Some((group, renewals.ok()?))).collect();
    router.note_leader(member, answered.iter().map(|(group, _)| *group));
    answered
}

fn renewals(at: usize, groups: &[GroupId], answers: &BTreeMap<GroupId, Vec<Renewal>>) -> Renewals {
    let mut ttl_ms = None;
    let lease = |group: &GroupId| {
        let renewal = answers.get(group).and_then(|renewals| renewals.get(at)).copied();
        if let Some(renewal) = renewal.filter(|renewal| renewal.state == LeaseState::Renewed) {
            ttl_ms = Some(renewal.ttl_ms);
        }
        let (state, epoch) =
            renewal.map_or((LeaseState::Unavailable, MapEpoch::NONE), |r| (r.state, r.epoch));
        GroupLease { group: *group, state, epoch }
    };
    let groups = groups.iter().map(lease).collect();
    Renewals { groups, ttl_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_did_not_answer_is_unavailable_and_renews_nothing() {
        let renewed = Renewal { state: LeaseState::Renewed, ttl_ms: 9_000, epoch: MapEpoch(3) };
        let unknown = Renewal { state: LeaseState::Unknown, ttl_ms: 0, epoch: MapEpoch(3) };
        let answers = BTreeMap::from([(GroupId(1), vec![unknown, renewed])]);
        let groups = [GroupId(1), GroupId(2)];
        let second = renewals(1, &groups, &answers);
        assert_eq!(second.ttl_ms, Some(9_000));
        let line = |group, state, epoch| GroupLease { group: GroupId(group), state, epoch: MapEpoch(epoch) };
        let expected = [line(1, LeaseState::Renewed, 3), line(2, LeaseState::Unavailable, 0)];
        assert_eq!(second.groups, expected);
        assert_eq!(renewals(0, &groups, &answers).ttl_ms, None);
    }
}
