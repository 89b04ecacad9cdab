//! Tells other groups that sessions have ended, again and again until each has acknowledged (rule R4).
//!
//! Runs at the leader of the sessions' home. Knows no leases: what has ended stands in the table.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use holdfast_locktable::{
    command::{Command, LearnedEnd, SessionEndReason},
    ids::{SessionEpoch, SessionId},
};
use holdfast_partitioner::GroupId;
use tokio::sync::mpsc;

use super::{Outward, call::GroupCall, proposer::Proposer};

/// Pause before a group that did not answer is told again.
const RETRY: Duration = Duration::from_millis(200);
/// Most ends told in one call.
const BATCH: usize = 500;

/// One end that one group has to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndToTell {
    /// The session.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: SessionEpoch,
    /// Why it ended.
    pub reason: SessionEndReason,
    /// Who has to learn it.
    pub group: GroupId,
}

/// Runs until its queue is closed or it is aborted (with leadership). Each group is told by a task of its own, so that
/// one without leader holds up no other.
pub async fn tell_ends(mut ends: mpsc::UnboundedReceiver<EndToTell>, proposer: Proposer, outward: Outward) {
    let mut tellers = tokio::task::JoinSet::new();
    let mut queues: BTreeMap<GroupId, mpsc::UnboundedSender<EndToTell>> = BTreeMap::new();
    while let Some(end) = ends.recv().await {
        let queue = queues.entry(end.group).or_insert_with(|| {
            let (queue, told) = mpsc::unbounded_channel();
            tellers.spawn(tell_group(end.group, told, proposer.clone(), outward.clone()));
            queue
        });
        // The other end lives as long as this task.
        let _ = queue.send(end);
    }
}

async fn tell_group(
    group: GroupId,
    mut queue: mpsc::UnboundedReceiver<EndToTell>,
    proposer: Proposer,
    outward: Outward,
) {
    let mut untold: BTreeMap<(SessionId, SessionEpoch), SessionEndReason> = BTreeMap::new();
    loop {
        if untold.is_empty() {
            let Some(end) = queue.recv().await else { return };
            untold.insert((end.session, end.epoch), end.reason);
        }
        while let Ok(end) = queue.try_recv() {
            untold.insert((end.session, end.epoch), end.reason);
        }
        let batch: Vec<LearnedEnd> = untold
            .iter()
            .take(BATCH)
            .map(|((session, epoch), reason)| LearnedEnd {
                session: *session,
                epoch: *epoch,
                reason: *reason,
            })
            .collect();
        match outward(group, GroupCall::LearnEnds(batch.clone())).await {
            Ok(_) => {
                let told = acknowledge(&batch, group, &proposer).await;
                untold.retain(|key, _| !told.contains(key));
            }
            Err(error) => tracing::debug!(%group, %error, "a group has not learned of ended sessions yet"),
        }
        if !untold.is_empty() {
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Records at home that the group knows. What cannot be recorded is told again: learning twice is harmless.
async fn acknowledge(
    batch: &[LearnedEnd],
    group: GroupId,
    proposer: &Proposer,
) -> BTreeSet<(SessionId, SessionEpoch)> {
    let acks = batch.iter().map(|end| {
        let (session, epoch) = (end.session, end.epoch);
        let proposed = proposer.propose(Command::AckEnd { session, epoch, group });
        async move { proposed.await.map(|_| (session, epoch)) }
    });
    futures::future::join_all(acks).await.into_iter().filter_map(Result::ok).collect()
}
