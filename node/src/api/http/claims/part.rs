//! `/v1/claims/join`, `leave`, `drain` and `ack`.

use actix_web::{HttpResponse, web::Data};
use holdfast_locktable::{ids::SessionId, name::Name, view::Stake};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    api::http::{
        api::Api,
        fields::{
            ClaimName, GroupNumber, MetadataMap, PartitionCount, PartitionNumber, SessionHex, TokenNumber,
            Weight, present,
        },
        input::JsonBody,
        problem::Problem,
    },
    endpoint::types::claims::{JoinRequest, MemberView},
};

/// Takes part in a claim.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinBody {
    name: ClaimName,
    session: SessionHex,
    /// How many partitions the claim has. The first member decides it; another number is `other_partitions`.
    partitions: PartitionCount,
    /// The member's share against the others'; 1 where it is absent. Joining again with another weight replaces it.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    weight: Option<Weight>,
    /// Shown to operators with the member.
    #[serde(default)]
    metadata: MetadataMap,
}

/// Names a member of a claim.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberBody {
    name: ClaimName,
    session: SessionHex,
}

/// Gives revoked partitions back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AckBody {
    name: ClaimName,
    session: SessionHex,
    /// At most 4096.
    partitions: Vec<AckedJson>,
}

/// A partition that the member has stopped using.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AckedJson {
    partition: PartitionNumber,
    /// With which it had it.
    token: TokenNumber,
}

/// What a member has of a claim.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberAnswer {
    name: String,
    session: SessionHex,
    /// The group that owns the claim: whose line in the keepalive answers counts for it.
    group: GroupNumber,
    /// When something of this changed last: what `seen` names. Of two answers the one with the higher revision is the newer.
    revision: u64,
    /// How many partitions the claim has.
    partitions: u32,
    weight: u32,
    /// Whether the member gives everything back.
    draining: bool,
    /// What it has, by partition.
    owned: Vec<StakeJson>,
}

/// A partition that a member has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StakeJson {
    partition: PartitionNumber,
    token: TokenNumber,
    /// The member is to stop using it and to say so (`/v1/claims/ack`). It has it until then.
    revoking: bool,
}

impl MemberAnswer {
    pub(super) fn new(name: &Name, session: SessionId, member: MemberView) -> Self {
        let membership = member.membership;
        let stake = |stake: Stake| StakeJson {
            partition: stake.partition.into(),
            token: stake.token.into(),
            revoking: stake.revoking,
        };
        Self {
            name: name.text().to_owned(),
            session: SessionHex(session),
            group: member.group.into(),
            revision: membership.revision.0,
            partitions: membership.partitions,
            weight: membership.weight,
            draining: membership.draining,
            owned: membership.stakes.into_iter().map(stake).collect(),
        }
    }
}

/// Whether the session was a member.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaveAnswer {
    left: bool,
}

/// The member gives everything back.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DrainAnswer {
    draining: bool,
}

/// Take part in a claim
///
/// The first member makes the claim. Partitions that others are to give up come later, when they have: wait for them with
/// `GET /v1/claims`. Repeated, nothing changes; a member that is being drained stays so.
#[utoipa::path(post, path = "/v1/claims/join", operation_id = "join_claim", tag = "claims", request_body = JoinBody,
    responses((status = 200, description = "The session takes part; this is what it has now.", body = MemberAnswer),
        (status = 409, description = "`other_partitions` (with `partitions`), `claim_full`."),
        (status = 410, description = "`session_lost`: the session has ended or never was.")))]
pub(crate) async fn join(
    api: Data<Api>,
    JsonBody(body): JsonBody<JoinBody>,
) -> Result<HttpResponse, Problem> {
    let (name, session) = (body.name.0, body.session.0);
    let join = JoinRequest {
        name: name.clone(),
        session,
        partitions: body.partitions.get(),
        weight: Weight::of(body.weight),
        metadata: body.metadata.0,
    };
    let member = api.endpoint.join_claim(join).await?;
    Ok(HttpResponse::Ok().json(MemberAnswer::new(&name, session, member)))
}

/// Take part no more
///
/// What the member had is free at once and goes to the others: stop using it first.
#[utoipa::path(post, path = "/v1/claims/leave", operation_id = "leave_claim", tag = "claims", request_body = MemberBody,
    responses((status = 200, description = "The session takes no part; `left` says whether it did before.", body = LeaveAnswer),
        (status = 410, description = "`session_lost`: the session has ended.")))]
pub(crate) async fn leave(
    api: Data<Api>,
    JsonBody(body): JsonBody<MemberBody>,
) -> Result<HttpResponse, Problem> {
    let left = api.endpoint.leave_claim(body.name.0, body.session.0).await?;
    Ok(HttpResponse::Ok().json(LeaveAnswer { left }))
}

/// Drain a member
///
/// The member is to give everything back, and is out once it has. Told twice, nothing changes.
#[utoipa::path(post, path = "/v1/claims/drain", operation_id = "drain_claim", tag = "claims", request_body = MemberBody,
    responses((status = 200, description = "The member gives everything back.", body = DrainAnswer),
        (status = 409, description = "`not_member`: the session takes no part (any more).")))]
pub(crate) async fn drain(
    api: Data<Api>,
    JsonBody(body): JsonBody<MemberBody>,
) -> Result<HttpResponse, Problem> {
    api.endpoint.drain_claim(body.name.0, body.session.0).await?;
    Ok(HttpResponse::Ok().json(DrainAnswer { draining: true }))
}

/// Give revoked partitions back
///
/// Stop using them first: they go to others at once. What is not being revoked from the member with that token is left
/// alone, so that a repeat is harmless.
#[utoipa::path(post, path = "/v1/claims/ack", operation_id = "ack_revoked", tag = "claims", request_body = AckBody,
    responses((status = 200, description = "What the member has now.", body = MemberAnswer),
        (status = 409, description = "`not_member`: the session takes no part (any more); a drained member is out with its \
            last partition."),
        (status = 410, description = "`session_lost`: the session has ended.")))]
pub(crate) async fn ack(api: Data<Api>, JsonBody(body): JsonBody<AckBody>) -> Result<HttpResponse, Problem> {
    let (name, session) = (body.name.0, body.session.0);
    let partitions = body.partitions.iter().map(|acked| (acked.partition.get(), acked.token.token()));
    let member = api.endpoint.give_back(name.clone(), session, partitions.collect()).await?;
    Ok(HttpResponse::Ok().json(MemberAnswer::new(&name, session, member)))
}
