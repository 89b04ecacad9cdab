//! Which replica is to move next: away from a drained member, or from one that carries more groups than another.
//!
//! Pure. One group at a time: a change begins only where all groups are settled.

use std::collections::BTreeSet;

use holdfast_partitioner::GroupId;

use crate::{meta::placement::Placement, raft::types::MemberId};

/// A group that is to have other replicas, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The group.
    pub group: GroupId,
    /// Its replicas.
    pub replicas: Vec<MemberId>,
    /// Why.
    pub why: String,
}

/// The next change. New replicas come only to members that can be reached.
#[must_use]
pub fn next_change(placement: &Placement, reachable: &BTreeSet<MemberId>) -> Option<Change> {
    if placement.unsettled().next().is_some() {
        return None;
    }
    drained(placement, reachable).or_else(|| uneven(placement, reachable))
}

/// Another member in the place of one that a group on its way waits for in vain: one that is not among its voters yet and cannot
/// be reached.
#[must_use]
pub fn instead_of_absent(
    placement: &Placement,
    group: GroupId,
    voters: &BTreeSet<MemberId>,
    reachable: &BTreeSet<MemberId>,
) -> Option<Change> {
    let place = placement.groups.get(&group).filter(|place| place.has_begun())?;
    let absent = |member: &&MemberId| !voters.contains(member) && !reachable.contains(member);
    let from = place.replicas.iter().find(absent)?;
    let to = placement.choose_one(group, reachable)?;
    let instead = format!("member {to} instead of member {from}, which cannot be reached");
    let why = if place.why.is_empty() { instead } else { format!("{}; {instead}", place.why) };
    Some(Change { group, replicas: replaced(&place.replicas, *from, to), why })
}

fn drained(placement: &Placement, reachable: &BTreeSet<MemberId>) -> Option<Change> {
    for (group, place) in &placement.groups {
        let Some(from) = place.replicas.iter().find(|member| placement.drained.contains(member)) else {
            continue;
        };
        let why = format!("member {from} is drained");
        if place.replicas.len() > usize::from(placement.replicas) {
            let replicas = place.replicas.iter().copied().filter(|member| member != from).collect();
            return Some(Change { group: *group, replicas, why });
        }
        if let Some(to) = placement.choose_one(*group, reachable) {
            return Some(Change { group: *group, replicas: replaced(&place.replicas, *from, to), why });
        }
    }
    None
}

fn uneven(placement: &Placement, reachable: &BTreeSet<MemberId>) -> Option<Change> {
    let carried = |member: &MemberId| placement.shares_of(*member).0;
    let from = placement.usable().max_by_key(|member| (carried(member), *member))?;
    let to = placement
        .usable()
        .filter(|member| reachable.contains(member))
        .min_by_key(|member| (carried(member), *member))?;
    let (most, least) = (carried(&from), carried(&to));
    if most < least + 2 {
        return None;
    }
    let moves = |place: &&Vec<MemberId>| place.contains(&from) && !place.contains(&to);
    let (group, replicas) = placement
        .groups
        .iter()
        .map(|(group, place)| (group, &place.replicas))
        .find(|(_, place)| moves(place))?;
    let why = format!("member {from} carries {most} groups and member {to} only {least}");
    Some(Change { group: *group, replicas: replaced(replicas, from, to), why })
}

/// The new one comes last: it should not lead first.
fn replaced(replicas: &[MemberId], from: MemberId, to: MemberId) -> Vec<MemberId> {
    replicas.iter().copied().filter(|member| *member != from).chain([to]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(count: u64) -> BTreeSet<MemberId> {
        (1..=count).collect()
    }

    fn settled(count: u64, groups: u32, replicas: u16) -> Placement {
        let groups: Vec<GroupId> = (1..=groups).map(GroupId).collect();
        let mut placement = Placement::spread(&all(count), &groups, replicas);
        placement.groups.values_mut().for_each(|place| place.founders.clear());
        placement
    }

    #[test]
    fn a_drained_member_gives_its_groups_to_whoever_carries_the_fewest() {
        let mut placement = settled(5, 1, 3);
        placement.drained.insert(2);
        let change = next_change(&placement, &all(5)).unwrap();
        assert_eq!((change.group, change.replicas), (GroupId(1), vec![1, 3, 4]));
        assert_eq!(change.why, "member 2 is drained");
        let without_4 = next_change(&placement, &BTreeSet::from([1, 2, 3, 5])).unwrap();
        assert_eq!(without_4.replicas, [1, 3, 5]);
        assert_eq!(next_change(&placement, &BTreeSet::from([1, 2, 3])), None, "nobody can take it");
    }

    #[test]
    fn nothing_begins_while_a_group_is_on_its_way() {
        let mut placement = settled(5, 2, 3);
        placement.drained.insert(2);
        placement.groups.get_mut(&GroupId(2)).unwrap().leaving.insert(5);
        assert_eq!(next_change(&placement, &all(5)), None);
    }

    #[test]
    fn a_member_that_is_waited_for_in_vain_is_replaced() {
        let mut placement = settled(6, 1, 3);
        let place = placement.groups.get_mut(&GroupId(1)).unwrap();
        (place.replicas, place.leaving, place.why) =
            (vec![2, 3, 4], [1].into(), "member 1 is drained".to_owned());
        placement.drained.insert(1);
        let instead = |voters: [MemberId; 3], reachable: &[MemberId]| {
            let reachable = reachable.iter().copied().collect();
            instead_of_absent(&placement, GroupId(1), &voters.into(), &reachable)
        };
        let change = instead([1, 2, 3], &[1, 2, 3, 5, 6]).unwrap();
        assert_eq!(change.replicas, [2, 3, 5]);
        assert_eq!(change.why, "member 1 is drained; member 5 instead of member 4, which cannot be reached");
        assert_eq!(instead([1, 2, 3], &[1, 2, 3, 4, 5]), None, "it is there");
        assert_eq!(instead([2, 3, 4], &[2, 3, 5]), None, "it votes, so it is counted on to come back");
        assert_eq!(instead([1, 2, 3], &[1, 2, 3]), None, "nobody else can take it");
    }

    proptest! {
        /// Whatever is drained, it comes to an end, with nothing on drained members and the others even.
        #[test]
        fn changes_come_to_an_end(count in 3_u64..10, groups in 1_u32..16, drained in prop::collection::btree_set(1_u64..10, 0..5)) {
            let mut placement = settled(count, groups, 3);
            placement.drained = drained.into_iter().filter(|member| *member <= count).collect();
            prop_assume!(count as usize - placement.drained.len() >= 3);
            let mut changes = 0;
            while let Some(change) = next_change(&placement, &all(count)) {
                let distinct: BTreeSet<_> = change.replicas.iter().collect();
                prop_assert_eq!(distinct.len(), 3);
                placement.groups.get_mut(&change.group).unwrap().replicas = change.replicas;
                changes += 1;
                prop_assert!(changes < 200, "it goes on and on");
            }
            let carried: Vec<usize> = placement.usable().map(|member| placement.shares_of(member).0).collect();
            prop_assert!(placement.drained.iter().all(|member| placement.shares_of(*member).0 == 0));
            let (most, least) = (carried.iter().max().unwrap(), carried.iter().min().unwrap());
            prop_assert!(most - least <= 1, "{carried:?}");
        }
    }
}
