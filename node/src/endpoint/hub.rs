//! Collects keepalives of all clients of this member and spreads them, one message per member, to every group leader.
//!
//! A batch goes out as soon as the one before is on its way; nothing waits for a tick. Knows no deadlines: the leaders do.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use holdfast_locktable::ids::SessionId;
use holdfast_partitioner::GroupId;
use tokio::sync::{mpsc, oneshot};

use super::{
    router::{MemberAnswer, MemberCall, Router},
    types::{GroupLease, LeaseState},
};
use crate::{group::keepalive::Renewal, raft::types::MemberId};

/// Keepalives that may wait to be sent. Beyond it callers are refused as overloaded and try again.
const QUEUE: usize = 16_384;
/// Most keepalives in one batch.
const BATCH: usize = 4_096;
/// How long to gather after the first keepalive of a batch, so that many clients share one quorum round.
const GATHER: Duration = Duration::from_millis(5);

/// What all groups said of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewals {
    /// One line per lock group, in order.
    pub groups: Vec<GroupLease>,
    /// The session's TTL in milliseconds, where any group renewed it.
    pub ttl_ms: Option<u64>,
}

type Keepalive = (SessionId, oneshot::Sender<Renewals>);

/// The way into the hub. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeepaliveHub {
    queue: mpsc::Sender<Keepalive>,
}

impl KeepaliveHub {
    /// Starts the hub; it ends with its last handle. A member that does not answer within `patience` counts as unavailable.
    pub fn start(router: Router, patience: Duration) -> Self {
        let (queue, keepalives) = mpsc::channel(QUEUE);
        tokio::spawn(gather(router, patience, keepalives));
        Self { queue }
    }

    /// Renews one session everywhere. `None` where too many keepalives wait already, or the member is going down.
    pub async fn renew(&self, session: SessionId) -> Option<Renewals> {
        let (tell, hear) = oneshot::channel();
        self.queue.try_send((session, tell)).ok()?;
        hear.await.ok()
    }
}

async fn gather(router: Router, patience: Duration, mut keepalives: mpsc::Receiver<Keepalive>) {
    loop {
        let mut batch = Vec::new();
        if keepalives.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        tokio::time::sleep(GATHER).await;
        while batch.len() < BATCH
            && let Ok(keepalive) = keepalives.try_recv()
        {
            batch.push(keepalive);
        }
        tokio::spawn(spread(router.clone(), patience, batch));
    }
}

/// Sends one batch to every member that leads anything, and answers each caller.
async fn spread(router: Router, patience: Duration, batch: Vec<Keepalive>) {
    let sessions: Arc<[SessionId]> = batch.iter().map(|(session, _)| *session).collect();
    let mut leaders: Vec<MemberId> = router.groups().filter_map(crate::group::Group::leader).collect();
    leaders.sort_unstable();
    leaders.dedup();
    let asked = leaders.into_iter().map(|member| {
        let (router, sessions) = (router.clone(), sessions.clone());
        async move { tokio::time::timeout(patience, ask(&router, member, sessions)).await.unwrap_or_default() }
    });
    let answers: BTreeMap<GroupId, Vec<Renewal>> =
        futures::future::join_all(asked).await.into_iter().flatten().collect();
    let groups: Vec<GroupId> = router.groups().map(crate::group::Group::id).collect();
    for (at, (_, caller)) in batch.into_iter().enumerate() {
        // A caller that went away needs no answer.
        let _ = caller.send(renewals(at, &groups, &answers));
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
    answered.into_iter().filter_map(|(group, renewals)| Some((group, renewals.ok()?))).collect()
}

fn renewals(at: usize, groups: &[GroupId], answers: &BTreeMap<GroupId, Vec<Renewal>>) -> Renewals {
    let mut ttl_ms = None;
    let lease = |group: &GroupId| {
        let renewal = answers.get(group).and_then(|renewals| renewals.get(at)).copied();
        if let Some(renewal) = renewal.filter(|renewal| renewal.state == LeaseState::Renewed) {
            ttl_ms = Some(renewal.ttl_ms);
        }
        GroupLease { group: *group, state: renewal.map_or(LeaseState::Unavailable, |renewal| renewal.state) }
    };
    let groups = groups.iter().map(lease).collect();
    Renewals { groups, ttl_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_did_not_answer_is_unavailable_and_renews_nothing() {
        let renewed = Renewal { state: LeaseState::Renewed, ttl_ms: 9_000 };
        let unknown = Renewal { state: LeaseState::Unknown, ttl_ms: 0 };
        let answers = BTreeMap::from([(GroupId(1), vec![unknown, renewed])]);
        let groups = [GroupId(1), GroupId(2)];
        let second = renewals(1, &groups, &answers);
        assert_eq!(second.ttl_ms, Some(9_000));
        assert_eq!(second.groups[0].state, LeaseState::Renewed);
        assert_eq!(second.groups[1].state, LeaseState::Unavailable);
        assert_eq!(renewals(0, &groups, &answers).ttl_ms, None);
    }
}
