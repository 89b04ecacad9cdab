//! The changes of the partition map that are carried out, step by step: what of them is replicated.
//!
//! ```text
//!   begin ──► reserve a move number ──► Reserved ──decide──► Decided ──finish──► next step, or the end of the change
//!                      ▲                    └──give up──► GivenUp ──finish──┐
//!                      └────────────────── a new number ◄──────────────────┘
//! ```
//! There is one change at a time, and one move of it. `decide` is the only point at which a range changes hands (rule R18): it
//! and `give up` are first-wins. Knows nothing of who drives a move, or of the groups that take part.

use std::collections::VecDeque;

use holdfast_locktable::{codec::Digest, ids::MoveNumber};
use holdfast_partitioner::{
    MapEpoch, PartitionMap,
    change::{Change, Request, Step},
};
use serde::{Deserialize, Serialize};

use super::command::{MetaOutcome, MetaRejection};

/// Changes that are remembered after their end; the oldest make room.
pub const PAST_CHANGES: usize = 100;
/// How often the move of one step is tried before its change ends as failed.
pub const MOST_TRIES: u32 = 5;

/// A change to begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewChange {
    /// What was asked for.
    pub request: Request,
    /// What it comes to.
    pub change: Change,
    /// Who asked.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// Milliseconds since 1970 by the leader's wall clock; for display only.
    pub at_ms: u64,
}

/// A change that is being carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay {
    /// Its number, from 1.
    pub number: u64,
    /// What was asked for, and what it comes to.
    pub new: NewChange,
    /// Steps that are done.
    pub done: u32,
    /// Moves of the present step that were given up.
    pub tries: u32,
    /// Why an operator wants it to stop.
    pub stop: Option<String>,
    /// The move of the present step.
    pub moving: Option<Moving>,
}

/// A move that is being carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moving {
    /// Its number.
    pub number: MoveNumber,
    /// How far it is.
    pub stage: Stage,
}

/// How far a move is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The range belongs to its source, which may have sealed it.
    Reserved,
    /// The range belongs to its destination, which may not have activated it yet.
    Decided {
        /// Fingerprint of the import.
        digest: Digest,
        /// The map's epoch with it.
        epoch: MapEpoch,
    },
    /// The range stays with its source, which may not have unsealed it yet.
    GivenUp {
        /// Why.
        why: String,
    },
}

/// A change that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Its number.
    pub number: u64,
    /// What was asked for, and what it came to.
    pub new: NewChange,
    /// Steps that were done.
    pub done: u32,
    /// Milliseconds since 1970 when it ended; for display only.
    pub ended_ms: u64,
    /// How it ended.
    pub end: ChangeEnd,
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeEnd {
    /// All its steps are done.
    Done,
    /// An operator stopped it; the steps that were done stay done.
    Stopped {
        /// Why.
        why: String,
    },
    /// A step could not be done; those before it stay done.
    Failed {
        /// Why.
        why: String,
    },
}

/// The change under way, and those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// How many there ever were: the number of the newest.
    begun: u64,
    /// The highest move number ever given.
    moves: MoveNumber,
    under_way: Option<Box<UnderWay>>,
    past: VecDeque<Past>,
}

impl UnderWay {
    /// The step to be done next.
    #[must_use]
    pub fn step(&self) -> Option<&Step> {
        self.new.change.steps.get(self.done as usize)
    }
}

impl Changes {
    /// The change that is being carried out.
    #[must_use]
    pub fn under_way(&self) -> Option<&UnderWay> {
        self.under_way.as_deref()
    }

    /// Those that are over, oldest first.
    #[must_use]
    pub const fn past(&self) -> &VecDeque<Past> {
        &self.past
    }

    /// The move, if there is one, of which it is not decided yet in which group its range is.
    #[must_use]
    pub fn undecided(&self) -> Option<MoveNumber> {
        let moving = self.under_way.as_ref()?.moving.as_ref()?;
        matches!(moving.stage, Stage::Reserved).then_some(moving.number)
    }

    /// What of this goes on in a restored cluster: no move is under way in its groups, so a decided one is done, and the rest
    /// of its change is not.
    #[must_use]
    pub(super) fn restored(&self, at_ms: u64) -> Self {
        let mut after = self.clone();
        let Some(here) = after.under_way.as_mut() else { return after };
        here.stop = Some("the cluster was restored".to_owned());
        match here.moving.take().map(|moving| moving.stage) {
            Some(Stage::Decided { .. }) => after.step_done(at_ms),
            Some(Stage::Reserved | Stage::GivenUp { .. }) | None => {
                after.end(ChangeEnd::Stopped { why: "the cluster was restored".to_owned() }, at_ms);
            }
        }
        after
    }

    /// The highest number that a move was ever given.
    #[must_use]
    pub const fn moves(&self) -> MoveNumber {
        self.moves
    }

    pub(super) fn begin(&mut self, map: &PartitionMap, new: NewChange) -> Result<MetaOutcome, MetaRejection> {
        if let Some(other) = self.under_way() {
            return Err(MetaRejection::ChangeUnderWay { change: other.number });
        }
        if new.change.base != map.epoch() {
            return Err(MetaRejection::OtherMap { planned: new.change.base, found: map.epoch() });
        }
        if let Err(error) = new.change.apply(map) {
            return Err(MetaRejection::StepRefused { why: error.to_string() });
        }
        self.begun += 1;
        let number = self.begun;
        self.under_way =
            Some(Box::new(UnderWay { number, new, done: 0, tries: 0, stop: None, moving: None }));
        Ok(MetaOutcome::ChangeBegun { change: number })
    }

