//! Changing the partition map, and watching how that goes.

use holdfast_proto::v1::{self, admin_client::AdminClient, change_partitions_request::Change};

use super::{
    Admin, MAX_ANSWER_BYTES,
    partition_types::{
        MovingRange, PartitionChange, PartitionChangeEnd, PartitionChanges, PartitionPlan, PartitionRequest,
        PartitionStep,
    },
};
use crate::error::Error;

impl Admin {
    /// What a change of the partition map comes to. Nothing is changed.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn plan_partitions(&self, request: PartitionRequest) -> Result<PartitionPlan, Error> {
        let (change, dry_run) = (Some(request.into()), true);
        let request = v1::ChangePartitionsRequest { change, dry_run, ..Default::default() };
        ask!(self, AdminClient, change_partitions, request).map(Into::into)
    }

    /// Begins a change of the partition map, which goes on by itself after the answer. Holders, queues and waiting calls stay
    /// what they are. `reason` and `actor` go into the audit log.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn change_partitions(
        &self,
        request: PartitionRequest,
        reason: &str,
        actor: &str,
    ) -> Result<PartitionPlan, Error> {
        let request = v1::ChangePartitionsRequest {
            change: Some(request.into()),
            reason: reason.to_owned(),
            actor: actor.to_owned(),
            dry_run: false,
        };
        ask!(self, AdminClient, change_partitions, request).map(Into::into)
    }

    /// Stops a change of the partition map where it is; what it has moved stays moved.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn stop_partition_change(&self, change: u64, reason: &str, actor: &str) -> Result<(), Error> {
        let (reason, actor) = (reason.to_owned(), actor.to_owned());
        let request = v1::StopPartitionChangeRequest { change, reason, actor };
        ask!(self, AdminClient, stop_partition_change, request).map(drop)
    }

    /// The changes of the partition map, under way and over.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn partition_changes(&self) -> Result<PartitionChanges, Error> {
        ask!(self, AdminClient, partition_changes, v1::PartitionChangesRequest {}).map(Into::into)
    }
}

impl From<PartitionRequest> for Change {
    fn from(request: PartitionRequest) -> Self {
        match request {
            PartitionRequest::Split { prefix, into, depth, strategy, params } => {
                let (depth, params) = (u32::from(depth), params.into_iter().collect());
                Self::Split(v1::SplitPrefix { prefix, into, depth, strategy, params })
            }
            PartitionRequest::Move { prefix, to } => Self::Move(v1::MovePrefix { prefix, to }),
            PartitionRequest::Merge { prefix, to } => Self::Merge(v1::PrefixToGroup { prefix, to }),
            PartitionRequest::Pin { prefix, to } => Self::Pin(v1::PrefixToGroup { prefix, to }),
            PartitionRequest::Unpin { prefix } => Self::Unpin(prefix),
            PartitionRequest::Isolate { name, to } => Self::Isolate(v1::IsolateName { name, to }),
            PartitionRequest::Spread { prefix, over } => Self::Spread(v1::SpreadPrefix { prefix, over }),
        }
    }
}

impl From<v1::PartitionPlan> for PartitionPlan {
    fn from(plan: v1::PartitionPlan) -> Self {
        let steps = plan.steps.into_iter().map(Into::into).collect();
        Self { number: plan.number, prefix: plan.prefix, map_epoch: plan.map_epoch, steps }
    }
}

impl From<v1::PartitionStep> for PartitionStep {
    fn from(step: v1::PartitionStep) -> Self {
        let v1::PartitionStep { from, to, range, counted, held, waiting, sessions } = step;
        Self { from, to, range, counted, held, waiting, sessions }
    }
}

impl From<v1::PartitionChangesResponse> for PartitionChanges {
    fn from(changes: v1::PartitionChangesResponse) -> Self {
        Self {
            under_way: changes.under_way.map(Into::into),
            past: changes.past.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<v1::PartitionChange> for PartitionChange {
    fn from(change: v1::PartitionChange) -> Self {
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

impl From<v1::MovingRange> for MovingRange {
    fn from(moving: v1::MovingRange) -> Self {
        let v1::MovingRange { number, from, to, range, stage, given_up_before } = moving;
        Self { number, from, to, range, stage, given_up_before }
    }
}

impl From<v1::PartitionChangeEnd> for PartitionChangeEnd {
    fn from(end: v1::PartitionChangeEnd) -> Self {
        Self { at_ms: end.at_ms, how: end.how, why: end.why }
    }
}
