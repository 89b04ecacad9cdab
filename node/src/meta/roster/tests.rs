//! Members that come and go, as the meta group has it.

use holdfast_partitioner::GroupId;
use proptest::prelude::*;

use super::*;

fn record(id: MemberId) -> MemberRecord {
    MemberRecord {
        id,
        http: format!("http://m{id}:1"),
        grpc: format!("http://m{id}:2"),
        peer: format!("m{id}:3"),
    }
}

/// Somewhere that nobody is.
fn elsewhere(id: MemberId) -> MemberRecord {
    MemberRecord { id, http: "http://new:1".into(), grpc: "http://new:2".into(), peer: "new:3".into() }
}

fn disk(number: u64) -> DiskId {
    DiskId::new(number.into())
}

/// A cluster of some members that have all come, each from the disk with its number; every group is on three of them.
#[derive(Clone, Debug, PartialEq)]
struct Cluster {
    roster: Option<Roster>,
    placement: Option<Placement>,
    requests: u64,
}

impl Cluster {
    fn of(count: u64) -> Self {
        let members = (1..=count).collect();
        let mut placement = Placement::spread(&members, &[GroupId(1), GroupId(2)], 3);
        placement.groups.values_mut().for_each(|place| place.founders.clear());
        let mut cluster = Self { roster: None, placement: Some(placement), requests: 0 };
        cluster.apply(RosterCommand::Begin((1..=count).map(record).collect())).unwrap();
        (1..=count).for_each(|member| cluster.meet(member, member).unwrap());
        cluster
    }

    fn apply(&mut self, command: RosterCommand) -> Result<RosterDone, RosterRefusal> {
        let before = self.clone();
        let done = Roster::apply(&mut self.roster, &mut self.placement, command);
        if done.is_err() {
            assert_eq!(*self, before, "what is refused changes nothing");
        }
        done
    }

    fn meet(&mut self, member: MemberId, number: u64) -> Result<(), RosterRefusal> {
        self.apply(RosterCommand::Meet { record: record(member), disk: disk(number) }).map(drop)
    }

    fn ask(&mut self, kind: MemberChangeKind) -> Result<MemberChange, RosterRefusal> {
        self.requests += 1;
        self.ask_as(kind, self.requests)
    }

    fn ask_as(&mut self, kind: MemberChangeKind, request: u64) -> Result<MemberChange, RosterRefusal> {
        let new =
            NewMemberChange { kind, actor: "ada".into(), reason: "test".into(), request, at_ms: 86_400_000 };
        match self.apply(RosterCommand::Change(new))? {
            RosterDone::Begun(change) => Ok(change),
            RosterDone::Set => panic!("a change begins"),
        }
    }

    fn finish(&mut self, change: u64) -> Result<(), RosterRefusal> {
        self.apply(RosterCommand::Finish { change, at_ms: 9 }).map(drop)
    }

    fn cancel(&mut self, change: u64) -> Result<(), RosterRefusal> {
        self.apply(RosterCommand::Cancel { change, why: "enough".into(), at_ms: 9 }).map(drop)
    }

    /// What the placer does with a member that is drained.
    fn give_away(&mut self, member: MemberId) {
        let placement = self.placement.as_mut().unwrap();
        let usable: BTreeSet<MemberId> = placement.usable().collect();
        for group in placement.groups.keys().copied().collect::<Vec<_>>() {
            let to = placement.choose_one(group, &usable);
            let place = placement.groups.get_mut(&group).unwrap();
            if let Some(at) = place.replicas.iter().position(|replica| *replica == member) {
                place.replicas[at] = to.unwrap();
            }
        }
    }

    fn members(&self) -> BTreeSet<MemberId> {
        self.roster.as_ref().unwrap().members().keys().copied().collect()
    }

    fn usable(&self) -> BTreeSet<MemberId> {
        self.placement.as_ref().unwrap().usable().collect()
    }
}

