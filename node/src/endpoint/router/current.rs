//! Which replicas on this member are current: they have what their groups have, but for what any follower lacks.
//!
//! One on its way in is still being sent the log, and its table is empty or old; one on its way out may have been voted out,
//! and hears nothing any more. Neither can say what happens in its group, or since when there is no leader. Goes by the
//! placement alone.

use std::collections::BTreeSet;

use holdfast_partitioner::GroupId;
use tokio::sync::watch;

use super::Router;
use crate::{group::Group, meta::placement::Placement, raft::types::MemberId, watch::Outdated};

impl Router {
    /// A lock group on this member, where its replica is current.
    pub fn current_group(&self, id: GroupId) -> Option<Group> {
        self.group(id).filter(|_| self.inner.current.borrow().contains(&id))
    }

    /// All lock groups on this member whose replicas are current.
    pub fn current_groups(&self) -> Vec<Group> {
        let current = self.inner.current.borrow().clone();
        self.groups().into_iter().filter(|group| current.contains(&group.id())).collect()
    }

    /// Follows which lock groups have a current replica here.
    pub fn current(&self) -> watch::Receiver<BTreeSet<GroupId>> {
        self.inner.current.subscribe()
    }

    /// Takes it that replicas are not current that this placement does not keep here. To be said before their groups are stopped.
    pub fn retain_current(&self, placement: &Placement) {
        let before = self.inner.current.borrow().clone();
        let now = current_by(placement, self.member(), &before);
        self.set_current(before.intersection(&now).copied().collect());
        for group in before.difference(&now).filter_map(|id| self.group(*id)) {
            group.fanout().do_send(Outdated);
        }
    }

    /// Takes it that replicas are current that are to be by this placement. To be said once their groups have been started.
    pub fn add_current(&self, placement: &Placement) {
        let before = self.inner.current.borrow().clone();
        self.set_current(current_by(placement, self.member(), &before));
    }

    fn set_current(&self, now: BTreeSet<GroupId>) {
        self.inner.current.send_if_modified(|current| {
            let changed = *current != now;
            *current = now;
            changed
        });
    }
}

/// The groups whose replica on a member is current. While the members of a group are being changed, those replicas are that were
/// before and stay; of a group that has not begun nobody has more than another.
fn current_by(placement: &Placement, member: MemberId, before: &BTreeSet<GroupId>) -> BTreeSet<GroupId> {
    let current = placement.groups.iter().filter(|(group, place)| {
        place.replicas.contains(&member) && (place.settled() || !place.has_begun() || before.contains(*group))
    });
    current.map(|(group, _)| *group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::placement::GroupPlace;

    const GROUP: GroupId = GroupId(1);

    fn placement(replicas: &[MemberId], leaving: &[MemberId]) -> Placement {
        let place = GroupPlace {
            replicas: replicas.to_vec(),
            founders: Vec::new(),
            leaving: leaving.iter().copied().collect(),
            why: if leaving.is_empty() { String::new() } else { "a test".to_owned() },
            since: 1,
        };
        Placement { version: 1, groups: [(GROUP, place)].into(), ..Placement::default() }
    }

    /// Whether a member's replica is current after these placements, one after the other.
    fn current(member: MemberId, placements: &[Placement]) -> bool {
        let known = placements.iter().fold(BTreeSet::new(), |known, now| current_by(now, member, &known));
        known.contains(&GROUP)
    }

    #[test]
    fn a_replica_is_current_from_settled_until_it_is_to_leave() {
        let (before, changing, after) =
            (placement(&[1, 2, 3], &[]), placement(&[4, 2, 3], &[1]), placement(&[4, 2, 3], &[]));
        let steps = [before, changing, after];
        let upto = |member| [1, 2, 3].map(|count| current(member, &steps[..count]));
        assert_eq!(upto(1), [true, false, false], "it is on its way out");
        assert_eq!(upto(2), [true, true, true], "it stays");
        assert_eq!(upto(4), [false, false, true], "it is on its way in");
        // A member that starts while the group changes cannot tell whether it was sent everything.
        assert!(!current(2, &steps[1..2]) && current(2, &steps[1..]));
    }

    #[test]
    fn a_replica_of_a_group_that_begins_is_current_and_so_is_each_without_a_placement() {
        let members: BTreeSet<MemberId> = (1..=4).collect();
        let everywhere = Placement::everywhere(&members, &[GROUP], 3);
        assert!((1..=4).all(|member| current(member, std::slice::from_ref(&everywhere))));
        let fresh = Placement::spread(&members, &[GROUP], 3);
        let carry = (1..=4).map(|member| current(member, std::slice::from_ref(&fresh)));
        assert_eq!(carry.filter(|current| *current).count(), 3);
    }
}
