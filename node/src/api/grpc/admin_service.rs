//! The verbs of operators. Each is one call of the endpoint.

use holdfast_partitioner::GroupId;
use holdfast_proto::v1;
use tonic::{Request, Response, Status};

use super::{input, members, output, partitions, placement, planner, snapshots, status::status};
use crate::endpoint::{ApiError, Endpoint, types::ForceRelease};

/// Serves `holdfast.v1.Admin`.
#[derive(Clone, Debug)]
pub(super) struct AdminService {
    endpoint: Endpoint,
}

impl AdminService {
    pub(super) const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    async fn forced(&self, request: v1::ForceReleaseRequest) -> Result<v1::ForceReleaseResponse, ApiError> {
        let request = ForceRelease {
            name: input::name(request.name)?,
            token: input::token(request.token)?,
            reason: request.reason,
            actor: input::actor(request.actor)?,
        };
        let session = self.endpoint.force_release(request).await?;
        Ok(v1::ForceReleaseResponse { session: session.get() })
    }

    async fn ended(&self, request: v1::EndSessionRequest) -> Result<v1::EndSessionResponse, ApiError> {
        let session = input::session(request.session)?;
        let actor = input::actor(request.actor)?;
        self.endpoint.end_session(session, request.reason, actor).await?;
        Ok(v1::EndSessionResponse {})
    }

    async fn changed(&self, request: v1::ChangePartitionsRequest) -> Result<v1::PartitionPlan, ApiError> {
        let change = partitions::request(request.change)?;
        let plan = if request.dry_run {
            self.endpoint.plan_change(change).await?
        } else {
            let actor = input::actor(request.actor)?;
            self.endpoint.change_partitions(change, request.reason, actor).await?
        };
        Ok(plan.into())
    }

    async fn stopped(
        &self,
        request: v1::StopPartitionChangeRequest,
    ) -> Result<v1::StopPartitionChangeResponse, ApiError> {
        let actor = input::actor(request.actor)?;
        self.endpoint.stop_change(request.change, request.reason, actor).await?;
        Ok(v1::StopPartitionChangeResponse {})
    }

    async fn edited(&self, mut request: v1::EditPlannerRequest) -> Result<v1::PlannerState, ApiError> {
        let actor = input::actor(std::mem::take(&mut request.actor))?;
        let reason = std::mem::take(&mut request.reason);
        Ok(self.endpoint.edit_planner(planner::edit(request)?, reason, actor).await?.into())
    }
}

fn answer<T>(answer: Result<T, ApiError>) -> Result<Response<T>, Status> {
    answer.map(Response::new).map_err(status)
}

#[tonic::async_trait]
impl v1::admin_server::Admin for AdminService {
    async fn force_release(
        &self,
        request: Request<v1::ForceReleaseRequest>,
    ) -> Result<Response<v1::ForceReleaseResponse>, Status> {
        answer(self.forced(request.into_inner()).await)
    }

    async fn list_sessions(
        &self,
        _request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        answer(self.endpoint.sessions().await.map(Into::into))
    }

    async fn get_session(
        &self,
        request: Request<v1::GetSessionRequest>,
    ) -> Result<Response<v1::SessionInfo>, Status> {
        let session = input::session(request.into_inner().session).map_err(status)?;
        answer(self.endpoint.session(session).await.map(Into::into))
    }

    async fn end_session(
        &self,
        request: Request<v1::EndSessionRequest>,
    ) -> Result<Response<v1::EndSessionResponse>, Status> {
        answer(self.ended(request.into_inner()).await)
    }

    async fn status(
        &self,
        _request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        answer(self.endpoint.status().await.map(Into::into))
    }

    async fn members(
        &self,
        _request: Request<v1::MembersRequest>,
    ) -> Result<Response<v1::MembersResponse>, Status> {
        answer(
            self.endpoint
                .members()
                .await
                .map(|members| v1::MembersResponse { members: output::all(members) }),
        )
    }

    async fn groups(
        &self,
        _request: Request<v1::GroupsRequest>,
    ) -> Result<Response<v1::GroupsResponse>, Status> {
        answer(self.endpoint.groups().await.map(|groups| v1::GroupsResponse { groups: output::all(groups) }))
    }

    async fn partitions(
        &self,
        _request: Request<v1::PartitionsRequest>,
    ) -> Result<Response<v1::PartitionMap>, Status> {
        answer(self.endpoint.partitions().await.map(|map| output::partition_map(&map)))
    }

    async fn change_partitions(
        &self,
        request: Request<v1::ChangePartitionsRequest>,
    ) -> Result<Response<v1::PartitionPlan>, Status> {
        answer(self.changed(request.into_inner()).await)
    }

    async fn stop_partition_change(
        &self,
        request: Request<v1::StopPartitionChangeRequest>,
    ) -> Result<Response<v1::StopPartitionChangeResponse>, Status> {
        answer(self.stopped(request.into_inner()).await)
    }

