//! `/v1/partitions/plan` and `…/policy`: what the planner measured and would do, and when it acts.

use std::collections::BTreeSet;

use actix_web::{HttpRequest, HttpResponse, web::Data};
use holdfast_partitioner::{
    GroupId,
    load::{GroupLoad, NameLoad, PrefixLoad},
    planner::{Mode, Policy, PolicyEdit},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changes::{PlanAnswer, WantedJson};
use crate::{
    api::http::{
        api::{Api, actor, to_the_end},
        fields::{GroupNumber, Reason},
        input::{JsonBody, NoArgs, QueryArgs},
        problem::Problem,
    },
    endpoint::types::planner::{LookView, PlannerView, ProposalView},
};

/// When the planner acts, and what it last saw.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlannerAnswer {
    policy: PolicyJson,
    /// `null` where its leader is new.
    look: Option<LookJson>,
}

/// `off`: nothing is planned. `suggest`: proposals are shown. `auto`: they are carried out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModeJson {
    Off,
    Suggest,
    Auto,
}

/// When the planner acts. Rates are log entries in one second.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyJson {
    mode: ModeJson,
    /// A prefix is hot in a group from so many on.
    hot_entries_per_s: u64,
    /// Or with half of its group's, and a quarter of those, where entries wait so long in the commit queue.
    hot_queue_ms: u64,
    /// A group is overloaded from so many on.
    group_entries_per_s: u64,
    /// A prefix with a rule of its own is quiet up to so many.
    quiet_entries_per_s: u64,
    /// A name with more than this share of a hot prefix is brought to a group by itself.
    isolate_percent: u64,
    /// A change leaves every group it touches at least so much below what the relieved one has.
    gain_percent: u64,
    /// How long a prefix must be hot, or a group overloaded.
    hold_ms: u64,
    /// How long a prefix must be quiet before its rule goes.
    quiet_ms: u64,
    /// From the start of a move until the next change.
    cool_down_ms: u64,
    moves_per_hour: u32,
    /// Prefixes whose names the planner never moves.
    vetoes: BTreeSet<String>,
}

/// One look at the load.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LookJson {
    ago_ms: u64,
    map_epoch: u64,
    groups: Vec<GroupLoadJson>,
    /// The prefixes with most entries, heaviest first.
    hottest: Vec<PrefixLoadJson>,
    proposal: Option<ProposalJson>,
    /// What keeps it from proposing anything at all.
    wait: Option<String>,
    /// What it considered and left, worst first, with the reasons.
    notes: Vec<String>,
}

/// What a group has to do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupLoadJson {
    group: GroupNumber,
    entries_per_s: u64,
    /// From an entry's proposal until it was applied, on average.
    queue_ms: u64,
    /// Whether it has no leader, or none that answered.
    electing: bool,
    /// Whether it takes nothing any more.
    retired: bool,
}

/// What the names below a prefix cost a group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrefixLoadJson {
    prefix: String,
    group: GroupNumber,
    entries_per_s: u64,
    queue_ms: u64,
    waiters: u64,
    /// Its heaviest names, as far as they were counted.
    names: Vec<NameLoadJson>,
}

/// What one name costs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NameLoadJson {
    name: String,
    entries_per_s: u64,
    waiters: u64,
}

/// A change that the planner proposes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProposalJson {
    /// As `POST /v1/partitions/change` takes it.
    change: WantedJson,
    /// The same in words.
    what: String,
    why: String,
    plan: PlanAnswer,
}

/// Changes when the planner acts; what is not given stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyBody {
    mode: Option<ModeJson>,
    hot_entries_per_s: Option<u64>,
    hot_queue_ms: Option<u64>,
    group_entries_per_s: Option<u64>,
    quiet_entries_per_s: Option<u64>,
    isolate_percent: Option<u64>,
    gain_percent: Option<u64>,
    hold_ms: Option<u64>,
    quiet_ms: Option<u64>,
    cool_down_ms: Option<u64>,
    moves_per_hour: Option<u32>,
    /// Prefixes to veto from now on; the empty one vetoes everything.
    #[serde(default)]
    veto: BTreeSet<String>,
    /// Prefixes whose veto is lifted.
    #[serde(default)]
    allow: BTreeSet<String>,
    /// Why, for the audit log.
    reason: Reason,
}

