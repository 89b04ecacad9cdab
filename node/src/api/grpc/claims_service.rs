//! The verbs of claims. Each is one call of the endpoint.

use std::future::Future;

use holdfast_locktable::{
    ids::{Revision, SessionId, Token},
    name::Name,
};
use holdfast_proto::v1;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{input, output, status::status};
use crate::endpoint::{
    ApiError, Endpoint,
    types::claims::{
        ClaimDetail, ClaimLine, ClaimMember, ClaimPage, JoinRequest, MemberView, PartitionOwner,
    },
};

/// Serves `holdfast.v1.Claims`.
#[derive(Clone, Debug)]
pub(super) struct ClaimsService {
    endpoint: Endpoint,
    stopping: CancellationToken,
}

impl ClaimsService {
    pub(super) const fn new(endpoint: Endpoint, stopping: CancellationToken) -> Self {
        Self { endpoint, stopping }
    }

    async fn joined(&self, request: v1::JoinClaimRequest) -> Result<v1::ClaimMembership, ApiError> {
        let (name, session) = of(&request.name, request.session)?;
        let join = JoinRequest {
            name,
            session,
            partitions: request.partitions,
            weight: if request.weight == 0 { 1 } else { request.weight },
            metadata: input::metadata(request.metadata)?,
        };
        self.endpoint.join_claim(join).await.map(Into::into)
    }

    async fn left(&self, request: v1::ClaimMemberRequest) -> Result<v1::LeaveClaimResponse, ApiError> {
        let (name, session) = of(&request.name, request.session)?;
        let left = self.endpoint.leave_claim(name, session).await?;
        Ok(v1::LeaveClaimResponse { left })
    }

    async fn drained(&self, request: v1::ClaimMemberRequest) -> Result<v1::DrainClaimResponse, ApiError> {
        let (name, session) = of(&request.name, request.session)?;
        self.endpoint.drain_claim(name, session).await?;
        Ok(v1::DrainClaimResponse {})
    }

    async fn gave_back(&self, request: v1::GiveBackRequest) -> Result<v1::ClaimMembership, ApiError> {
        let (name, session) = of(&request.name, request.session)?;
        let mut partitions: Vec<(u32, Token)> = Vec::with_capacity(request.partitions.len());
        for given in request.partitions {
            partitions.push((given.partition, input::token(given.token)?));
        }
        self.endpoint.give_back(name, session, partitions).await.map(Into::into)
    }

    async fn awaited(&self, request: v1::AwaitClaimRequest) -> Result<v1::ClaimMembership, ApiError> {
        let (name, session) = of(&request.name, request.session)?;
        let seen = request.seen.map(Revision);
        self.endpoint.await_claim(name, session, seen, request.wait_ms).await.map(Into::into)
    }

    async fn listed(&self, request: v1::ListClaimsRequest) -> Result<v1::ListClaimsResponse, ApiError> {
        let prefix = input::prefix(request.prefix)?;
        let limit = input::page_limit(request.limit)?;
        let cursor = input::cursor(request.cursor)?;
        self.endpoint.claims(&prefix, limit, cursor.as_deref()).await.map(Into::into)
    }

    async fn shown(&self, request: v1::GetClaimRequest) -> Result<v1::ClaimDetail, ApiError> {
        self.endpoint.claim(&input::claim(&request.name)?).await.map(Into::into)
    }

    /// A call that may wait long. A member that stops gives it up, so that its client goes elsewhere.
    async fn waiting<T>(
        &self,
        call: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<Response<T>, Status> {
        tokio::select! {
            biased;
            answer = call => answer.map(Response::new).map_err(status),
            () = self.stopping.cancelled() => Err(Status::unavailable("the member is stopping")),
        }
    }
}

fn of(name: &str, session: u64) -> Result<(Name, SessionId), ApiError> {
    Ok((input::claim(name)?, input::session(session)?))
}

fn answer<T>(answer: Result<T, ApiError>) -> Result<Response<T>, Status> {
    answer.map(Response::new).map_err(status)
}

#[tonic::async_trait]
impl v1::claims_server::Claims for ClaimsService {
    async fn join(
        &self,
        request: Request<v1::JoinClaimRequest>,
    ) -> Result<Response<v1::ClaimMembership>, Status> {
        answer(self.joined(request.into_inner()).await)
    }

    async fn leave(
        &self,
        request: Request<v1::ClaimMemberRequest>,
    ) -> Result<Response<v1::LeaveClaimResponse>, Status> {
        answer(self.left(request.into_inner()).await)
    }

    async fn drain(
        &self,
        request: Request<v1::ClaimMemberRequest>,
    ) -> Result<Response<v1::DrainClaimResponse>, Status> {
        answer(self.drained(request.into_inner()).await)
    }

    async fn give_back(
        &self,
        request: Request<v1::GiveBackRequest>,
    ) -> Result<Response<v1::ClaimMembership>, Status> {
        answer(self.gave_back(request.into_inner()).await)
    }

    async fn r#await(
        &self,
        request: Request<v1::AwaitClaimRequest>,
    ) -> Result<Response<v1::ClaimMembership>, Status> {
        self.waiting(self.awaited(request.into_inner())).await
    }

    async fn list_claims(
        &self,
        request: Request<v1::ListClaimsRequest>,
    ) -> Result<Response<v1::ListClaimsResponse>, Status> {
        answer(self.listed(request.into_inner()).await)
    }

    async fn get_claim(
        &self,
        request: Request<v1::GetClaimRequest>,
    ) -> Result<Response<v1::ClaimDetail>, Status> {
        answer(self.shown(request.into_inner()).await)
    }
}

impl From<MemberView> for v1::ClaimMembership {
    fn from(member: MemberView) -> Self {
        let membership = member.membership;
        let stakes = membership.stakes.into_iter().map(|stake| v1::Stake {
            partition: stake.partition,
            token: stake.token.0,
            revoking: stake.revoking,
        });
        Self {
            group: member.group.0,
            revision: membership.revision.0,
            partitions: membership.partitions,
            weight: membership.weight,
            draining: membership.draining,
            stakes: stakes.collect(),
        }
    }
}

impl From<ClaimLine> for v1::ClaimView {
    fn from(claim: ClaimLine) -> Self {
        Self {
            name: claim.name,
            group: claim.group.0,
            partitions: claim.partitions,
            members: claim.members,
            owned: claim.owned,
            revoking: claim.revoking,
        }
    }
}

impl From<ClaimPage> for v1::ListClaimsResponse {
    fn from(page: ClaimPage) -> Self {
        Self {
            claims: output::all(page.claims),
            next_cursor: page.next_cursor,
            unavailable_groups: output::groups(page.unavailable_groups),
        }
    }
}

impl From<ClaimDetail> for v1::ClaimDetail {
    fn from(detail: ClaimDetail) -> Self {
        let member = |member: ClaimMember| v1::ClaimMember {
            session: member.session.get(),
            weight: member.weight,
            draining: member.draining,
            owned: member.owned,
            joined_ms: member.joined_ms,
            metadata: output::map(&member.metadata),
        };
        let owner = |owner: PartitionOwner| v1::PartitionOwner {
            partition: owner.partition,
            session: owner.session.get(),
            token: owner.token.0,
            revoking: owner.revoking,
        };
        Self {
            claim: Some(detail.line.into()),
            members: detail.members.into_iter().map(member).collect(),
            owners: detail.owners.into_iter().map(owner).collect(),
        }
    }
}
