//! `/v1/partitions/change`, `…/changes` and `…/stop`: changing the partition map.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::{HttpRequest, HttpResponse, web::Data};
use holdfast_partitioner::{GroupId, StrategyRecord, change::Request};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    api::http::{
        api::{Api, actor, to_the_end},
        fields::{GroupNumber, Reason},
        input::{JsonBody, NoArgs, QueryArgs},
        problem::Problem,
    },
    endpoint::{
        ApiError,
        partitions::lock_group,
        types::{ChangeEndView, ChangeView, ChangesView, MovingView, PlanView, StepView},
    },
};

/// Changes the partition map.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeBody {
    change: WantedJson,
    /// Why, for the audit log.
    reason: Reason,
    /// Only say what it comes to.
    #[serde(default)]
    dry_run: bool,
}

/// What is wanted. Groups are lock groups, numbered from 1.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum WantedJson {
    /// Spreads what begins with a prefix over groups.
    Split {
        prefix: String,
        into: Vec<GroupNumber>,
        /// Segments after the prefix that stand together.
        #[serde(default = "one")]
        depth: u16,
        /// `hash`, `rendezvous`, `range`, or one that the member was built with.
        #[serde(default = "hash")]
        strategy: String,
        /// The strategy's own settings.
        #[serde(default)]
        params: BTreeMap<String, String>,
    },
    /// Brings what begins with a prefix to one group.
    Move { prefix: String, to: GroupNumber },
    /// Takes the rule of a prefix out: back to where the next shorter prefix puts its names, or to one group.
    Merge { prefix: String, to: Option<GroupNumber> },
    /// Keeps a prefix in one group until it is unpinned.
    Pin { prefix: String, to: Option<GroupNumber> },
    /// Lifts a pin.
    Unpin { prefix: String },
    /// Brings a single name to a group.
    Isolate { name: String, to: GroupNumber },
    /// Lets a rule's own strategy spread it over these groups.
    Spread { prefix: String, over: Vec<GroupNumber> },
}

const fn one() -> u16 {
    1
}

fn hash() -> String {
    "hash".to_owned()
}

impl WantedJson {
    fn request(self) -> Result<Request, ApiError> {
        let group = |group: GroupNumber| lock_group(group.group().0);
        let maybe = |to: Option<GroupNumber>| to.map(group).transpose();
        Ok(match self {
            Self::Split { prefix, into, depth, strategy, params } => Request::Split {
                prefix,
                into: into.into_iter().map(group).collect::<Result<_, _>>()?,
                depth,
                strategy: StrategyRecord { name: strategy, params },
            },
            Self::Move { prefix, to } => Request::Move { prefix, to: group(to)? },
            Self::Merge { prefix, to } => Request::Merge { prefix, to: maybe(to)? },
            Self::Pin { prefix, to } => Request::Pin { prefix, to: maybe(to)? },
            Self::Unpin { prefix } => Request::Unpin { prefix },
            Self::Isolate { name, to } => Request::Isolate { name, to: group(to)? },
            Self::Spread { prefix, over } => {
                Request::Spread { prefix, over: over.into_iter().map(group).collect::<Result<_, _>>()? }
            }
        })
    }
}

impl From<Request> for WantedJson {
    fn from(request: Request) -> Self {
        let numbers = |groups: BTreeSet<GroupId>| groups.into_iter().map(GroupNumber::from).collect();
        let maybe = |to: Option<GroupId>| to.map(GroupNumber::from);
        match request {
            Request::Split { prefix, into, depth, strategy } => Self::Split {
                prefix,
                into: numbers(into),
                depth,
                strategy: strategy.name,
                params: strategy.params,
            },
            Request::Move { prefix, to } => Self::Move { prefix, to: to.into() },
            Request::Merge { prefix, to } => Self::Merge { prefix, to: maybe(to) },
            Request::Pin { prefix, to } => Self::Pin { prefix, to: maybe(to) },
            Request::Unpin { prefix } => Self::Unpin { prefix },
            Request::Isolate { name, to } => Self::Isolate { name, to: to.into() },
            Request::Spread { prefix, over } => Self::Spread { prefix, over: numbers(over) },
        }
    }
}

/// What a change comes to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanAnswer {
    /// Its number, where it is carried out; `GET /v1/partitions/changes` tells how that goes.
    number: Option<u64>,
    prefix: String,
    /// The map that it was planned for.
    map_epoch: u64,
    /// What moves, in order.
    steps: Vec<StepJson>,
}

impl From<PlanView> for PlanAnswer {
    fn from(plan: PlanView) -> Self {
        Self {
            number: plan.number,
            prefix: plan.prefix,
            map_epoch: plan.map_epoch.0,
            steps: plan.steps.into_iter().map(StepJson::from).collect(),
        }
    }
}

