//! The way to groups that have no replica on this member: which members carry them, and which of those leads.
//!
//! Asks one carrier after the other until one says more than that it does not lead. Repeats nothing that may have been done.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use holdfast_partitioner::{GroupId, MapEpoch};
use serde::{Deserialize, Serialize};

use super::{MemberAnswer, MemberCall, Router};
use crate::{
    endpoint::places::PlacesWatch,
    group::{
        call::{GroupCall, GroupResult},
        proposer::GroupError,
        watching::{WatchAnswer, WatchCall},
    },
    meta::placement::Placement,
    raft::types::MemberId,
};

/// A verb for any replica of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ReplicaCall {
    /// Do you carry the group, by this version of the placement or a later one?
    Carries {
        /// The version.
        version: u64,
    },
    /// What happens in it? Only a current replica says so, or one that leads.
    Watch(WatchCall),
}

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ReplicaAnswer {
    /// To [`ReplicaCall::Carries`].
    Carries(bool),
    /// To [`ReplicaCall::Watch`].
    Watch(WatchAnswer),
}

impl Router {
    /// Which members carry which groups, once this member knows.
    pub fn placement(&self) -> Option<Arc<Placement>> {
        self.inner.places.borrow().clone()
    }

    /// Follows which members carry which groups.
    pub fn places(&self) -> PlacesWatch {
        self.inner.places.clone()
    }

    /// Whether groups are where the meta group says, and not simply everywhere.
    pub fn is_spread(&self) -> bool {
        self.inner.places.borrow().as_ref().is_some_and(|placement| placement.version > 0)
    }

    /// All lock groups of the cluster, wherever they are.
    pub fn all_groups(&self) -> Vec<GroupId> {
        self.placement().map(|placement| placement.groups.keys().copied().collect()).unwrap_or_default()
    }

    /// Lock groups that have had a leader, or are there from the cluster's first moment on.
    pub fn begun_groups(&self) -> Vec<GroupId> {
        let begun = |placement: Arc<Placement>| {
            let begun = placement.groups.iter().filter(|(_, place)| place.has_begun() || place.since == 0);
            begun.map(|(group, _)| *group).collect()
        };
        self.placement().map(begun).unwrap_or_default()
    }

    /// The other members that carry a group.
    pub fn carriers(&self, id: GroupId) -> Vec<MemberId> {
        let carriers =
            self.placement().and_then(|placement| Some(placement.groups.get(&id)?.carriers().collect()));
        let carriers: Vec<MemberId> = carriers.unwrap_or_default();
        carriers.into_iter().filter(|carrier| *carrier != self.member()).collect()
    }

    /// The leader of a group, as far as this member has heard.
    pub fn leader_of(&self, id: GroupId) -> Option<MemberId> {
        match self.group(id) {
            Some(group) if group.leader().is_some() => group.leader(),
            Some(_) | None => self.inner.far.leader(id),
        }
    }

    /// Members to ask for a sign of all leaders: those known to lead, and where nobody is known, all that may.
    pub fn leaders(&self) -> BTreeSet<MemberId> {
        let mut leaders = BTreeSet::new();
        for id in self.all_groups() {
            let known = self.leader_of(id);
            if known.is_none() || self.inner.far.is_silent(id) {
                leaders.extend(self.far_carriers(id));
            }
            leaders.extend(known);
            // A replica that was voted out goes on naming the leader that it heard last.
            leaders.extend(self.inner.far.leader(id).filter(|_| self.is_spread()));
        }
        leaders
    }

    /// Who else may lead a group; nobody where this member hears of the leader itself.
    fn far_carriers(&self, id: GroupId) -> Vec<MemberId> {
        if self.is_spread() { self.carriers(id) } else { Vec::new() }
    }

    /// Notes which groups a member has shown to lead.
    pub fn note_leader(&self, leader: MemberId, led: impl IntoIterator<Item = GroupId>) {
        if self.is_spread() {
            led.into_iter().for_each(|group| self.inner.far.led(group, leader));
        }
    }

    /// Notes that nobody answered for a group.
    pub fn note_silence(&self, id: GroupId) {
        if self.is_spread() {
            self.inner.far.silent(id);
        }
    }

    /// Notes that a group has answered under an ownership epoch.
    pub fn note_epoch(&self, id: GroupId, epoch: MapEpoch) {
        if self.is_spread() {
            self.inner.far.answered_under(id, epoch);
        }
    }

