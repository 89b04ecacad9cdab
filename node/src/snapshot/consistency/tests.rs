//! Snapshots taken in the middle of moves, at every point and in every order, against a model that knows where each
//! lock is.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use holdfast_locktable::codec::Digest;
use holdfast_partitioner::{
    Registry,
    change::{Given, Groups, Moved, Request, change},
};
use proptest::prelude::*;

use super::*;
use crate::meta::{
    MetaCommand, MetaOutcome,
    changes::{NewChange, Stage},
};

const GROUPS: [GroupId; 3] = [GroupId(1), GroupId(2), GroupId(3)];

/// A lock group: what it says of itself, and the locks in it.
#[derive(Clone, Debug)]
struct Group {
    shape: GroupShape,
    locks: BTreeSet<String>,
    /// Locks that have come with a move and are not its own yet.
    coming: BTreeSet<String>,
}

/// A cluster in which nothing is acquired or released: every lock is held all the time.
#[derive(Clone, Debug)]
struct World {
    meta: MetaTable,
    groups: BTreeMap<GroupId, Group>,
}

fn locks() -> impl Iterator<Item = String> {
    (0..4).flat_map(|prefix| (0..6).map(move |lock| format!("p{prefix}/{lock}")))
}

impl World {
    fn new() -> Self {
        let mut meta = MetaTable::new();
        let map = PartitionMap::initial(&GROUPS).unwrap();
        meta.apply(MetaCommand::InitMap { map: map.clone() }).result.unwrap();
        let group = |id: GroupId| Group {
            shape: GroupShape { owned: map.ranges_of(id), epoch: map.epoch(), moving: None },
            locks: locks().filter(|lock| map.locate(lock) == id).collect(),
            coming: BTreeSet::new(),
        };
        Self { groups: GROUPS.into_iter().map(|id| (id, group(id))).collect(), meta }
    }

    fn map(&self) -> &PartitionMap {
        self.meta.map().unwrap()
    }

    fn ask(&mut self, command: MetaCommand) -> MetaOutcome {
        self.meta.apply(command).result.unwrap()
    }

    fn at(&mut self, id: GroupId) -> &mut Group {
        self.groups.get_mut(&id).unwrap()
    }

    /// The next step of whatever is under way, or a new change; `choice` decides what is open.
    fn step(&mut self, choice: u8) {
        let Some(under_way) = self.meta.changes().under_way().cloned() else { return self.begin(choice) };
        let (change, step) = (under_way.number, under_way.done);
        let Some(moved) = under_way.step().unwrap().moved.clone() else {
            self.ask(MetaCommand::TakeStep { change, step, at_ms: 1 });
            return;
        };
        match under_way.moving {
            None => {
                self.ask(MetaCommand::Reserve { change, step });
            }
            Some(moving) => self.go_on(moving.number, &moving.stage, &moved, choice),
        }
    }

    fn begin(&mut self, choice: u8) {
        let request =
            Request::Move { prefix: format!("p{}/", choice % 4), to: GROUPS[choice as usize / 4 % 3] };
        let groups = Groups { usable: GROUPS.into(), ..Groups::default() };
        let registry = Registry::built_in();
        let given = Given { map: self.map(), groups: &groups, registry: &registry, names: &[] };
        // It may be there already.
        let Ok(change) = change(&given, &request) else { return };
        let new = NewChange { request, change, actor: "ada".into(), reason: "even".into(), at_ms: 1 };
        // A change without steps is none.
        drop(self.meta.apply(MetaCommand::BeginChange(new)).result);
    }

    fn go_on(&mut self, number: MoveNumber, stage: &Stage, moved: &Moved, choice: u8) {
        let Moved { from, to, range, .. } = moved;
        match stage {
            Stage::Reserved => {
                if self.at(*from).shape.moving.is_none() {
                    self.at(*from).shape.moving = Some(number);
                } else if self.at(*to).shape.moving.is_none() {
                    let coming =
                        self.at(*from).locks.iter().filter(|lock| range.contains(lock)).cloned().collect();
                    let destination = self.at(*to);
                    (destination.shape.moving, destination.coming) = (Some(number), coming);
                } else if choice.is_multiple_of(3) {
                    self.ask(MetaCommand::GiveUp { move_number: number, why: "slow".into() });
                } else {
                    self.ask(MetaCommand::Decide { move_number: number, digest: Digest::NOTHING });
                }
            }
            Stage::Decided { .. } => {
                let (epoch, map) = (self.map().epoch(), self.map().clone());
                if self.at(*to).shape.moving.is_some() {
                    let destination = self.at(*to);
                    destination.shape = GroupShape { owned: map.ranges_of(*to), epoch, moving: None };
                    let coming = std::mem::take(&mut destination.coming);
                    destination.locks.extend(coming);
                } else if self.at(*from).shape.moving.is_some() {
                    let source = self.at(*from);
                    source.shape = GroupShape { owned: map.ranges_of(*from), epoch, moving: None };
                    source.locks.retain(|lock| !range.contains(lock));
                } else {
                    self.ask(MetaCommand::FinishMove { move_number: number, at_ms: 1 });
                }
            }
            Stage::GivenUp { .. } => {
                let open = if choice.is_multiple_of(2) { [*from, *to] } else { [*to, *from] };
                match open.into_iter().find(|id| self.groups[id].shape.moving.is_some()) {
                    Some(id) => {
                        let group = self.at(id);
                        group.shape.moving = None;
                        group.coming.clear();
                    }
                    None => {
                        self.ask(MetaCommand::FinishMove { move_number: number, at_ms: 1 });
                    }
                }
            }
        }
    }
}