/// A range that moves.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StepJson {
    from: GroupNumber,
    to: GroupNumber,
    /// Which names, in words.
    range: String,
    /// Whether the counts are known.
    counted: bool,
    /// Locks and elections held there now.
    held: u64,
    /// Waiters behind them.
    waiting: u64,
    /// Sessions with either.
    sessions: u64,
}

impl From<StepView> for StepJson {
    fn from(step: StepView) -> Self {
        Self {
            from: step.from.into(),
            to: step.to.into(),
            range: step.range,
            counted: step.counted,
            held: step.held,
            waiting: step.waiting,
            sessions: step.sessions,
        }
    }
}

/// The changes of the partition map.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangesAnswer {
    under_way: Option<ChangeJson>,
    /// Oldest first.
    past: Vec<ChangeJson>,
}

impl From<ChangesView> for ChangesAnswer {
    fn from(changes: ChangesView) -> Self {
        Self {
            under_way: changes.under_way.map(ChangeJson::from),
            past: changes.past.into_iter().map(ChangeJson::from).collect(),
        }
    }
}

/// One change of the partition map.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangeJson {
    number: u64,
    /// What was asked for, in words.
    what: String,
    prefix: String,
    actor: String,
    reason: String,
    /// Milliseconds since 1970 by the leader's wall clock.
    begun_ms: u64,
    steps: u32,
    done: u32,
    moving: Option<MovingJson>,
    /// Why it is being stopped, where it is.
    stopping: Option<String>,
    end: Option<EndJson>,
}

impl From<ChangeView> for ChangeJson {
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
            moving: change.moving.map(MovingJson::from),
            stopping: change.stopping,
            end: change.end.map(EndJson::from),
        }
    }
}

/// A range that moves right now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MovingJson {
    number: u64,
    from: GroupNumber,
    to: GroupNumber,
    range: String,
    /// `copying`, `handing_over` or `taking_back`.
    stage: String,
    /// How many moves of this range were given up before.
    given_up_before: u32,
}

impl From<MovingView> for MovingJson {
    fn from(moving: MovingView) -> Self {
        Self {
            number: moving.number,
            from: moving.from.into(),
            to: moving.to.into(),
            range: moving.range,
            stage: moving.stage,
            given_up_before: moving.given_up_before,
        }
    }
}

/// How a change ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndJson {
    at_ms: u64,
    /// `done`, `stopped` or `failed`; what was done before stays.
    how: String,
    why: Option<String>,
}

impl From<ChangeEndView> for EndJson {
    fn from(end: ChangeEndView) -> Self {
        Self { at_ms: end.at_ms, how: end.how, why: end.why }
    }
}

/// Stops a change of the partition map.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopBody {
    /// The number of the change.
    change: u64,
    /// Why, for the audit log.
    reason: Reason,
}

/// That a change will stop.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StopAnswer {
    /// The number of the change.
    change: u64,
}

/// Change the partition map
///
/// Holders, queues, waiting calls and tokens stay what they are. The change goes on by itself after the answer, one range
/// after the other; the audit log says who asked.
#[utoipa::path(post, path = "/v1/partitions/change", operation_id = "change_partitions", tag = "cluster", request_body = ChangeBody,
    responses((status = 200, description = "What it would come to (`dry_run`).", body = PlanAnswer),
        (status = 202, description = "What it comes to; it is under way.", body = PlanAnswer),
        (status = 409, description = "`changed`: another change is under way, or the map has changed meanwhile.")))]
pub(crate) async fn change(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<ChangeBody>,
) -> Result<HttpResponse, Problem> {
    let wanted = body.change.request()?;
    if body.dry_run {
        return Ok(HttpResponse::Ok().json(PlanAnswer::from(api.endpoint.plan_change(wanted).await?)));
    }
    let (endpoint, actor) = (api.endpoint.clone(), actor(&request));
    let begun =
        to_the_end(async move { endpoint.change_partitions(wanted, body.reason.0, actor).await }).await?;
    Ok(HttpResponse::Accepted().json(PlanAnswer::from(begun)))
}

/// Show the changes of the partition map
#[utoipa::path(get, path = "/v1/partitions/changes", operation_id = "partition_changes", tag = "cluster",
    responses((status = 200, description = "The change under way, and the last ones before it.", body = ChangesAnswer)))]
pub(crate) async fn show(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(ChangesAnswer::from(api.endpoint.partition_changes().await?)))
}

/// Stop a change of the partition map
///
/// What it has moved stays moved. A range that is just changing hands does so first.
#[utoipa::path(post, path = "/v1/partitions/stop", operation_id = "stop_partition_change", tag = "cluster", request_body = StopBody,
    responses((status = 202, description = "It stops.", body = StopAnswer),
        (status = 409, description = "`changed`: it is not under way.")))]
pub(crate) async fn stop(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<StopBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor, number) = (api.endpoint.clone(), actor(&request), body.change);
    to_the_end(async move { endpoint.stop_change(number, body.reason.0, actor).await }).await?;
    Ok(HttpResponse::Accepted().json(StopAnswer { change: number }))
}
