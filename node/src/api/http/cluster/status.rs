//! `/v1/status`, `/v1/members` and `/v1/groups`.

use actix_web::{HttpResponse, web::Data};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    api::http::{
        api::Api,
        fields::GroupNumber,
        input::{NoArgs, QueryArgs},
        problem::Problem,
    },
    endpoint::types::cluster::{GroupView, MemberView, StatusView, VoterView},
};

/// What a member says of itself.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusAnswer {
    /// The cluster's name.
    cluster: String,
    /// The answering member.
    member: u64,
    /// Version of its program.
    version: String,
    /// Epoch of the partition map it knows.
    map_epoch: u64,
    /// Its groups.
    groups: Vec<GroupJson>,
}

impl From<StatusView> for StatusAnswer {
    fn from(status: StatusView) -> Self {
        Self {
            cluster: status.cluster,
            member: status.member,
            version: status.version,
            map_epoch: status.map_epoch.0,
            groups: status.groups.into_iter().map(GroupJson::from).collect(),
        }
    }
}

/// The cluster's groups.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupsAnswer {
    groups: Vec<GroupJson>,
}

impl From<Vec<GroupView>> for GroupsAnswer {
    fn from(groups: Vec<GroupView>) -> Self {
        Self { groups: groups.into_iter().map(GroupJson::from).collect() }
    }
}

/// One Raft group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupJson {
    group: GroupNumber,
    /// The member that leads it, as the answering member knows; null while nobody does.
    #[schema(required)]
    leader: Option<u64>,
    term: u64,
    /// Last index in the answering member's log.
    last_log_index: u64,
    /// Last committed index that the answering member knows.
    committed_index: u64,
    /// Last applied index of the answering member.
    applied_index: u64,
    /// The group's revision on the answering member; 0 for the meta group.
    revision: u64,
    /// The members that are to carry it; none for group 0, which every member has.
    replicas: Vec<u64>,
    /// Its voters.
    voters: Vec<VoterJson>,
    /// Members that are sent its log and do not vote.
    learners: Vec<VoterJson>,
    /// Whether one set of voters is just replacing another.
    joint: bool,
    /// Locks held.
    held: u64,
    /// Waiters.
    waiting: u64,
    /// Sessions known.
    sessions: u64,
}

impl From<GroupView> for GroupJson {
    fn from(group: GroupView) -> Self {
        Self {
            group: group.group.into(),
            leader: group.leader,
            term: group.term,
            last_log_index: group.last_log_index,
            committed_index: group.committed_index,
            applied_index: group.applied_index,
            revision: group.revision.0,
            replicas: group.replicas,
            voters: group.voters.into_iter().map(VoterJson::from).collect(),
            learners: group.learners.into_iter().map(VoterJson::from).collect(),
            joint: group.joint,
            held: group.held,
            waiting: group.waiting,
            sessions: group.sessions,
        }
    }
}

/// One voter of a group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VoterJson {
    member: u64,
    /// Last index it has stored on disk; null where the answering member does not lead.
    #[schema(required)]
    matched_index: Option<u64>,
}

impl From<VoterView> for VoterJson {
    fn from(voter: VoterView) -> Self {
        Self { member: voter.member, matched_index: voter.matched_index }
    }
}

/// The cluster's members.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembersAnswer {
    members: Vec<MemberJson>,
}

impl From<Vec<MemberView>> for MembersAnswer {
    fn from(members: Vec<MemberView>) -> Self {
        Self { members: members.into_iter().map(MemberJson::from).collect() }
    }
}

/// One member.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberJson {
    id: u64,
    /// Base URL of its HTTP listener.
    http: String,
    /// URL of its gRPC listener.
    grpc: String,
    /// Address of its peer listener.
    peer: String,
    /// Whether it is the one that answers.
    this: bool,
    /// Whether the answering member heard from it within the last election timeout.
    reachable: bool,
    /// Groups it leads, as the answering member knows.
    leads: Vec<GroupNumber>,
    /// Lock groups it carries.
    carries: Vec<GroupNumber>,
    /// Whether it is drained: it is to carry and to lead no lock group.
    drained: bool,
}

impl From<MemberView> for MemberJson {
    fn from(member: MemberView) -> Self {
        Self {
            id: member.id,
            http: member.http,
            grpc: member.grpc,
            peer: member.peer,
            this: member.this,
            reachable: member.reachable,
            leads: member.leads.into_iter().map(GroupNumber::from).collect(),
            carries: member.carries.into_iter().map(GroupNumber::from).collect(),
            drained: member.drained,
        }
    }
}

/// Show the answering member
#[utoipa::path(get, path = "/v1/status", operation_id = "status", tag = "cluster",
    responses((status = 200, description = "What the answering member says of itself.", body = StatusAnswer)))]
pub(crate) async fn status(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(StatusAnswer::from(api.endpoint.status().await?)))
}

/// List members
#[utoipa::path(get, path = "/v1/members", operation_id = "list_members", tag = "cluster",
    responses((status = 200, description = "The cluster's members.", body = MembersAnswer)))]
pub(crate) async fn members(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(MembersAnswer::from(api.endpoint.members().await?)))
}

/// List groups
#[utoipa::path(get, path = "/v1/groups", operation_id = "list_groups", tag = "cluster",
    responses((status = 200, description = "The cluster's groups.", body = GroupsAnswer)))]
pub(crate) async fn groups(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(GroupsAnswer::from(api.endpoint.groups().await?)))
}
