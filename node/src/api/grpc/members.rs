//! The verbs about who the members are, as messages. Bounds as in [`super::input`]; decides nothing.

use holdfast_proto::v1;

use super::input;
use crate::{
    config::MemberEntry,
    endpoint::{
        ApiError, Endpoint,
        roster::MembersWanted,
        types::cluster::{MemberChangeView, MemberChangesView},
    },
};

pub(super) async fn change(
    endpoint: &Endpoint,
    request: v1::ChangeMembersRequest,
) -> Result<v1::MemberChange, ApiError> {
    let actor = input::actor(request.actor)?;
    let wanted = MembersWanted {
        add: request.add.map(|new| MemberEntry {
            id: new.id,
            http: new.http,
            grpc: new.grpc,
            peer: new.peer,
        }),
        remove: request.remove,
        request: request.request,
        dry_run: request.dry_run,
    };
    endpoint.change_members(wanted, request.reason, actor).await.map(Into::into)
}

pub(super) async fn cancel(
    endpoint: &Endpoint,
    request: v1::CancelMemberChangeRequest,
) -> Result<v1::CancelMemberChangeResponse, ApiError> {
    let actor = input::actor(request.actor)?;
    endpoint.cancel_member_change(request.change, request.reason, actor).await?;
    Ok(v1::CancelMemberChangeResponse {})
}

pub(super) async fn changes(endpoint: &Endpoint) -> Result<v1::MemberChangesResponse, ApiError> {
    endpoint.member_changes().await.map(Into::into)
}

impl From<MemberChangeView> for v1::MemberChange {
    fn from(change: MemberChangeView) -> Self {
        Self {
            number: change.number,
            what: change.what,
            comes: change.comes.map(|new| v1::NewMember {
                id: new.id,
                http: new.http,
                grpc: new.grpc,
                peer: new.peer,
            }),
            goes: change.goes,
            actor: change.actor,
            reason: change.reason,
            since_ms: change.since_ms,
            doing: change.doing,
            ended_ms: change.ended_ms,
            stopped: change.stopped,
        }
    }
}

impl From<MemberChangesView> for v1::MemberChangesResponse {
    fn from(changes: MemberChangesView) -> Self {
        Self {
            under_way: changes.under_way.map(Into::into),
            past: changes.past.into_iter().map(Into::into).collect(),
        }
    }
}
