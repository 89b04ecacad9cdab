//! The verbs that change the partition map, and look at how that goes.

use holdfast_partitioner::{
    GroupId, Part, Range,
    change::{Change, Moved, Request},
};

use super::{
    Answer, ApiError, Endpoint, ErrorCode,
    sessions::check_reason,
    types::{ChangeEndView, ChangeView, ChangesView, MovingView, PlanView, StepView},
};
use crate::{
    group::{
        call::{GroupAnswer, GroupCall},
        moves::{MoveAnswer, MoveCall, RangeCount},
    },
    meta::{
        changes::{ChangeEnd, Moving, NewChange, Past, Stage, UnderWay},
        group::{ChangesNow, MetaAnswer, MetaCall},
    },
};

impl Endpoint {
    /// What a change of the partition map comes to: what moves, and how much there is in it. Nothing is changed.
    pub async fn plan_change(&self, request: Request) -> Answer<PlanView> {
        let call = MetaCall::Change { request, actor: String::new(), reason: String::new(), dry_run: true };
        self.planned(self.meta_call(call).await?).await
    }

    /// Begins a change of the partition map, which goes on by itself; recorded in the audit log. Holders, queues and waiting
    /// calls stay what they are.
    pub async fn change_partitions(
        &self,
        request: Request,
        reason: String,
        actor: String,
    ) -> Answer<PlanView> {
        check_reason(&reason)?;
        let target = words(&request);
        let begin = || async {
            let (actor, reason) = (actor.clone(), reason.clone());
            self.meta_call(MetaCall::Change { request, actor, reason, dry_run: false }).await
        };
        let begun = self.audited("change_partitions", &target, &reason, &actor, begin).await?;
        self.planned(begun).await
    }

    /// Stops a change where it is; what it has moved stays moved. Recorded in the audit log.
    pub async fn stop_change(&self, change: u64, reason: String, actor: String) -> Answer<()> {
        check_reason(&reason)?;
        let target = format!("change {change}");
        let stop = || async {
            self.meta_call(MetaCall::StopChange { change, reason: reason.clone() }).await.map(drop)
        };
        self.audited("stop_change", &target, &reason, &actor, stop).await
    }

    /// The changes of the partition map, under way and over.
    pub async fn partition_changes(&self) -> Answer<ChangesView> {
        match self.meta_call(MetaCall::Changes).await? {
            MetaAnswer::Changes(now) => {
                let ChangesNow { under_way, past, .. } = *now;
                Ok(ChangesView {
                    under_way: under_way.as_ref().map(under_way_view),
                    past: past.iter().map(past_view).collect(),
                })
            }
            _ => Err(ApiError::no_leader(GroupId::META)),
        }
    }

    async fn planned(&self, answer: MetaAnswer) -> Answer<PlanView> {
        let MetaAnswer::Planned { change, number } = answer else {
            return Err(ApiError::no_leader(GroupId::META));
        };
        Ok(self.plan_view(*change, number).await)
    }

    /// A change for people, with what is in each range.
    pub(super) async fn plan_view(&self, change: Change, number: Option<u64>) -> PlanView {
        let Change { prefix, base, steps } = change;
        let moves = steps.iter().filter_map(|step| step.moved.as_ref());
        let steps = futures::future::join_all(moves.map(|moved| self.step_view(moved))).await;
        PlanView { number, prefix, map_epoch: base, steps }
    }

    async fn step_view(&self, moved: &Moved) -> StepView {
        let count = MoveCall::Count { range: moved.range.clone() };
        let count = match self.parts.router.call(moved.from, GroupCall::Move(count)).await {
            Ok(GroupAnswer::Move(MoveAnswer::Count(count))) => Some(count),
            Ok(_) | Err(_) => None,
        };
        let RangeCount { held, waiting, sessions } = count.unwrap_or_default();
        StepView {
            from: moved.from,
            to: moved.to,
            range: range_words(&moved.range),
            counted: count.is_some(),
            held,
            waiting,
            sessions,
        }
    }
}

