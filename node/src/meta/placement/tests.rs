//! Where groups are put, and the life of a change of that.

use proptest::prelude::*;

use super::*;

fn members(count: u64) -> BTreeSet<MemberId> {
    (1..=count).collect()
}

fn groups(count: u32) -> Vec<GroupId> {
    (1..=count).map(GroupId).collect()
}

fn begun(count: u64, group_count: u32) -> Placement {
    let mut placement = Placement::spread(&members(count), &groups(group_count), 3);
    for group in groups(group_count) {
        let replicas = placement.groups[&group].replicas.iter().copied().collect();
        placement.settle(group, &replicas, 0).unwrap();
    }
    placement
}

/// Has a command applied as the meta group has it.
fn apply(placement: &mut Placement, command: PlaceCommand) -> Result<Placed, PlaceRefusal> {
    let mut whole = Some(placement.clone());
    let placed = Placement::apply(&mut whole, command);
    *placement = whole.unwrap();
    placed
}

#[test]
fn six_members_carry_two_groups_apart_and_four_twice() {
    let placement = Placement::spread(&members(6), &groups(4), 3);
    let replicas: Vec<_> = placement.groups.values().map(|place| place.replicas.clone()).collect();
    assert_eq!(replicas, [vec![1, 2, 3], vec![4, 5, 6], vec![2, 3, 1], vec![5, 6, 4]]);
    assert_eq!(placement.carried_by(2).collect::<Vec<_>>(), [GroupId(1), GroupId(3)]);
}

#[test]
fn members_that_leave_carry_a_group_until_it_has_settled_elsewhere() {
    let mut placement = begun(6, 1);
    placement.set_replicas(GroupId(1), vec![2, 3, 4], "asked").unwrap();
    assert_eq!(placement.groups[&GroupId(1)].carriers().collect::<Vec<_>>(), [2, 3, 4, 1]);
    let early = placement.settle(GroupId(1), &BTreeSet::from([1, 2, 3]), 0);
    assert_eq!(early, Err(PlaceRefusal::OtherReplicas { group: GroupId(1) }));
    // A change of mind brings nobody back twice, and lets nobody go who may be in the group.
    placement.set_replicas(GroupId(1), vec![1, 2, 5], "changed").unwrap();
    assert_eq!(placement.groups[&GroupId(1)].leaving, BTreeSet::from([3, 4]));
    placement.settle(GroupId(1), &BTreeSet::from([1, 2, 5]), 0).unwrap();
    assert_eq!(placement.carried_by(3).count(), 0);
    assert!(placement.groups[&GroupId(1)].settled());
}

#[test]
fn what_was_read_before_a_change_settles_nothing_after_it() {
    let mut placement = begun(6, 1);
    let set = |replicas: Vec<MemberId>, planned| PlaceCommand::SetReplicas {
        group: GroupId(1),
        replicas,
        why: "asked".to_owned(),
        planned,
    };
    let settle =
        |since| PlaceCommand::Settle { group: GroupId(1), members: BTreeSet::from([1, 2, 3]), since };
    apply(&mut placement, set(vec![2, 3, 4], 0)).unwrap();
    apply(&mut placement, set(vec![1, 2, 3], 1)).unwrap();
    let version = placement.version;
    assert_eq!(apply(&mut placement, settle(0)), Err(PlaceRefusal::OtherReplicas { group: GroupId(1) }));
    assert_eq!(placement.version, version, "what is refused changes nothing");
    apply(&mut placement, settle(version)).unwrap();
    assert_eq!(apply(&mut placement, PlaceCommand::Begin(Placement::default())), Err(PlaceRefusal::Exists));
}

#[test]
fn a_fresh_group_changes_nothing_before_it_has_begun() {
    let mut placement = begun(6, 1);
    assert_eq!(
        placement.add_groups(2, &members(6), "more", 7),
        Ok(Placed::GroupsAdded { groups: vec![GroupId(2), GroupId(3)] })
    );
    assert_eq!(placement.groups[&GroupId(2)].founders, [4, 5, 6]);
    let refused = placement.set_replicas(GroupId(2), vec![1, 2, 3], "");
    assert_eq!(refused, Err(PlaceRefusal::GroupFresh { group: GroupId(2) }));
    assert!(
        placement.add_groups(40, &members(6), "", 8).is_err()
            && placement.add_groups(0, &members(6), "", 9).is_err()
    );
}