    /// The newest ownership epoch under which each group that is elsewhere has answered.
    pub fn far_epochs(&self) -> std::collections::BTreeMap<GroupId, MapEpoch> {
        self.inner.far.epochs()
    }

    /// Says by which version of the placement this member's groups are started and stopped now.
    pub fn set_carried(&self, version: u64) {
        self.inner.carried.store(version, Ordering::Release);
    }

    /// Sends a verb to the leader of a group, whoever of its carriers that is. `guess` is asked first.
    pub(super) async fn call_far(
        &self,
        id: GroupId,
        call: GroupCall,
        guess: Option<MemberId>,
    ) -> GroupResult {
        let call = MemberCall::Group(id, call);
        let mut left: BTreeSet<MemberId> = self.carriers(id).into_iter().collect();
        let mut next = guess.or_else(|| self.inner.far.leader(id));
        while let Some(member) =
            next.take().filter(|member| left.contains(member)).or_else(|| left.first().copied())
        {
            left.remove(&member);
            let result = match self.ask(member, &call).await {
                Ok(MemberAnswer::Group(result)) => result,
                Ok(other) => return Err(GroupError::Fatal(format!("member {member} answered {other:?}"))),
                Err(error) => Err(error),
            };
            match result {
                Err(GroupError::NotLeader { leader }) => {
                    self.inner.far.lost(id, member);
                    next = leader;
                }
                Err(GroupError::Unknown) => return Err(GroupError::Unknown),
                result => {
                    self.inner.far.led(id, member);
                    return result;
                }
            }
        }
        Err(GroupError::NotLeader { leader: None })
    }

    /// This member, and those that answer it now.
    pub async fn reachable(&self) -> BTreeSet<MemberId> {
        let peers = self.peers();
        let asked = peers.iter().map(|member| async {
            let answer =
                tokio::time::timeout(self.patience() / 3, self.ask(*member, &MemberCall::Ping)).await;
            matches!(answer, Ok(Ok(MemberAnswer::Pong(_)))).then_some(*member)
        });
        let answered = futures::future::join_all(asked).await;
        answered.into_iter().flatten().chain([self.member()]).collect()
    }

    /// Asks any other member that carries a group. This one only where it leads, as it may while its replica is on its way out.
    pub async fn ask_replica(&self, id: GroupId, call: ReplicaCall) -> Result<ReplicaAnswer, GroupError> {
        let mut carriers = self.carriers(id);
        // The leader first, which has everything there is.
        carriers.sort_by_key(|carrier| Some(*carrier) != self.inner.far.leader(id));
        if self.group(id).is_some_and(|group| group.leads().is_some()) {
            carriers.insert(0, self.member());
        }
        for member in carriers {
            match self.ask_member(member, id, call.clone()).await {
                Err(GroupError::NotLeader { .. } | GroupError::Unknown) => {}
                result => return result,
            }
        }
        Err(GroupError::NotLeader { leader: None })
    }

    /// Asks one member that should carry a group.
    pub async fn ask_member(
        &self,
        member: MemberId,
        id: GroupId,
        call: ReplicaCall,
    ) -> Result<ReplicaAnswer, GroupError> {
        if member == self.member() {
            return self.answer_replica(id, call).await;
        }
        match self.ask(member, &MemberCall::Replica(id, call)).await? {
            MemberAnswer::Replica(result) => result,
            other => Err(GroupError::Fatal(format!("member {member} answered {other:?}"))),
        }
    }

    pub(super) async fn answer_replica(
        &self,
        id: GroupId,
        call: ReplicaCall,
    ) -> Result<ReplicaAnswer, GroupError> {
        match call {
            ReplicaCall::Carries { version } => {
                let carries =
                    self.group(id).is_some() && self.inner.carried.load(Ordering::Acquire) >= version;
                Ok(ReplicaAnswer::Carries(carries))
            }
            ReplicaCall::Watch(call) => {
                let leading = || self.group(id).filter(|group| group.leads().is_some());
                let group = self.current_group(id).or_else(leading);
                let group = group.ok_or(GroupError::NotLeader { leader: None })?;
                let answer = group.watch(call, self.inner.map.clone(), self.inner.patience).await?;
                Ok(ReplicaAnswer::Watch(answer))
            }
        }
    }
}