#[test]
fn a_new_member_may_carry_groups_once_it_has_come() {
    let mut cluster = Cluster::of(3);
    let change = cluster.ask(MemberChangeKind::Add(elsewhere(0))).unwrap();
    assert_eq!(change.asked.kind.comes(), Some(4), "the next id is taken");
    assert_eq!((cluster.members(), cluster.usable()), ([1, 2, 3, 4].into(), [1, 2, 3].into()));
    assert_eq!(cluster.finish(change.number), Err(RosterRefusal::NotDone { change: 1 }));
    cluster.meet(4, 44).unwrap();
    assert_eq!(cluster.usable(), [1, 2, 3, 4].into());
    assert_eq!(cluster.cancel(change.number), Err(RosterRefusal::HasCome { member: 4 }));
    cluster.finish(change.number).unwrap();
    assert_eq!(cluster.finish(change.number), Err(RosterRefusal::NoSuchChange { change: 1 }));
}

#[test]
fn a_member_goes_once_it_carries_nothing_and_its_id_never_comes_back() {
    let mut cluster = Cluster::of(4);
    let change = cluster.ask(MemberChangeKind::Remove { member: 2 }).unwrap().number;
    assert_eq!(cluster.usable(), [1, 3, 4].into());
    assert_eq!(cluster.finish(change), Err(RosterRefusal::NotDone { change }));
    cluster.give_away(2);
    cluster.finish(change).unwrap();
    assert_eq!((cluster.members(), cluster.usable()), ([1, 3, 4].into(), [1, 3, 4].into()));
    assert_eq!(cluster.meet(2, 2), Err(RosterRefusal::Removed { member: 2 }));
    let again = cluster.ask(MemberChangeKind::Add(elsewhere(2)));
    assert_eq!(again, Err(RosterRefusal::Removed { member: 2 }));
    let few = cluster.ask(MemberChangeKind::Remove { member: 1 }).unwrap_err();
    assert_eq!(few, RosterRefusal::TooFewLeft { member: 1, left: 2, replicas: 3 });
    assert!(few.to_string().contains("holdfast members add"), "{few}");
}

#[test]
fn a_member_is_replaced_from_the_moment_the_new_one_has_come() {
    let mut cluster = Cluster::of(3);
    let new = MemberRecord { id: 0, ..record(3) };
    let change = cluster.ask(MemberChangeKind::Replace { old: 3, new }).unwrap();
    assert_eq!(change.asked.kind.comes(), Some(4));
    assert_eq!(cluster.usable(), [1, 2, 3].into(), "nothing leaves before the new one is there");
    cluster.meet(4, 44).unwrap();
    assert_eq!(cluster.usable(), [1, 2, 4].into());
    cluster.give_away(3);
    cluster.finish(change.number).unwrap();
    assert_eq!(cluster.members(), [1, 2, 4].into());
}

#[test]
fn a_member_says_itself_where_it_is_reached() {
    let mut cluster = Cluster::of(3);
    let moved = MemberRecord { id: 2, ..elsewhere(0) };
    cluster.apply(RosterCommand::Meet { record: moved.clone(), disk: disk(2) }).unwrap();
    let roster = cluster.roster.unwrap();
    assert_eq!(roster.members()[&2].record, moved);
    assert!(roster.knows(&moved, disk(2)) && !roster.knows(&record(2), disk(2)));
}

#[test]
fn a_disk_that_was_lost_is_refused_with_the_way_out() {
    let mut cluster = Cluster::of(3);
    cluster.meet(2, 2).unwrap();
    let refused = cluster.meet(2, 99).unwrap_err();
    assert_eq!(refused, RosterRefusal::OtherDisk { member: 2, known: disk(2), came: disk(99) });
    let said = refused.to_string();
    assert!(
        said.contains("not the one the cluster knows") && said.contains("holdfast members replace 2"),
        "{said}"
    );
    assert_eq!(cluster.meet(7, 7), Err(RosterRefusal::NotOnRoster { member: 7 }));
}

#[test]
fn there_is_one_change_at_a_time_and_a_repeat_is_the_same_one() {
    let mut cluster = Cluster::of(4);
    let add = || MemberChangeKind::Add(elsewhere(0));
    let first = cluster.ask_as(add(), 7).unwrap();
    assert_eq!(cluster.ask_as(add(), 7).as_ref(), Ok(&first));
    let second = cluster.ask(MemberChangeKind::Remove { member: 1 }).unwrap_err().to_string();
    assert!(second.contains("add member 5, asked for by ada since 1970-01-02T00:00:00Z"), "{second}");
    cluster.cancel(first.number).unwrap();
    assert_eq!(cluster.members(), [1, 2, 3, 4].into());
    assert_eq!(cluster.ask_as(add(), 7).as_ref(), Ok(&first), "also once it is over");
    assert_eq!(cluster.ask(add()).unwrap().asked.kind.comes(), Some(6), "an id is used once");
}

