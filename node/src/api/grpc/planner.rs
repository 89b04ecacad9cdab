//! The planner as messages, both ways. Bounds as in [`super::input`]; decides nothing.

use holdfast_partitioner::{
    GroupId,
    change::Request,
    load::{GroupLoad, NameLoad, PrefixLoad},
    planner::{Mode, Policy, PolicyEdit},
};
use holdfast_proto::v1::{self, change_partitions_request::Change};

use crate::endpoint::{
    ApiError,
    types::planner::{LookView, PlannerView, ProposalView},
};

/// What is to be changed of the policy.
pub(super) fn edit(request: v1::EditPlannerRequest) -> Result<PolicyEdit, ApiError> {
    Ok(PolicyEdit {
        mode: request.mode.as_deref().map(mode).transpose()?,
        hot_entries_per_s: request.hot_entries_per_s,
        hot_queue_ms: request.hot_queue_ms,
        group_entries_per_s: request.group_entries_per_s,
        quiet_entries_per_s: request.quiet_entries_per_s,
        isolate_percent: request.isolate_percent,
        gain_percent: request.gain_percent,
        hold_ms: request.hold_ms,
        quiet_ms: request.quiet_ms,
        cool_down_ms: request.cool_down_ms,
        moves_per_hour: request.moves_per_hour,
        veto: request.veto.into_iter().collect(),
        allow: request.allow.into_iter().collect(),
    })
}

fn mode(text: &str) -> Result<Mode, ApiError> {
    let found = Mode::ALL.into_iter().find(|mode| mode.as_str() == text);
    found.ok_or_else(|| ApiError::invalid(format!("mode is {text:?}; it must be off, suggest or auto")))
}

impl From<PlannerView> for v1::PlannerState {
    fn from(planner: PlannerView) -> Self {
        Self { policy: Some(policy(planner.policy)), look: planner.look.map(Into::into) }
    }
}

fn policy(policy: Policy) -> v1::PlannerPolicy {
    v1::PlannerPolicy {
        mode: policy.mode.as_str().to_owned(),
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
        vetoes: policy.vetoes.into_iter().collect(),
    }
}

impl From<LookView> for v1::PlannerLook {
    fn from(look: LookView) -> Self {
        Self {
            ago_ms: look.ago_ms,
            map_epoch: look.map_epoch.0,
            groups: look.groups.into_iter().map(group_load).collect(),
            hottest: look.hottest.into_iter().map(prefix_load).collect(),
            proposal: look.proposal.map(Into::into),
            wait: look.wait,
            notes: look.notes,
        }
    }
}

fn group_load((group, load): (GroupId, GroupLoad)) -> v1::GroupLoad {
    let GroupLoad { entries_per_s, queue_ms, electing, retired } = load;
    v1::GroupLoad { group: group.0, entries_per_s, queue_ms, electing, retired }
}

fn prefix_load(load: PrefixLoad) -> v1::PrefixLoad {
    v1::PrefixLoad {
        prefix: load.prefix,
        group: load.group.0,
        entries_per_s: load.entries_per_s,
        queue_ms: load.queue_ms,
        waiters: load.waiters,
        names: load.names.into_iter().map(name_load).collect(),
    }
}

fn name_load(load: NameLoad) -> v1::NameLoad {
    let NameLoad { name, entries_per_s, waiters } = load;
    v1::NameLoad { name, entries_per_s, waiters }
}

impl From<ProposalView> for v1::PlannerProposal {
    fn from(proposal: ProposalView) -> Self {
        let request = v1::ChangePartitionsRequest {
            change: Some(change(proposal.request)),
            ..v1::ChangePartitionsRequest::default()
        };
        let plan = Some(proposal.plan.into());
        Self { request: Some(request), what: proposal.what, why: proposal.why, plan }
    }
}

/// A request as the message that would ask for it.
fn change(request: Request) -> Change {
    let numbers =
        |groups: std::collections::BTreeSet<GroupId>| groups.into_iter().map(|group| group.0).collect();
    let maybe = |to: Option<GroupId>| to.map(|group| group.0);
    match request {
        Request::Split { prefix, into, depth, strategy } => Change::Split(v1::SplitPrefix {
            prefix,
            into: numbers(into),
            depth: depth.into(),
            strategy: strategy.name,
            params: strategy.params.into_iter().collect(),
        }),
        Request::Move { prefix, to } => Change::Move(v1::MovePrefix { prefix, to: to.0 }),
        Request::Merge { prefix, to } => Change::Merge(v1::PrefixToGroup { prefix, to: maybe(to) }),
        Request::Pin { prefix, to } => Change::Pin(v1::PrefixToGroup { prefix, to: maybe(to) }),
        Request::Unpin { prefix } => Change::Unpin(prefix),
        Request::Isolate { name, to } => Change::Isolate(v1::IsolateName { name, to: to.0 }),
        Request::Spread { prefix, over } => Change::Spread(v1::SpreadPrefix { prefix, over: numbers(over) }),
    }
}