/// Snapshots as they were taken, each at its own time.
#[derive(Default)]
struct Captured {
    meta: Option<MetaTable>,
    groups: BTreeMap<GroupId, Group>,
}

impl Captured {
    fn take(&mut self, world: &World, which: usize) {
        match GROUPS.get(which) {
            Some(id) => drop(self.groups.insert(*id, world.groups[id].clone())),
            None => self.meta = Some(world.meta.clone()),
        }
    }

    fn check(&self) -> Result<MapEpoch, Inconsistent> {
        let meta = MetaShape::from(self.meta.as_ref().ok_or(Inconsistent::NoMeta)?);
        check(&meta, &self.groups.iter().map(|(id, group)| (*id, group.shape.clone())).collect())
    }

    /// Every lock is in the group that the map gives it, and in no other.
    fn assert_whole(&self) {
        let map = self.meta.as_ref().unwrap().map().unwrap();
        for lock in locks() {
            let holders: Vec<GroupId> = self
                .groups
                .iter()
                .filter(|(_, group)| group.locks.contains(&lock))
                .map(|(id, _)| *id)
                .collect();
            assert_eq!(holders, [map.locate(&lock)], "{lock}");
        }
    }
}

fn captured_now(world: &World) -> Captured {
    let mut captured = Captured::default();
    (0..=GROUPS.len()).for_each(|which| captured.take(world, which));
    captured
}

/// A world in which a move of `p0/` is reserved.
fn moving() -> (World, MoveNumber, Moved) {
    let mut world = World::new();
    let from = world.map().locate("p0/1");
    let to = GROUPS.iter().position(|id| *id != from).unwrap();
    world.step(u8::try_from(to * 4).unwrap());
    loop {
        let under_way = world.meta.changes().under_way().unwrap().clone();
        if let Some(moving) = under_way.moving.clone() {
            return (world, moving.number, under_way.step().unwrap().moved.clone().unwrap());
        }
        world.step(1);
    }
}

#[test]
fn a_cluster_at_rest_makes_a_set() {
    let world = World::new();
    let captured = captured_now(&world);
    assert_eq!(captured.check(), Ok(MapEpoch::FIRST));
    captured.assert_whole();
}

#[test]
fn no_point_of_a_move_but_its_ends_makes_a_set() {
    let (mut world, number, moved) = moving();
    assert_eq!(captured_now(&world).check(), Err(Inconsistent::Moving { number }));
    while world.meta.changes().under_way().is_some_and(|change| change.moving.is_some()) {
        assert!(captured_now(&world).check().is_err());
        world.step(1);
    }
    let after = captured_now(&world);
    assert!(after.check().unwrap() > MapEpoch::FIRST);
    after.assert_whole();
    assert_eq!(world.map().locate("p0/1"), moved.to);
}

#[test]
fn one_group_before_a_move_and_one_behind_it_make_no_set() {
    let (mut world, _, moved) = moving();
    let before = captured_now(&World::new());
    while world.meta.changes().under_way().is_some() {
        world.step(1);
    }
    let after = captured_now(&world);
    for (old, new) in [(&before, &after), (&after, &before)] {
        for id in [moved.from, moved.to] {
            let mut groups = new.groups.clone();
            groups.insert(id, old.groups[&id].clone());
            let mixed = Captured { meta: new.meta.clone(), groups };
            assert!(matches!(mixed.check(), Err(Inconsistent::Ownership { group, .. }) if group == id));
        }
    }
}

#[test]
fn a_group_that_still_takes_part_in_a_move_is_named() {
    let (mut world, number, moved) = moving();
    world.step(1);
    let quiet = captured_now(&World::new());
    let sealed = Captured { meta: quiet.meta, groups: captured_now(&world).groups };
    assert_eq!(sealed.check(), Err(Inconsistent::TakesPart { group: moved.from, number }));
}

#[test]
fn every_group_of_the_map_is_needed() {
    let mut captured = captured_now(&World::new());
    captured.groups.remove(&GroupId(2));
    let missing = Inconsistent::Missing { group: GroupId(2), epoch: MapEpoch::FIRST };
    assert_eq!(captured.check(), Err(missing));
    let empty = Captured { meta: Some(MetaTable::new()), ..Captured::default() };
    assert_eq!(empty.check(), Err(Inconsistent::NoMap));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Snapshots are taken at any time between the steps of any moves, each group's anew again and again. Whenever the
    /// newest ones are said to make a set, every lock is in exactly one of them.
    #[test]
    fn what_makes_a_set_has_every_lock_once(
        acts in prop::collection::vec((any::<u8>(), prop::option::weighted(0.6, 0..=GROUPS.len())), 1..120)
    ) {
        let (mut world, mut captured) = (World::new(), captured_now(&World::new()));
        for (choice, capture) in acts {
            match capture {
                Some(which) => captured.take(&world, which),
                None => world.step(choice),
            }
            if captured.check().is_ok() {
                captured.assert_whole();
            }
        }
    }
}
