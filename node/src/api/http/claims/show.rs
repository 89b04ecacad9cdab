//! `GET /v1/claims`: lists, one claim with its members and owners, and what one member has, as soon as that changes.

use actix_web::{HttpResponse, web::Data};
use holdfast_locktable::ids::Revision;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::part::MemberAnswer;
use crate::{
    api::http::{
        api::Api,
        fields::{
            ClaimName, Cursor, GroupNumber, LookMs, MetadataMap, NamePrefix, PageLimit, PartitionNumber,
            RevisionNumber, SessionHex, TokenNumber, present,
        },
        input::QueryArgs,
        problem::Problem,
    },
    endpoint::types::claims::{ClaimDetail, ClaimLine, ClaimMember, ClaimPage, PartitionOwner},
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClaimsArgs {
    /// Only this claim. Alone it asks for members and owners.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    name: Option<ClaimName>,
    /// With `name`: what this member has.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    session: Option<SessionHex>,
    /// With `session`: the `revision` of the answer before. The answer comes once there is another one.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    seen: Option<RevisionNumber>,
    /// With `seen`: how long to wait for that in milliseconds; then the answer is as before. At once where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    wait_ms: Option<LookMs>,
    /// Claims whose name begins with it; all where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    prefix: Option<NamePrefix>,
    /// Most claims of this page; 100 where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    limit: Option<PageLimit>,
    /// `next_cursor` of the page before.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    cursor: Option<Cursor>,
}

/// A page of claims in name order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimsAnswer {
    claims: Vec<ClaimJson>,
    /// Where the next page starts; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_cursor: Option<String>,
    /// Groups that had no leader, so that their claims are missing here.
    unavailable_groups: Vec<GroupNumber>,
}

/// One claim.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimJson {
    name: String,
    /// The group that owns it.
    group: GroupNumber,
    /// How many partitions it has.
    partitions: u32,
    /// How many sessions take part.
    member_count: u32,
    /// How many partitions somebody has.
    owned: u32,
    /// How many of those are being revoked.
    revoking: u32,
}

/// One claim with its members and owners.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimDetailAnswer {
    #[serde(flatten)]
    claim: ClaimJson,
    /// By session.
    members: Vec<ClaimMemberJson>,
    /// By partition; those that nobody has are left out.
    owners: Vec<OwnerJson>,
}

/// A member of a claim.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimMemberJson {
    session: SessionHex,
    weight: u32,
    /// Whether it gives everything back.
    draining: bool,
    /// How many partitions it has.
    owned: u32,
    /// Milliseconds since it joined, as leaders saw it.
    joined_ms: u64,
    metadata: MetadataMap,
}

/// Who has a partition.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnerJson {
    partition: PartitionNumber,
    session: SessionHex,
    token: TokenNumber,
    /// Whether the member is to give it back.
    revoking: bool,
}

impl From<ClaimLine> for ClaimJson {
    fn from(claim: ClaimLine) -> Self {
        Self {
            name: claim.name,
            group: claim.group.into(),
            partitions: claim.partitions,
            member_count: claim.members,
            owned: claim.owned,
            revoking: claim.revoking,
        }
    }
}

impl From<ClaimPage> for ClaimsAnswer {
    fn from(page: ClaimPage) -> Self {
        Self {
            claims: page.claims.into_iter().map(ClaimJson::from).collect(),
            next_cursor: page.next_cursor,
            unavailable_groups: page.unavailable_groups.into_iter().map(GroupNumber::from).collect(),
        }
    }
}

impl From<ClaimDetail> for ClaimDetailAnswer {
    fn from(detail: ClaimDetail) -> Self {
        let member = |member: ClaimMember| ClaimMemberJson {
            session: SessionHex(member.session),
            weight: member.weight,
            draining: member.draining,
            owned: member.owned,
            joined_ms: member.joined_ms,
            metadata: MetadataMap(member.metadata),
        };
        let owner = |owner: PartitionOwner| OwnerJson {
            partition: owner.partition.into(),
            session: SessionHex(owner.session),
            token: owner.token.into(),
            revoking: owner.revoking,
        };
        Self {
            claim: detail.line.into(),
            members: detail.members.into_iter().map(member).collect(),
            owners: detail.owners.into_iter().map(owner).collect(),
        }
    }
}

/// A page of claims, the one that was asked for, or what one member has.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ClaimsOrOne {
    /// Without `name`.
    Page(ClaimsAnswer),
    /// With `name` alone.
    One(ClaimDetailAnswer),
    /// With `name` and `session`.
    Member(MemberAnswer),
}

/// List claims, show one, or wait for what a member has
///
/// Waiting renews nothing: send keepalives meanwhile.
#[utoipa::path(get, path = "/v1/claims", operation_id = "list_claims", tag = "claims", params(ClaimsArgs),
    responses((status = 200, description = "A page of claims, the one asked for, or what the member has.", body = ClaimsOrOne),
        (status = 404, description = "`not_found`: nobody takes part in the claim."),
        (status = 409, description = "`not_member`: the session takes no part (any more).")))]
pub(crate) async fn show(
    api: Data<Api>,
    QueryArgs(args): QueryArgs<ClaimsArgs>,
) -> Result<HttpResponse, Problem> {
    check_together(&args)?;
    let answer = match (args.name, args.session) {
        (Some(name), Some(session)) => {
            let seen = args.seen.map(|seen| Revision(seen.get()));
            let look = api.endpoint.await_claim(name.0.clone(), session.0, seen, LookMs::of(args.wait_ms));
            ClaimsOrOne::Member(MemberAnswer::new(&name.0, session.0, api.waiting(look).await?))
        }
        (Some(name), None) => ClaimsOrOne::One(api.endpoint.claim(&name.0).await?.into()),
        (None, _) => {
            let prefix = args.prefix.unwrap_or_default().0;
            let cursor = args.cursor.as_ref().map(|cursor| cursor.0.as_str());
            ClaimsOrOne::Page(api.endpoint.claims(&prefix, PageLimit::of(args.limit), cursor).await?.into())
        }
    };
    Ok(HttpResponse::Ok().json(answer))
}

/// Which parameters make sense together.
fn check_together(args: &ClaimsArgs) -> Result<(), Problem> {
    let paging = args.prefix.is_some() || args.limit.is_some() || args.cursor.is_some();
    if args.name.is_some() && paging {
        return Err(Problem::invalid("`name` asks for one claim: leave out `prefix`, `limit` and `cursor`"));
    }
    if args.session.is_some() && args.name.is_none() {
        return Err(Problem::invalid("`session` asks for what a member has: say of which claim with `name`"));
    }
    if (args.seen.is_some() || args.wait_ms.is_some()) && args.session.is_none() {
        return Err(Problem::invalid("`seen` and `wait_ms` are of one member: say which with `session`"));
    }
    Ok(())
}
