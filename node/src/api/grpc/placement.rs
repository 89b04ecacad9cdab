//! The verbs about which members carry and lead which groups, as messages. Bounds as in [`super::input`]; decides nothing.

use holdfast_partitioner::GroupId;
use holdfast_proto::v1;

use super::input;
use crate::endpoint::{ApiError, Endpoint, partitions::lock_group};

pub(super) async fn show(
    endpoint: &Endpoint,
    request: v1::GroupRequest,
) -> Result<v1::GroupDetail, ApiError> {
    endpoint.group(GroupId(request.group)).await.map(Into::into)
}

pub(super) async fn add(
    endpoint: &Endpoint,
    request: v1::AddGroupsRequest,
) -> Result<v1::AddGroupsResponse, ApiError> {
    let actor = input::actor(request.actor)?;
    // More than there can be in any case are refused with the words for too many.
    let count = u16::try_from(request.count).unwrap_or(u16::MAX);
    let groups = endpoint.add_groups(count, request.request, request.reason, actor).await?;
    Ok(v1::AddGroupsResponse { groups: groups.into_iter().map(|group| group.0).collect() })
}

pub(super) async fn transfer(
    endpoint: &Endpoint,
    request: v1::TransferLeaderRequest,
) -> Result<v1::TransferLeaderResponse, ApiError> {
    let (group, actor) = (lock_group(request.group)?, input::actor(request.actor)?);
    endpoint.transfer_leader(group, request.to, request.reason, actor).await?;
    Ok(v1::TransferLeaderResponse {})
}

pub(super) async fn drain(
    endpoint: &Endpoint,
    request: v1::DrainMemberRequest,
) -> Result<v1::DrainMemberResponse, ApiError> {
    let actor = input::actor(request.actor)?;
    endpoint.drain_member(request.member, request.drained, request.reason, actor).await?;
    Ok(v1::DrainMemberResponse {})
}