    /// Gives the present step a move number, or answers the one it has.
    pub(super) fn reserve(&mut self, change: u64, step: u32) -> Result<MetaOutcome, MetaRejection> {
        let moves = self.moves;
        let here = self.at_step(change, step)?;
        if let Some(moving) = &here.moving {
            return Ok(MetaOutcome::Reserved { move_number: moving.number });
        }
        if here.stop.is_some() || here.step().is_none_or(|step| step.moved.is_none()) {
            return Err(MetaRejection::OtherStep);
        }
        let number = MoveNumber(moves.0 + 1);
        here.moving = Some(Moving { number, stage: Stage::Reserved });
        self.moves = number;
        Ok(MetaOutcome::Reserved { move_number: number })
    }

    /// Hands the range to its destination; answers the map with that.
    pub(super) fn decide(
        &mut self,
        map: &PartitionMap,
        number: MoveNumber,
        digest: Digest,
    ) -> Result<Option<PartitionMap>, MetaRejection> {
        let here = self.of_move(number)?;
        let step = here.step().ok_or(MetaRejection::OtherStep)?.clone();
        let moving = here.moving.as_mut().ok_or(MetaRejection::OtherStep)?;
        match &moving.stage {
            Stage::Decided { .. } => Ok(None),
            Stage::GivenUp { why } => Err(MetaRejection::MoveGivenUp { why: why.clone() }),
            Stage::Reserved => {
                let after =
                    step.apply(map).map_err(|error| MetaRejection::StepRefused { why: error.to_string() })?;
                moving.stage = Stage::Decided { digest, epoch: after.epoch() };
                Ok(Some(after))
            }
        }
    }

    pub(super) fn give_up(&mut self, number: MoveNumber, why: &str) -> Result<MetaOutcome, MetaRejection> {
        let here = self.of_move(number)?;
        let moving = here.moving.as_mut().ok_or(MetaRejection::OtherStep)?;
        match &moving.stage {
            Stage::GivenUp { .. } => Ok(MetaOutcome::Done),
            Stage::Decided { epoch, .. } => Err(MetaRejection::MoveDecided { epoch: *epoch }),
            Stage::Reserved => {
                moving.stage = Stage::GivenUp { why: why.to_owned() };
                here.tries += 1;
                Ok(MetaOutcome::Done)
            }
        }
    }

    /// All groups that took part in the move know how it ended.
    pub(super) fn finish(&mut self, number: MoveNumber, at_ms: u64) -> Result<MetaOutcome, MetaRejection> {
        let here = self.of_move(number)?;
        match here.moving.take().map(|moving| moving.stage) {
            Some(Stage::Decided { .. }) => self.step_done(at_ms),
            Some(Stage::GivenUp { why }) => {
                let failed = here.tries >= MOST_TRIES;
                let stop = here.stop.clone().map(|why| ChangeEnd::Stopped { why });
                if let Some(end) = stop.or_else(|| failed.then_some(ChangeEnd::Failed { why })) {
                    self.end(end, at_ms);
                }
            }
            undecided @ (Some(Stage::Reserved) | None) => {
                here.moving = undecided.map(|stage| Moving { number, stage });
                return Err(MetaRejection::OtherStep);
            }
        }
        Ok(MetaOutcome::Done)
    }

    /// Does a step that moves nothing; answers the map with it.
    pub(super) fn take_step(
        &mut self,
        map: &PartitionMap,
        change: u64,
        step: u32,
        at_ms: u64,
    ) -> Result<PartitionMap, MetaRejection> {
        let here = self.at_step(change, step)?;
        let next = here.step().filter(|step| step.moved.is_none()).ok_or(MetaRejection::OtherStep)?;
        let after = next.apply(map).map_err(|error| MetaRejection::StepRefused { why: error.to_string() })?;
        self.step_done(at_ms);
        Ok(after)
    }

    /// Stops a change: at once where nothing moves, else as soon as its move is over.
    pub(super) fn stop(&mut self, change: u64, why: &str, at_ms: u64) -> Result<MetaOutcome, MetaRejection> {
        let here = self.under_way.as_mut().filter(|here| here.number == change);
        let here = here.ok_or(MetaRejection::NoSuchChange { change })?;
        here.stop = Some(why.to_owned());
        if here.moving.is_none() {
            self.end(ChangeEnd::Stopped { why: why.to_owned() }, at_ms);
        }
        Ok(MetaOutcome::Done)
    }

    fn step_done(&mut self, at_ms: u64) {
        let Some(here) = self.under_way.as_mut() else { return };
        here.done += 1;
        here.tries = 0;
        let stop = here.stop.clone().map(|why| ChangeEnd::Stopped { why });
        let all = here.step().is_none().then_some(ChangeEnd::Done);
        if let Some(end) = all.or(stop) {
            self.end(end, at_ms);
        }
    }

    fn end(&mut self, end: ChangeEnd, ended_ms: u64) {
        let Some(over) = self.under_way.take() else { return };
        let UnderWay { number, new, done, .. } = *over;
        while self.past.len() >= PAST_CHANGES {
            self.past.pop_front();
        }
        self.past.push_back(Past { number, new, done, ended_ms, end });
    }

    fn at_step(&mut self, change: u64, step: u32) -> Result<&mut UnderWay, MetaRejection> {
        let here = self.under_way.as_mut().filter(|here| here.number == change);
        let here = here.ok_or(MetaRejection::NoSuchChange { change })?;
        if here.done == step { Ok(here) } else { Err(MetaRejection::OtherStep) }
    }

    fn of_move(&mut self, number: MoveNumber) -> Result<&mut UnderWay, MetaRejection> {
        let here = self.under_way.as_deref_mut();
        here.filter(|here| here.moving.as_ref().is_some_and(|moving| moving.number == number))
            .ok_or(MetaRejection::OtherStep)
    }
}

#[cfg(test)]
mod tests;
