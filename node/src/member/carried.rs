//! The lock groups that this member carries: starts and stops them as the placement says.
//!
//! A group that the placement takes away is stopped once the group's own members do not have this one any more. Its vote, one
//! snapshot and what of its log came after that stay on the disk: a member that carries the group again later votes by what it
//! acknowledged before, and one that starts with an older placement than it knew goes on where it was. The rest of the log goes.
//! Decides nothing itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use holdfast_partitioner::GroupId;
use tokio::{sync::watch, task::JoinSet, time::timeout};

use super::{StartError, parts::Shared};
use crate::{
    group::{
        Group,
        bootstrap::{self, first_leader},
        steward,
    },
    meta::placement::Placement,
    peer::PeerService,
    raft::group::RaftGroup,
};

/// Where the reason goes for which the member must end.
pub(super) type Fatal = watch::Sender<Option<String>>;

/// How long a group that leaves may take to write its state down; its log stays as long as it is where it takes longer.
const LAST_SNAPSHOT: Duration = Duration::from_secs(10);

/// The groups of this member.
pub(super) struct Carried {
    shared: Arc<Shared>,
    service: PeerService,
    fatal: Fatal,
    running: BTreeMap<GroupId, JoinSet<()>>,
}

impl Carried {
    /// None yet.
    pub(super) fn new(shared: Arc<Shared>, service: PeerService, fatal: Fatal) -> Self {
        Self { shared, service, fatal, running: BTreeMap::new() }
    }

    /// Starts and stops groups until they are what the placement says. A replica on its way out counts as current no more before
    /// its group is stopped, so that whoever reads it goes elsewhere first.
    pub(super) async fn follow_once(&mut self, placement: &Placement) -> Result<(), StartError> {
        self.shared.router.retain_current(placement);
        let wanted: BTreeSet<GroupId> = placement.carried_by(self.shared.config.member).collect();
        let gone: Vec<GroupId> = self.running.keys().filter(|id| !wanted.contains(id)).copied().collect();
        for id in gone {
            self.stop(id).await;
        }
        let mut started = Vec::new();
        for id in wanted {
            if !self.running.contains_key(&id) {
                started.push(self.start(id).await?);
            }
        }
        for group in started {
            self.begin(&group, placement);
        }
        self.shared.router.add_current(placement);
        self.shared.router.set_carried(placement.version);
        Ok(())
    }

    /// Follows the placement until the member stops.
    pub(super) async fn follow(mut self) {
        let mut places = self.shared.places.clone();
        let first = places.borrow().clone();
        if let Some(placement) = first {
            self.shorten_left(&placement).await;
        }
        while places.changed().await.is_ok() {
            let now = places.borrow_and_update().clone();
            let Some(now) = now else { continue };
            if let Err(error) = self.follow_once(&now).await {
                tracing::error!(%error, "a group cannot be started here");
                self.fatal.send_replace(Some(error.to_string()));
                return;
            }
        }
    }

    async fn start(&mut self, id: GroupId) -> Result<Group, StartError> {
        let (group, sink) = self.shared.start_group(id).await?;
        let mut tasks = JoinSet::new();
        self.service.add_group(group.raft().clone());
        tasks.spawn(steward::follow_leadership(group.clone(), sink));
        tasks.spawn(bootstrap::take_ranges(group.clone(), self.shared.map.clone()));
        tasks.spawn(watch_fatal(group.raft().clone(), self.fatal.clone()));
        self.shared.router.add_group(group.clone());
        self.running.insert(id, tasks);
        Ok(group)
    }

    /// Gives a group its voters, where this member is one of those that it begins with.
    fn begin(&mut self, group: &Group, placement: &Placement) {
        let Some(place) = placement.groups.get(&group.id()) else { return };
        let spread = placement.version > 0;
        let founders = if spread { &place.founders } else { &place.replicas };
        let member = self.shared.config.member;
        if !founders.contains(&member) {
            return;
        }
        let first = if spread { founders.first().copied() } else { first_leader(group.id(), founders) };
        let voters = self.shared.router.addresses(founders.iter().copied());
        if let Some(tasks) = self.running.get_mut(&group.id()) {
            tasks.spawn(bootstrap::begin(group.raft().clone(), voters, first, self.service.admitted()));
        }
    }

    async fn stop(&mut self, id: GroupId) {
        let Some(mut tasks) = self.running.remove(&id) else { return };
        tracing::info!(group = %id, "this member does not carry the group any more");
        self.service.remove_group(id);
        if let Some(group) = self.shared.router.group(id) {
            self.shared.router.remove_group(id);
            match timeout(LAST_SNAPSHOT, group.raft().build_snapshot()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::info!(group = %id, %error, "no last snapshot of the group"),
                Err(_) => tracing::info!(group = %id, "no last snapshot of the group in time"),
            }
            group.raft().shutdown().await;
            tasks.shutdown().await;
            group.retire().await;
            self.shorten(id).await;
        }
    }

    /// Does again for groups that left before the last start what an end of the process may have kept from being done.
    async fn shorten_left(&self, placement: &Placement) {
        for id in placement.groups.keys().filter(|id| !self.running.contains_key(id)) {
            self.shorten(*id).await;
        }
    }

    /// Lets go of the log of a group that does not run here. What cannot be let go costs only space.
    async fn shorten(&self, id: GroupId) {
        if let Err(error) = self.shared.shorten_log(id).await {
            tracing::warn!(group = %id, %error, "the log of a group that this member has left stays as it is");
        }
    }
}

/// Turns true trouble of a group into a reason to stop.
pub(super) async fn watch_fatal(raft: RaftGroup, tell: Fatal) {
    let mut group = raft.fatal();
    if let Ok(reason) = group.wait_for(Option::is_some).await {
        tell.send_replace(reason.as_ref().map(ToString::to_string));
    }
}

#[cfg(test)]
mod tests;
