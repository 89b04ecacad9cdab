//! Changes of the partition map as messages, both ways. Bounds as in [`super::input`]; decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_partitioner::{GroupId, StrategyRecord, change::Request};
use holdfast_proto::v1;

use super::output::all;
use crate::endpoint::{
    ApiError,
    partitions::lock_group,
    types::{ChangeEndView, ChangeView, ChangesView, MovingView, PlanView, StepView},
};

/// What is asked of the map.
pub(super) fn request(change: Option<v1::change_partitions_request::Change>) -> Result<Request, ApiError> {
    use v1::change_partitions_request::Change;
    let change = change.ok_or_else(|| ApiError::invalid("the request has no change"))?;
    Ok(match change {
        Change::Split(split) => Request::Split {
            prefix: split.prefix,
            into: groups(split.into)?,
            depth: u16::try_from(split.depth)
                .map_err(|_| ApiError::invalid(format!("depth is {}; it must be 1 to 65535", split.depth)))?,
            strategy: StrategyRecord {
                name: split.strategy,
                params: split.params.into_iter().collect::<BTreeMap<_, _>>(),
            },
        },
        Change::Move(moved) => Request::Move { prefix: moved.prefix, to: lock_group(moved.to)? },
        Change::Merge(merge) => {
            Request::Merge { prefix: merge.prefix, to: merge.to.map(lock_group).transpose()? }
        }
        Change::Pin(pin) => Request::Pin { prefix: pin.prefix, to: pin.to.map(lock_group).transpose()? },
        Change::Unpin(prefix) => Request::Unpin { prefix },
        Change::Isolate(isolate) => Request::Isolate { name: isolate.name, to: lock_group(isolate.to)? },
        Change::Spread(spread) => Request::Spread { prefix: spread.prefix, over: groups(spread.over)? },
    })
}

fn groups(numbers: Vec<u32>) -> Result<BTreeSet<GroupId>, ApiError> {
    numbers.into_iter().map(lock_group).collect()
}

impl From<PlanView> for v1::PartitionPlan {
    fn from(plan: PlanView) -> Self {
        Self { number: plan.number, prefix: plan.prefix, map_epoch: plan.map_epoch.0, steps: all(plan.steps) }
    }
}

impl From<StepView> for v1::PartitionStep {
    fn from(step: StepView) -> Self {
        Self {
            from: step.from.0,
            to: step.to.0,
            range: step.range,
            counted: step.counted,
            held: step.held,
            waiting: step.waiting,
            sessions: step.sessions,
        }
    }
}

impl From<ChangesView> for v1::PartitionChangesResponse {
    fn from(changes: ChangesView) -> Self {
        Self { under_way: changes.under_way.map(Into::into), past: all(changes.past) }
    }
}

impl From<ChangeView> for v1::PartitionChange {
    fn from(change: ChangeView) -> Self {
        Self {
            number: change.number,
            what: change.what,
            prefix: change.prefix,
            actor: change.actor,
            reason: change.reason,
            begun_ms: change.begun_ms,
            steps: change.steps,
            done: change.done,
            moving: change.moving.map(Into::into),
            stopping: change.stopping,
            end: change.end.map(Into::into),
        }
    }
}

impl From<MovingView> for v1::MovingRange {
    fn from(moving: MovingView) -> Self {
        Self {
            number: moving.number,
            from: moving.from.0,
            to: moving.to.0,
            range: moving.range,
            stage: moving.stage,
            given_up_before: moving.given_up_before,
        }
    }
}

impl From<ChangeEndView> for v1::PartitionChangeEnd {
    fn from(end: ChangeEndView) -> Self {
        Self { at_ms: end.at_ms, how: end.how, why: end.why }
    }
}
