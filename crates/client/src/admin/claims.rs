//! Claims as operators see them.

use std::collections::BTreeMap;

use holdfast_proto::v1;
use serde::Serialize;

use crate::ids::{SessionId, Token};

/// Which claims to list.
///
/// ```
/// # use holdfast_client::ListClaims;
/// let query = ListClaims { prefix: "ingest/".into(), ..ListClaims::default() };
/// assert_eq!(query.limit, 100);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListClaims {
    /// Names beginning with it; empty for all.
    pub prefix: String,
    /// How many on one page, 1 to 1,000.
    pub limit: u32,
    /// Where the page starts: [`ClaimPage::next_cursor`] of the page before it.
    pub cursor: Option<String>,
}

impl Default for ListClaims {
    fn default() -> Self {
        Self { prefix: String::new(), limit: 100, cursor: None }
    }
}

/// A page of claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClaimPage {
    /// In name order.
    pub claims: Vec<ClaimView>,
    /// Where the next page starts; absent on the last.
    pub next_cursor: Option<String>,
    /// Groups that had no leader, so that their claims are missing here.
    pub unavailable_groups: Vec<u32>,
}

/// One claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClaimView {
    /// Its name.
    pub name: String,
    /// The group that owns it.
    pub group: u32,
    /// How many partitions it has.
    pub partitions: u32,
    /// How many sessions take part.
    pub members: u32,
    /// How many partitions somebody has.
    pub owned: u32,
    /// How many of those are being revoked.
    pub revoking: u32,
}

/// One claim with its members and owners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClaimDetail {
    /// The claim in short.
    pub claim: ClaimView,
    /// By session.
    pub members: Vec<ClaimMember>,
    /// By partition; those that nobody has are left out.
    pub owners: Vec<PartitionOwner>,
}

/// One member of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimMember {
    /// The session.
    pub session: SessionId,
    /// Its share against the others'.
    pub weight: u32,
    /// Whether it gives everything back.
    pub draining: bool,
    /// How many partitions it has.
    pub owned: u32,
    /// Milliseconds since it joined, as leaders saw it.
    pub joined_ms: u64,
    /// What it says about itself.
    pub metadata: BTreeMap<String, String>,
}

/// Who has a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionOwner {
    /// The partition, from 0.
    pub partition: u32,
    /// The member.
    pub session: SessionId,
    /// The partition's fencing token.
    pub token: Token,
    /// Whether the member is to give it back.
    pub revoking: bool,
}

impl From<v1::ListClaimsResponse> for ClaimPage {
    fn from(page: v1::ListClaimsResponse) -> Self {
        Self {
            claims: page.claims.into_iter().map(ClaimView::from).collect(),
            next_cursor: page.next_cursor,
            unavailable_groups: page.unavailable_groups,
        }
    }
}

impl From<v1::ClaimView> for ClaimView {
    fn from(claim: v1::ClaimView) -> Self {
        Self {
            name: claim.name,
            group: claim.group,
            partitions: claim.partitions,
            members: claim.members,
            owned: claim.owned,
            revoking: claim.revoking,
        }
    }
}

impl From<v1::ClaimDetail> for ClaimDetail {
    fn from(detail: v1::ClaimDetail) -> Self {
        let member = |member: v1::ClaimMember| ClaimMember {
            session: SessionId::from_wire(member.session),
            weight: member.weight,
            draining: member.draining,
            owned: member.owned,
            joined_ms: member.joined_ms,
            metadata: member.metadata.into_iter().collect(),
        };
        let owner = |owner: v1::PartitionOwner| PartitionOwner {
            partition: owner.partition,
            session: SessionId::from_wire(owner.session),
            token: Token::new(owner.token),
            revoking: owner.revoking,
        };
        Self {
            claim: detail.claim.map(ClaimView::from).unwrap_or_default(),
            members: detail.members.into_iter().map(member).collect(),
            owners: detail.owners.into_iter().map(owner).collect(),
        }
    }
}