    async fn partition_changes(
        &self,
        _request: Request<v1::PartitionChangesRequest>,
    ) -> Result<Response<v1::PartitionChangesResponse>, Status> {
        answer(self.endpoint.partition_changes().await.map(Into::into))
    }

    async fn planner(
        &self,
        _request: Request<v1::PlannerRequest>,
    ) -> Result<Response<v1::PlannerState>, Status> {
        answer(self.endpoint.planner().await.map(Into::into))
    }

    async fn edit_planner(
        &self,
        request: Request<v1::EditPlannerRequest>,
    ) -> Result<Response<v1::PlannerState>, Status> {
        answer(self.edited(request.into_inner()).await)
    }

    async fn snapshots(
        &self,
        _request: Request<v1::SnapshotsRequest>,
    ) -> Result<Response<v1::SnapshotsResponse>, Status> {
        let snapshots = self.endpoint.snapshots().await;
        answer(snapshots.map(|snapshots| v1::SnapshotsResponse { snapshots: output::all(snapshots) }))
    }

    async fn take_snapshot(
        &self,
        request: Request<v1::TakeSnapshotRequest>,
    ) -> Result<Response<v1::SnapshotsResponse>, Status> {
        let request = request.into_inner();
        let actor = input::actor(request.actor).map_err(status)?;
        let taken = self.endpoint.take_snapshot(request.group.map(GroupId), actor).await;
        answer(taken.map(|snapshots| v1::SnapshotsResponse { snapshots: output::all(snapshots) }))
    }

    async fn get_snapshot(
        &self,
        request: Request<v1::SnapshotRequest>,
    ) -> Result<Response<v1::SnapshotDetail>, Status> {
        answer(snapshots::show(&self.endpoint, request.into_inner()).await)
    }

    async fn verify_snapshot(
        &self,
        request: Request<v1::SnapshotRequest>,
    ) -> Result<Response<v1::SnapshotDetail>, Status> {
        answer(snapshots::verify(&self.endpoint, request.into_inner()).await)
    }

    async fn delete_snapshot(
        &self,
        request: Request<v1::DeleteSnapshotRequest>,
    ) -> Result<Response<v1::DeleteSnapshotResponse>, Status> {
        answer(snapshots::delete(&self.endpoint, request.into_inner()).await)
    }

    async fn snapshot_sets(
        &self,
        _request: Request<v1::SnapshotSetsRequest>,
    ) -> Result<Response<v1::SnapshotSetsResponse>, Status> {
        answer(snapshots::sets(&self.endpoint).await)
    }

    async fn take_snapshot_set(
        &self,
        request: Request<v1::TakeSnapshotSetRequest>,
    ) -> Result<Response<v1::SnapshotSet>, Status> {
        answer(snapshots::take_set(&self.endpoint, request.into_inner()).await)
    }

    async fn verify_snapshot_set(
        &self,
        request: Request<v1::VerifySnapshotSetRequest>,
    ) -> Result<Response<v1::SnapshotSetDetail>, Status> {
        answer(snapshots::verify_set(&self.endpoint, request.into_inner()).await)
    }

    async fn audit(&self, request: Request<v1::AuditRequest>) -> Result<Response<v1::AuditResponse>, Status> {
        let limit = input::page_limit(request.into_inner().limit).map_err(status)?;
        let entries = self.endpoint.audit(limit).await;
        answer(entries.map(|entries| v1::AuditResponse { entries: output::all(entries) }))
    }
    async fn group(&self, request: Request<v1::GroupRequest>) -> Result<Response<v1::GroupDetail>, Status> {
        answer(placement::show(&self.endpoint, request.into_inner()).await)
    }

    async fn add_groups(
        &self,
        request: Request<v1::AddGroupsRequest>,
    ) -> Result<Response<v1::AddGroupsResponse>, Status> {
        answer(placement::add(&self.endpoint, request.into_inner()).await)
    }

    async fn transfer_leader(
        &self,
        request: Request<v1::TransferLeaderRequest>,
    ) -> Result<Response<v1::TransferLeaderResponse>, Status> {
        answer(placement::transfer(&self.endpoint, request.into_inner()).await)
    }

    async fn drain_member(
        &self,
        request: Request<v1::DrainMemberRequest>,
    ) -> Result<Response<v1::DrainMemberResponse>, Status> {
        answer(placement::drain(&self.endpoint, request.into_inner()).await)
    }

    async fn change_members(
        &self,
        request: Request<v1::ChangeMembersRequest>,
    ) -> Result<Response<v1::MemberChange>, Status> {
        answer(members::change(&self.endpoint, request.into_inner()).await)
    }

    async fn cancel_member_change(
        &self,
        request: Request<v1::CancelMemberChangeRequest>,
    ) -> Result<Response<v1::CancelMemberChangeResponse>, Status> {
        answer(members::cancel(&self.endpoint, request.into_inner()).await)
    }

    async fn member_changes(
        &self,
        _request: Request<v1::MemberChangesRequest>,
    ) -> Result<Response<v1::MemberChangesResponse>, Status> {
        answer(members::changes(&self.endpoint).await)
    }
}
