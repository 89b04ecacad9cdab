//! What a change of the map goes through, from its beginning to its end.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use holdfast_partitioner::{
    GroupId, Registry, StrategyRecord,
    change::{Given, Groups, change},
};

use super::*;
use crate::meta::{MetaCommand, MetaTable};

const DIGEST: Digest = Digest::NOTHING;

struct World(MetaTable);

impl World {
    /// Four groups, and a split of `jobs/` over three of them under way.
    fn splitting() -> (Self, UnderWay) {
        let groups: Vec<GroupId> = (1..=4).map(GroupId).collect();
        let map = PartitionMap::initial(&groups).unwrap();
        let mut world = Self(MetaTable::new());
        world.ask(MetaCommand::InitMap { map }).unwrap();
        let request = Request::Split {
            prefix: "jobs/".into(),
            into: BTreeSet::from([GroupId(1), GroupId(2), GroupId(3)]),
            depth: 1,
            strategy: StrategyRecord::hash(64),
        };
        let new = world.plan(request);
        assert!(new.change.moves() >= 2, "{:?}", new.change.steps.len());
        assert_eq!(world.ask(MetaCommand::BeginChange(new)), Ok(MetaOutcome::ChangeBegun { change: 1 }));
        let under_way = world.under_way();
        (world, under_way)
    }

    fn plan(&self, request: Request) -> NewChange {
        let groups = Groups { usable: (1..=4).map(GroupId).collect(), ..Groups::default() };
        let registry = Registry::built_in();
        let map = self.0.map().unwrap();
        let given = Given { map, groups: &groups, registry: &registry, names: &[] };
        let change = change(&given, &request).unwrap();
        NewChange { request, change, actor: "ada".into(), reason: "hot".into(), at_ms: 7 }
    }

    fn ask(&mut self, command: MetaCommand) -> Result<MetaOutcome, MetaRejection> {
        let before = self.0.clone();
        let result = self.0.apply(command).result;
        assert!(result.is_ok() || self.0 == before, "refused, but changed");
        assert_eq!(MetaTable::decode(&self.0.encode().unwrap()).as_ref(), Ok(&self.0));
        result
    }

    fn under_way(&self) -> UnderWay {
        self.0.changes().under_way().unwrap().clone()
    }

    fn epoch(&self) -> MapEpoch {
        self.0.map().unwrap().epoch()
    }

    /// Takes steps that move nothing until the next one moves something; answers that move.
    fn reserve(&mut self) -> MoveNumber {
        loop {
            let here = self.under_way();
            if here.step().unwrap().moved.is_none() {
                self.ask(MetaCommand::TakeStep { change: here.number, step: here.done, at_ms: 8 }).unwrap();
                continue;
            }
            match self.ask(MetaCommand::Reserve { change: here.number, step: here.done }).unwrap() {
                MetaOutcome::Reserved { move_number } => return move_number,
                other => panic!("{other:?}"),
            }
        }
    }

    fn decide(&mut self, move_number: MoveNumber) -> Result<MetaOutcome, MetaRejection> {
        self.ask(MetaCommand::Decide { move_number, digest: DIGEST })
    }

    fn give_up(&mut self, move_number: MoveNumber) -> Result<MetaOutcome, MetaRejection> {
        self.ask(MetaCommand::GiveUp { move_number, why: "late".into() })
    }

    fn finish(&mut self, move_number: MoveNumber) -> Result<MetaOutcome, MetaRejection> {
        self.ask(MetaCommand::FinishMove { move_number, at_ms: 9 })
    }
}