/// Refuses a number that no group can have.
///
/// # Errors
/// `InvalidArgument` for the meta group.
pub fn lock_group(group: u32) -> Answer<GroupId> {
    match group {
        0 => Err(ApiError::new(
            ErrorCode::InvalidArgument,
            "group 0 is the meta group and holds no locks; lock groups are numbered from 1",
        )),
        group => Ok(GroupId(group)),
    }
}

fn view(number: u64, new: &NewChange, done: u32) -> ChangeView {
    ChangeView {
        number,
        what: words(&new.request),
        prefix: new.change.prefix.clone(),
        actor: new.actor.clone(),
        reason: new.reason.clone(),
        begun_ms: new.at_ms,
        steps: new.change.steps.len() as u32,
        done,
        moving: None,
        stopping: None,
        end: None,
    }
}

fn under_way_view(change: &UnderWay) -> ChangeView {
    let moved = change.step().and_then(|step| step.moved.as_ref());
    let moving = change.moving.as_ref().zip(moved).map(|(Moving { number, stage }, moved)| MovingView {
        number: number.0,
        from: moved.from,
        to: moved.to,
        range: range_words(&moved.range),
        stage: match stage {
            Stage::Reserved => "copying",
            Stage::Decided { .. } => "handing_over",
            Stage::GivenUp { .. } => "taking_back",
        }
        .to_owned(),
        given_up_before: change.tries,
    });
    let stopping = change.stop.clone();
    ChangeView { moving, stopping, ..view(change.number, &change.new, change.done) }
}

fn past_view(past: &Past) -> ChangeView {
    let (how, why) = match &past.end {
        ChangeEnd::Done => ("done", None),
        ChangeEnd::Stopped { why } => ("stopped", Some(why.clone())),
        ChangeEnd::Failed { why } => ("failed", Some(why.clone())),
    };
    let end = ChangeEndView { at_ms: past.ended_ms, how: how.to_owned(), why };
    ChangeView { end: Some(end), ..view(past.number, &past.new, past.done) }
}

/// A request in words.
pub(crate) fn words(request: &Request) -> String {
    let listed = |groups: &std::collections::BTreeSet<GroupId>| {
        groups.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    match request {
        Request::Split { prefix, into, depth, strategy } => {
            format!("split {prefix:?} into groups {} by {} at depth {depth}", listed(into), strategy.name)
        }
        Request::Move { prefix, to } => format!("move {prefix:?} to group {to}"),
        Request::Merge { prefix, to: Some(to) } => format!("merge {prefix:?} into group {to}"),
        Request::Merge { prefix, to: None } => format!("merge {prefix:?} into the next shorter prefix"),
        Request::Pin { prefix, to: Some(to) } => format!("pin {prefix:?} to group {to}"),
        Request::Pin { prefix, to: None } => format!("pin {prefix:?} where it is"),
        Request::Unpin { prefix } => format!("unpin {prefix:?}"),
        Request::Isolate { name, to } => format!("isolate {name:?} in group {to}"),
        Request::Spread { prefix, over } => format!("spread {prefix:?} over groups {}", listed(over)),
    }
}

/// A range in words.
fn range_words(range: &Range) -> String {
    let below = match range.prefix() {
        "" => "all names".to_owned(),
        prefix => format!("{prefix:?}"),
    };
    let part = match range.part() {
        Part::All => String::new(),
        Part::Slots { slots, owned, .. } => format!(", {} of {slots} slots", owned.iter().count()),
        Part::Keys { from, to: Some(to), .. } => format!(", keys from {from:?} to {to:?}"),
        Part::Keys { from, to: None, .. } => format!(", keys from {from:?} on"),
    };
    match range.excluded() {
        [] => format!("{below}{part}"),
        excluded => {
            format!("{below}{part}, but for {} longer prefixes with rules of their own", excluded.len())
        }
    }
}