impl PolicyBody {
    fn edit(self) -> (PolicyEdit, String) {
        let edit = PolicyEdit {
            mode: self.mode.map(Mode::from),
            hot_entries_per_s: self.hot_entries_per_s,
            hot_queue_ms: self.hot_queue_ms,
            group_entries_per_s: self.group_entries_per_s,
            quiet_entries_per_s: self.quiet_entries_per_s,
            isolate_percent: self.isolate_percent,
            gain_percent: self.gain_percent,
            hold_ms: self.hold_ms,
            quiet_ms: self.quiet_ms,
            cool_down_ms: self.cool_down_ms,
            moves_per_hour: self.moves_per_hour,
            veto: self.veto,
            allow: self.allow,
        };
        (edit, self.reason.0)
    }
}

impl From<ModeJson> for Mode {
    fn from(mode: ModeJson) -> Self {
        match mode {
            ModeJson::Off => Self::Off,
            ModeJson::Suggest => Self::Suggest,
            ModeJson::Auto => Self::Auto,
        }
    }
}

impl From<Mode> for ModeJson {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Off => Self::Off,
            Mode::Suggest => Self::Suggest,
            Mode::Auto => Self::Auto,
        }
    }
}

impl From<PlannerView> for PlannerAnswer {
    fn from(planner: PlannerView) -> Self {
        Self { policy: planner.policy.into(), look: planner.look.map(LookJson::from) }
    }
}

impl From<Policy> for PolicyJson {
    fn from(policy: Policy) -> Self {
        Self {
            mode: policy.mode.into(),
            hot_entries_per_s: policy.hot_entries_per_s,
            hot_queue_ms: policy.hot_queue_ms,
            group_entries_per_s: policy.group_entries_per_s,
            quiet_entries_per_s: policy.quiet_entries_per_s,
            isolate_percent: policy.isolate_percent,
            gain_percent: policy.gain_percent,
            hold_ms: policy.hold_ms,
            quiet_ms: policy.quiet_ms,
            cool_down_ms: policy.cool_down_ms,
            moves_per_hour: policy.moves_per_hour,
            vetoes: policy.vetoes,
        }
    }
}

impl From<LookView> for LookJson {
    fn from(look: LookView) -> Self {
        Self {
            ago_ms: look.ago_ms,
            map_epoch: look.map_epoch.0,
            groups: look.groups.into_iter().map(GroupLoadJson::from).collect(),
            hottest: look.hottest.into_iter().map(PrefixLoadJson::from).collect(),
            proposal: look.proposal.map(ProposalJson::from),
            wait: look.wait,
            notes: look.notes,
        }
    }
}

impl From<(GroupId, GroupLoad)> for GroupLoadJson {
    fn from((group, load): (GroupId, GroupLoad)) -> Self {
        let GroupLoad { entries_per_s, queue_ms, electing, retired } = load;
        Self { group: group.into(), entries_per_s, queue_ms, electing, retired }
    }
}

impl From<PrefixLoad> for PrefixLoadJson {
    fn from(load: PrefixLoad) -> Self {
        Self {
            prefix: load.prefix,
            group: load.group.into(),
            entries_per_s: load.entries_per_s,
            queue_ms: load.queue_ms,
            waiters: load.waiters,
            names: load.names.into_iter().map(NameLoadJson::from).collect(),
        }
    }
}

impl From<NameLoad> for NameLoadJson {
    fn from(load: NameLoad) -> Self {
        Self { name: load.name, entries_per_s: load.entries_per_s, waiters: load.waiters }
    }
}

impl From<ProposalView> for ProposalJson {
    fn from(proposal: ProposalView) -> Self {
        Self {
            change: proposal.request.into(),
            what: proposal.what,
            why: proposal.why,
            plan: proposal.plan.into(),
        }
    }
}

/// Show the planner
///
/// When it acts, what the leaders measured in the last window, and what it would do about that.
#[utoipa::path(get, path = "/v1/partitions/plan", operation_id = "planner", tag = "cluster",
    responses((status = 200, description = "The planner's policy and its last look.", body = PlannerAnswer)))]
pub(crate) async fn show(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(PlannerAnswer::from(api.endpoint.planner().await?)))
}

/// Change when the planner acts
///
/// All of it or nothing: where what would come of it is not valid, the answer is `invalid_argument`, and says all that is wrong.
#[utoipa::path(post, path = "/v1/partitions/policy", operation_id = "edit_planner", tag = "cluster", request_body = PolicyBody,
    responses((status = 200, description = "What holds since.", body = PlannerAnswer)))]
pub(crate) async fn edit(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<PolicyBody>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, actor, (edit, reason)) = (api.endpoint.clone(), actor(&request), body.edit());
    let planner = to_the_end(async move { endpoint.edit_planner(edit, reason, actor).await }).await?;
    Ok(HttpResponse::Ok().json(PlannerAnswer::from(planner)))
}
