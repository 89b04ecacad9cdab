//! What a fresh cluster needs once: voters for each group, the first partition map, and each group's first ranges.
//!
//! Every step is harmless when repeated, by whichever member. Nothing here runs twice with different results: all members
//! are told the same members and the same number of groups.

use std::{collections::BTreeMap, time::Duration};

use holdfast_locktable::command::{Command, Own};
use holdfast_partitioner::{GroupId, PartitionMap};
use tokio::sync::watch;

use super::Group;
use crate::{
    endpoint::MapWatch,
    meta::{group::MetaGroup, placement::Placement},
    raft::{group::RaftGroup, types::MemberId},
};

/// How long the member that should lead a fresh group first has for itself before the others help.
const HEAD_START: Duration = Duration::from_secs(2);
/// Pause before a step that did not go through is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// The member that begins a group, so that the leaders of fresh groups sit on different members.
pub fn first_leader(group: GroupId, members: &[MemberId]) -> Option<MemberId> {
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    sorted.get(group.0 as usize % members.len().max(1)).copied()
}

/// Gives a fresh group its voters. The member that should lead it first begins; the others follow later, in case it is
/// not there. Waits until the member may take part.
pub async fn begin(
    raft: RaftGroup,
    voters: BTreeMap<MemberId, String>,
    first: Option<MemberId>,
    mut admitted: watch::Receiver<bool>,
) {
    if admitted.wait_for(|admitted| *admitted).await.is_err() {
        return;
    }
    if first != Some(raft.member()) {
        let mut leadership = raft.leadership();
        let led = leadership.wait_for(|now| now.leader.is_some());
        if tokio::time::timeout(HEAD_START, led).await.is_ok() {
            return;
        }
    }
    if let Err(error) = raft.initialize(voters).await {
        tracing::error!(group = %raft.id(), %error, "the group cannot begin");
    }
}

/// Sets the first partition map whenever this member leads a meta group without one; before it the first placement, where
/// there is to be one.
pub async fn provide_map(meta: MetaGroup, lock_groups: Vec<GroupId>, placement: Option<Placement>) {
    let mut leadership = meta.raft().leadership();
    while meta.map().is_none() {
        if meta.leads() {
            match PartitionMap::initial(&lock_groups) {
                Ok(map) => {
                    if let Err(error) = meta.begin_with(placement.clone(), map).await {
                        tracing::debug!(%error, "the first partition map was not set");
                    }
                }
                Err(error) => tracing::error!(%error, "there is no first partition map for these groups"),
            }
            tokio::time::sleep(RETRY).await;
        } else if tokio::time::timeout(RETRY * 5, leadership.changed())
            .await
            .is_ok_and(|changed| changed.is_err())
        {
            return;
        }
    }
}

/// Gives a fresh group its first ranges whenever this member leads it and the map is known.
pub async fn take_ranges(group: Group, mut map: MapWatch) {
    let Ok(Some(map)) = map.wait_for(Option::is_some).await.map(|map| map.clone()) else { return };
    let mut leadership = group.raft().leadership();
    while !group.locks(|table| table.has_owned()) {
        if group.leads().is_some() {
            let own = Own { group: group.id(), map_epoch: map.epoch(), ranges: map.ranges_of(group.id()) };
            if let Err(error) = group.parts.proposer.propose(Command::Own(own)).await {
                tracing::debug!(group = %group.id(), %error, "the group has not taken its ranges yet");
            }
            tokio::time::sleep(RETRY).await;
        } else if tokio::time::timeout(RETRY * 5, leadership.changed())
            .await
            .is_ok_and(|changed| changed.is_err())
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_groups_are_led_by_different_members() {
        let leaders: Vec<_> = (1..=4).map(|n| first_leader(GroupId(n), &[3, 1, 2])).collect();
        assert_eq!(leaders, [Some(2), Some(3), Some(1), Some(2)]);
        assert_eq!(first_leader(GroupId(1), &[]), None);
    }
}
