//! Where the groups of a cluster lie when it starts for the first time, from its configuration alone.
//!
//! Every member comes to the same answer by itself, and so does whoever plans a cluster. Later changes are the placement's
//! business.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_partitioner::GroupId;

use crate::{
    config::{META_VOTERS, MemberConfig},
    group::bootstrap::first_leader,
    meta::placement::Placement,
    raft::types::MemberId,
};

/// Where the groups of a fresh cluster lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The voters of the meta group, in ascending order. The other members follow it without a vote.
    pub meta: Vec<MemberId>,
    /// The members that carry each lock group, by its number; the one that leads it first comes first.
    pub groups: BTreeMap<u32, Vec<MemberId>>,
}

impl Layout {
    /// The layout that members with this configuration begin with.
    pub fn of(config: &MemberConfig) -> Self {
        let meta = meta_voters(config).into_iter().collect();
        let spread = placement(config);
        let members: Vec<MemberId> = all(config).into_iter().collect();
        let replicas = |group: GroupId| match &spread {
            Some(placement) => placement.groups.get(&group).map(|place| place.replicas.clone()),
            None => first_leader(group, &members).map(|first| {
                let others = members.iter().copied().filter(|member| *member != first);
                [first].into_iter().chain(others).collect()
            }),
        };
        let groups =
            lock_groups(config).map(|group| (group.0, replicas(group).unwrap_or_default())).collect();
        Self { meta, groups }
    }
}

/// The lock groups of a fresh cluster.
pub(super) fn lock_groups(config: &MemberConfig) -> impl Iterator<Item = GroupId> + use<> {
    (1..=u32::from(config.groups.lock_groups)).map(GroupId)
}

/// The first placement of a fresh cluster, where it has more members than replicas.
pub(super) fn placement(config: &MemberConfig) -> Option<Placement> {
    let groups: Vec<GroupId> = lock_groups(config).collect();
    config.spreads().then(|| Placement::spread(&all(config), &groups, config.replicas()))
}

/// The voters of the meta group: all members, but in a cluster of more members than replicas only the first few, and the
/// others follow it.
pub(super) fn meta_voters(config: &MemberConfig) -> BTreeSet<MemberId> {
    let most = if config.spreads() { META_VOTERS } else { usize::MAX };
    all(config).into_iter().take(most).collect()
}

fn all(config: &MemberConfig) -> BTreeSet<MemberId> {
    config.members.iter().map(|entry| entry.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{GroupsConfig, MemberEntry};

    fn cluster(members: u64, lock_groups: u16, replicas: u16) -> Layout {
        let entry = |id| MemberEntry { id, ..MemberEntry::default() };
        Layout::of(&MemberConfig {
            members: (1..=members).map(entry).collect(),
            groups: GroupsConfig { lock_groups, replicas },
            ..MemberConfig::default()
        })
    }

    #[test]
    fn as_many_members_as_replicas_carry_everything_and_lead_in_turn() {
        let layout = cluster(3, 4, 3);
        assert_eq!(layout.meta, [1, 2, 3]);
        let leaders: Vec<_> = layout.groups.values().map(|replicas| replicas[0]).collect();
        assert_eq!(leaders, [2, 3, 1, 2]);
        assert!(layout.groups.values().all(|replicas| replicas.len() == 3));
    }

    #[test]
    fn more_members_than_replicas_carry_a_share_each() {
        let layout = cluster(9, 9, 3);
        assert_eq!(layout.meta, [1, 2, 3, 4, 5], "the others follow without a vote");
        for member in 1..=9 {
            let carried = layout.groups.values().filter(|replicas| replicas.contains(&member)).count();
            let led = layout.groups.values().filter(|replicas| replicas[0] == member).count();
            assert_eq!((carried, led), (3, 1), "member {member}");
        }
    }
}