#[test]
fn a_change_ends_with_its_last_step_and_the_map_is_as_planned() {
    let (mut world, split) = World::splitting();
    let planned = split.new.change.apply(world.0.map().unwrap()).unwrap();
    let mut last = MoveNumber::default();
    while world.0.changes().under_way().is_some() {
        let number = world.reserve();
        assert!(number > last, "numbers only grow");
        last = number;
        assert_eq!(world.finish(number), Err(MetaRejection::OtherStep), "nothing is decided");
        let epoch = world.epoch();
        world.decide(number).unwrap();
        assert_eq!(world.epoch(), epoch.next().unwrap());
        world.finish(number).unwrap();
    }
    assert_eq!(world.0.map(), Some(&planned));
    let past = world.0.changes().past().back().unwrap();
    assert_eq!((past.number, &past.end, past.ended_ms), (1, &ChangeEnd::Done, 9));
}

#[test]
fn the_first_of_decision_and_giving_up_counts() {
    let (mut world, _) = World::splitting();
    let number = world.reserve();
    let epoch = world.epoch();
    world.give_up(number).unwrap();
    assert_eq!(world.give_up(number), Ok(MetaOutcome::Done), "told twice");
    assert_eq!(world.decide(number), Err(MetaRejection::MoveGivenUp { why: "late".into() }));
    assert_eq!(world.epoch(), epoch);
    world.finish(number).unwrap();

    let next = world.reserve();
    assert_eq!(next, MoveNumber(number.0 + 1), "a new try is a new number");
    assert_eq!(world.decide(number), Err(MetaRejection::OtherStep), "a late decision of the earlier one");
    world.decide(next).unwrap();
    let decided = world.epoch();
    assert_eq!(world.decide(next), Ok(MetaOutcome::MapSet { epoch: decided }), "told twice");
    assert_eq!(world.epoch(), decided);
    assert_eq!(world.give_up(next), Err(MetaRejection::MoveDecided { epoch: decided }));
}

#[test]
fn a_step_that_is_given_up_again_and_again_fails_its_change() {
    let (mut world, _) = World::splitting();
    for _ in 0..MOST_TRIES {
        let number = world.reserve();
        world.give_up(number).unwrap();
        world.finish(number).unwrap();
    }
    assert_eq!(world.0.changes().under_way(), None);
    assert_eq!(world.0.changes().past()[0].end, ChangeEnd::Failed { why: "late".into() });
    let again = world.plan(world.0.changes().past()[0].new.request.clone());
    assert_eq!(world.ask(MetaCommand::BeginChange(again)), Ok(MetaOutcome::ChangeBegun { change: 2 }));
}

#[test]
fn a_change_is_stopped_at_once_or_behind_its_move() {
    let stop = |change| MetaCommand::StopChange { change, why: "enough".into(), at_ms: 10 };
    let stopped = ChangeEnd::Stopped { why: "enough".into() };

    let (mut world, _) = World::splitting();
    assert_eq!(world.ask(stop(2)), Err(MetaRejection::NoSuchChange { change: 2 }));
    world.ask(stop(1)).unwrap();
    assert_eq!(world.0.changes().past()[0].end, stopped);

    let (mut world, _) = World::splitting();
    let number = world.reserve();
    world.ask(stop(1)).unwrap();
    assert!(world.0.changes().under_way().is_some(), "its move is not over");
    world.decide(number).unwrap();
    world.finish(number).unwrap();
    let past = &world.0.changes().past()[0];
    assert_eq!(past.end, stopped);
    assert!(past.done > 0, "what was done stays");
}

#[test]
fn there_is_one_change_at_a_time_and_for_the_present_map() {
    let (mut world, split) = World::splitting();
    let again = split.new.clone();
    assert_eq!(
        world.ask(MetaCommand::BeginChange(again.clone())),
        Err(MetaRejection::ChangeUnderWay { change: 1 })
    );
    let number = world.reserve();
    world.decide(number).unwrap();
    world.finish(number).unwrap();
    world.ask(MetaCommand::StopChange { change: 1, why: "enough".into(), at_ms: 10 }).unwrap();
    let found = world.epoch();
    let refused = MetaRejection::OtherMap { planned: split.new.change.base, found };
    assert_eq!(world.ask(MetaCommand::BeginChange(again)), Err(refused));
}