#[test]
fn who_was_to_go_stays_where_the_change_is_stopped() {
    let mut cluster = Cluster::of(4);
    let change = cluster.ask(MemberChangeKind::Remove { member: 2 }).unwrap().number;
    cluster.cancel(change).unwrap();
    assert_eq!((cluster.members(), cluster.usable()), ([1, 2, 3, 4].into(), [1, 2, 3, 4].into()));
    let past: Vec<_> = cluster.roster.as_ref().unwrap().past().cloned().collect();
    assert_eq!(past[0].stopped.as_deref(), Some("enough"));
}

#[test]
fn addresses_and_ids_are_used_once() {
    let mut cluster = Cluster::of(3);
    let taken = cluster.ask(MemberChangeKind::Add(MemberRecord { id: 0, ..record(2) }));
    assert!(matches!(taken, Err(RosterRefusal::AddressInUse { member: 2, .. })), "{taken:?}");
    let exists = cluster.ask(MemberChangeKind::Add(elsewhere(3)));
    assert_eq!(exists, Err(RosterRefusal::Exists { member: 3 }));
    let nobody = cluster.ask(MemberChangeKind::Remove { member: 9 });
    assert_eq!(nobody, Err(RosterRefusal::NoSuchMember { member: 9 }));
    assert_eq!(Cluster { roster: None, ..cluster }.meet(1, 1), Err(RosterRefusal::None));
}

fn command() -> impl Strategy<Value = RosterCommand> {
    let kind = prop_oneof![
        (0_u64..9, 0_u64..9).prop_map(|(id, at)| MemberChangeKind::Add(MemberRecord { id, ..record(at) })),
        (1_u64..9).prop_map(|member| MemberChangeKind::Remove { member }),
        (1_u64..9, 0_u64..9).prop_map(|(old, id)| MemberChangeKind::Replace { old, new: elsewhere(id) }),
    ];
    prop_oneof![
        (1_u64..9, 0_u64..3).prop_map(|(member, lost)| RosterCommand::Meet {
            record: record(member),
            disk: disk(member + lost / 2)
        }),
        (kind, 0_u64..40).prop_map(|(kind, request)| RosterCommand::Change(NewMemberChange {
            kind,
            actor: "a".into(),
            reason: "r".into(),
            request,
            at_ms: 1,
        })),
        (1_u64..12).prop_map(|change| RosterCommand::Finish { change, at_ms: 2 }),
        (1_u64..12).prop_map(|change| RosterCommand::Cancel { change, why: "w".into(), at_ms: 3 }),
    ]
}

proptest! {
    /// Whatever is asked: members that carry something are on the roster, enough may carry groups, and who came stays on its disk.
    #[test]
    fn the_roster_and_the_placement_agree(commands in prop::collection::vec((command(), any::<bool>()), 0..60)) {
        let mut cluster = Cluster::of(3);
        let mut disks: BTreeMap<MemberId, DiskId> = BTreeMap::new();
        for (command, give) in commands {
            drop(cluster.apply(command));
            let goes = cluster.roster.as_ref().unwrap().under_way().and_then(|change| change.asked.kind.goes());
            if let Some(old) = goes.filter(|old| give && !cluster.usable().contains(old)) {
                cluster.give_away(old);
            }
            let (members, usable) = (cluster.members(), cluster.usable());
            prop_assert!(usable.is_subset(&members), "{usable:?} of {members:?}");
            prop_assert!(usable.len() >= 3);
            let carriers = cluster.placement.as_ref().unwrap().groups.values().flat_map(|place| place.carriers());
            prop_assert!(carriers.collect::<BTreeSet<_>>().is_subset(&members));
            for (member, known) in cluster.roster.as_ref().unwrap().members() {
                if let Some(disk) = known.disk {
                    prop_assert_eq!(*disks.entry(*member).or_insert(disk), disk);
                }
            }
        }
    }
}
