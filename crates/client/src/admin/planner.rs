//! The planner: what it measured and would do, and when it acts.

use holdfast_proto::v1::{self, admin_client::AdminClient, change_partitions_request::Change};

use super::{
    Admin, MAX_ANSWER_BYTES,
    partition_types::PartitionRequest,
    planner_types::{
        GroupLoad, NameLoad, PlannerEdit, PlannerLook, PlannerPolicy, PlannerProposal, PlannerState,
        PrefixLoad,
    },
};
use crate::error::Error;

impl Admin {
    /// When the planner acts, what it measured, and what it would do.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn planner(&self) -> Result<PlannerState, Error> {
        ask!(self, AdminClient, planner, v1::PlannerRequest {}).map(Into::into)
    }

    /// Changes when the planner acts; what is not given stays as it is. Answers what holds since. `reason` and `actor` go
    /// into the audit log.
    ///
    /// # Errors
    /// The policy would contradict itself, as the member answers otherwise, or none did.
    pub async fn edit_planner(
        &self,
        edit: PlannerEdit,
        reason: &str,
        actor: &str,
    ) -> Result<PlannerState, Error> {
        let request = v1::EditPlannerRequest {
            mode: edit.mode,
            hot_entries_per_s: edit.hot_entries_per_s,
            hot_queue_ms: edit.hot_queue_ms,
            group_entries_per_s: edit.group_entries_per_s,
            quiet_entries_per_s: edit.quiet_entries_per_s,
            isolate_percent: edit.isolate_percent,
            gain_percent: edit.gain_percent,
            hold_ms: edit.hold_ms,
            quiet_ms: edit.quiet_ms,
            cool_down_ms: edit.cool_down_ms,
            moves_per_hour: edit.moves_per_hour,
            veto: edit.veto,
            allow: edit.allow,
            reason: reason.to_owned(),
            actor: actor.to_owned(),
        };
        ask!(self, AdminClient, edit_planner, request).map(Into::into)
    }
}

impl From<v1::PlannerState> for PlannerState {
    fn from(state: v1::PlannerState) -> Self {
        Self { policy: state.policy.unwrap_or_default().into(), look: state.look.map(Into::into) }
    }
}

impl From<v1::PlannerPolicy> for PlannerPolicy {
    fn from(policy: v1::PlannerPolicy) -> Self {
        Self {
            mode: policy.mode,
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

impl From<v1::PlannerLook> for PlannerLook {
    fn from(look: v1::PlannerLook) -> Self {
        Self {
            ago_ms: look.ago_ms,
            map_epoch: look.map_epoch,
            groups: look.groups.into_iter().map(Into::into).collect(),
            hottest: look.hottest.into_iter().map(Into::into).collect(),
            proposal: look.proposal.and_then(proposal),
            wait: look.wait,
            notes: look.notes,
        }
    }
}

impl From<v1::GroupLoad> for GroupLoad {
    fn from(load: v1::GroupLoad) -> Self {
        let v1::GroupLoad { group, entries_per_s, queue_ms, electing, retired } = load;
        Self { group, entries_per_s, queue_ms, electing, retired }
    }
}

impl From<v1::PrefixLoad> for PrefixLoad {
    fn from(load: v1::PrefixLoad) -> Self {
        let v1::PrefixLoad { prefix, group, entries_per_s, queue_ms, waiters, names } = load;
        let names = names.into_iter().map(Into::into).collect();
        Self { prefix, group, entries_per_s, queue_ms, waiters, names }
    }
}

impl From<v1::NameLoad> for NameLoad {
    fn from(load: v1::NameLoad) -> Self {
        let v1::NameLoad { name, entries_per_s, waiters } = load;
        Self { name, entries_per_s, waiters }
    }
}

/// `None` for a change that this version does not know.
fn proposal(proposal: v1::PlannerProposal) -> Option<PlannerProposal> {
    Some(PlannerProposal {
        change: request(proposal.request?.change?),
        what: proposal.what,
        why: proposal.why,
        plan: proposal.plan?.into(),
    })
}

fn request(change: Change) -> PartitionRequest {
    match change {
        Change::Split(v1::SplitPrefix { prefix, into, depth, strategy, params }) => PartitionRequest::Split {
            prefix,
            into,
            depth: u16::try_from(depth).unwrap_or(u16::MAX),
            strategy,
            params: params.into_iter().collect(),
        },
        Change::Move(v1::MovePrefix { prefix, to }) => PartitionRequest::Move { prefix, to },
        Change::Merge(v1::PrefixToGroup { prefix, to }) => PartitionRequest::Merge { prefix, to },
        Change::Pin(v1::PrefixToGroup { prefix, to }) => PartitionRequest::Pin { prefix, to },
        Change::Unpin(prefix) => PartitionRequest::Unpin { prefix },
        Change::Isolate(v1::IsolateName { name, to }) => PartitionRequest::Isolate { name, to },
        Change::Spread(v1::SpreadPrefix { prefix, over }) => PartitionRequest::Spread { prefix, over },
    }
}
