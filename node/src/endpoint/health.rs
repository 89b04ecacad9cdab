//! Who can be reached, and which groups have a leader: one small message per member pair and election timeout.
//!
//! A follower that is cut off believes in its old leader for a long time; a message that comes back does not. Decides
//! nothing: it tells watchers and `/readyz`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use holdfast_partitioner::GroupId;
use tokio::{sync::watch, time::Instant};

use super::router::{MemberAnswer, MemberCall, Router};
use crate::{
    group::call::{GroupAnswer, GroupCall},
    raft::types::MemberId,
};

/// What is known of the others.
#[derive(Clone, Debug, Default)]
struct Known {
    /// When each member answered last.
    heard: BTreeMap<MemberId, Instant>,
    /// When each group was last known to have a leader.
    led: BTreeMap<GroupId, Instant>,
    /// Groups whose log this member has caught up with since its start.
    caught_up: BTreeSet<GroupId>,
}

/// What is known of the others. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Health {
    known: watch::Receiver<Arc<Known>>,
    router: Router,
    interval: Duration,
    patience: Duration,
}

impl Health {
    /// Starts asking every `interval` (the longest election timeout); what was not heard of for `patience` (three of
    /// them) counts as gone. Ends with its last handle.
    pub fn start(router: Router, interval: Duration, patience: Duration) -> Self {
        let (tell, known) = watch::channel(Arc::new(Known::default()));
        tokio::spawn(ask_around(router.clone(), tell, interval));
        Self { known, router, interval, patience }
    }

    /// Whether a member answered lately.
    pub fn reachable(&self, member: MemberId) -> bool {
        self.known.borrow().heard.get(&member).is_some_and(|at| at.elapsed() < self.patience)
    }

    /// Resolves when the group has had no leader for the patience.
    pub async fn leaderless(&self, group: GroupId) {
        let started = Instant::now();
        let mut known = self.known.clone();
        loop {
            let led = known.borrow_and_update().led.get(&group).copied().unwrap_or(started);
            if led.elapsed() >= self.patience {
                return;
            }
            // Looks at least as often as the message goes round.
            if let Ok(Err(_)) = tokio::time::timeout(self.interval, known.changed()).await {
                return;
            }
        }
    }

    /// Whether every group has a leader and this member has caught up with each since its start.
    pub fn ready(&self) -> Result<(), String> {
        let (known, groups) = (self.known.borrow(), groups(&self.router));
        let leaderless =
            |group: &&GroupId| known.led.get(group).is_none_or(|at| at.elapsed() >= self.patience);
        if let Some(group) = groups.iter().find(leaderless) {
            return Err(format!("group {group} has no leader"));
        }
        match groups.iter().find(|group| !known.caught_up.contains(group)) {
            Some(group) => Err(format!("this member has not caught up with group {group} yet")),
            None => Ok(()),
        }
    }
}

/// All groups that should have a leader: a lock group that was just added need not yet.
fn groups(router: &Router) -> Vec<GroupId> {
    [GroupId::META].into_iter().chain(router.begun_groups()).collect()
}

async fn ask_around(router: Router, tell: watch::Sender<Arc<Known>>, interval: Duration) {
    let mut known = Known::default();
    while !tell.is_closed() {
        let peers = router.peers();
        let asked = peers.iter().map(|member| async {
            let answer = tokio::time::timeout(interval, router.ask(*member, &MemberCall::Ping)).await;
            (*member, answer)
        });
        let answers = futures::future::join_all(asked).await;
        let now = Instant::now();
        let mut led: BTreeSet<GroupId> = router.leads().into_iter().collect();
        for (member, answer) in answers {
            if let Ok(Ok(MemberAnswer::Pong(leads))) = answer {
                known.heard.insert(member, now);
                router.note_leader(member, leads.iter().copied());
                led.extend(leads);
            }
        }
        known.led.extend(led.iter().map(|group| (*group, now)));
        let groups = groups(&router);
        catch_up(&router, &groups, &led, &mut known.caught_up).await;
        tell.send_replace(Arc::new(known.clone()));
        let starting = groups.iter().any(|group| !known.caught_up.contains(group));
        tokio::time::sleep(if starting { interval / 10 } else { interval }).await;
    }
}

/// A group is caught up once this member has applied what its leader had committed when it was asked.
async fn catch_up(
    router: &Router,
    groups: &[GroupId],
    led: &BTreeSet<GroupId>,
    done: &mut BTreeSet<GroupId>,
) {
    for id in groups {
        if done.contains(id) || !led.contains(id) {
            continue;
        }
        let Some(group) = router.group(*id) else {
            // The meta group's map is waited for elsewhere, and there is nothing to catch up with in a group that is elsewhere.
            done.insert(*id);
            continue;
        };
        if let Ok(GroupAnswer::Status(leader)) = router.call(*id, GroupCall::Status).await
            && group.status().applied_index >= leader.committed_index
        {
            done.insert(*id);
        }
    }
}