#[test]
fn new_groups_come_to_members_that_can_be_reached_and_to_others_only_where_those_are_too_few() {
    let mut placement = begun(6, 1);
    placement.add_groups(1, &BTreeSet::from([1, 2, 4, 6]), "more", 1).unwrap();
    assert_eq!(placement.groups[&GroupId(2)].founders, [4, 6, 1]);
    placement.add_groups(1, &BTreeSet::from([5, 6]), "more", 2).unwrap();
    let founders = &placement.groups[&GroupId(3)].founders;
    assert_eq!((founders.len(), &founders[..2]), (3, &[5, 6][..]), "the one that is missing leads last");
    placement.drain(5).unwrap();
    let refused = placement.add_groups(1, &BTreeSet::from([5, 6]), "more", 3).unwrap_err();
    assert_eq!(refused, PlaceRefusal::TooFewMembers { found: 1, replicas: 3 });
    assert!(refused.to_string().contains("majority"), "{refused}");
}

#[test]
fn a_change_that_was_planned_by_an_older_placement_is_refused() {
    let mut placement = begun(6, 1);
    let set = |planned| PlaceCommand::SetReplicas {
        group: GroupId(1),
        replicas: vec![2, 3, 4],
        why: "asked".to_owned(),
        planned,
    };
    apply(&mut placement, PlaceCommand::Drain { member: 4 }).unwrap();
    assert_eq!(apply(&mut placement, set(0)), Err(PlaceRefusal::Outdated { planned: 0, now: 1 }));
    assert!(placement.groups[&GroupId(1)].settled());
    apply(&mut placement, set(1)).unwrap();
}

#[test]
fn a_request_for_groups_that_is_repeated_adds_nothing_again() {
    let mut placement = begun(6, 1);
    let first = placement.add_groups(1, &members(6), "more", 7);
    assert_eq!(placement.add_groups(1, &members(6), "more", 7), first);
    assert_eq!(placement.groups.len(), 2);
    for request in 8..30 {
        placement.add_groups(1, &members(6), "more", request).unwrap();
    }
    assert_eq!(placement.added.len(), REQUESTS);
}

#[test]
fn a_drain_that_leaves_too_few_members_is_refused_in_words() {
    let mut placement = begun(4, 2);
    placement.drain(2).unwrap();
    let refused = placement.drain(1).unwrap_err();
    assert_eq!(refused, PlaceRefusal::TooFewLeft { member: 1, left: 2, replicas: 3 });
    assert!(refused.to_string().contains("3 replicas"), "{refused}");
    placement.undrain(2).unwrap();
    placement.drain(1).unwrap();
    assert!(!placement.choose(&members(4)).contains(&1));
    assert_eq!(placement.drain(9), Err(PlaceRefusal::NoSuchMember { member: 9 }));
}

#[test]
fn replicas_are_known_members_each_once() {
    let mut placement = begun(6, 1);
    for bad in [vec![], vec![1, 1, 2], vec![1, 2, 7]] {
        let refused = placement.set_replicas(GroupId(1), bad, "");
        assert_eq!(refused, Err(PlaceRefusal::BadReplicas { group: GroupId(1) }));
    }
    let unknown = placement.set_replicas(GroupId(5), vec![1, 2, 3], "");
    assert_eq!(unknown, Err(PlaceRefusal::NoSuchGroup { group: GroupId(5) }));
}

proptest! {
    #[test]
    fn groups_lie_on_distinct_members_and_evenly(count in 1_u64..12, number in 1_u32..32, replicas in 1_u16..6) {
        let replicas = replicas.min(count as u16);
        let placement = Placement::spread(&members(count), &groups(number), replicas);
        for place in placement.groups.values() {
            let distinct: BTreeSet<_> = place.replicas.iter().collect();
            prop_assert_eq!(distinct.len(), usize::from(replicas));
        }
        let carried: Vec<usize> = members(count).iter().map(|member| placement.shares_of(*member).0).collect();
        let (most, least) = (carried.iter().max().unwrap(), carried.iter().min().unwrap());
        prop_assert!(most - least <= 1, "{carried:?}");
    }

    /// Whatever is asked in whatever order: who may still be in a group carries it.
    #[test]
    fn nobody_who_may_be_in_a_group_stops_it(asked in prop::collection::vec(prop::sample::subsequence((1_u64..=7).collect::<Vec<_>>(), 3), 1..12)) {
        let mut placement = begun(7, 1);
        let mut may_be_in: BTreeSet<MemberId> = placement.groups[&GroupId(1)].replicas.iter().copied().collect();
        for (at, replicas) in asked.into_iter().enumerate() {
            placement.set_replicas(GroupId(1), replicas.clone(), "").unwrap();
            may_be_in.extend(replicas.iter().copied());
            if at % 3 == 2 {
                may_be_in = replicas.iter().copied().collect();
                placement.settle(GroupId(1), &may_be_in, 0).unwrap();
            }
            let carriers: BTreeSet<MemberId> = placement.groups[&GroupId(1)].carriers().collect();
            prop_assert_eq!(&carriers, &may_be_in);
        }
    }
}
