//! What is asked and answered of claims.

use holdfast_locktable::{
    ids::{SessionId, Token},
    metadata::Metadata,
    name::Name,
    view::{ClaimSummary, ClaimView, Membership},
};
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

/// Most partitions of a claim.
pub const MAX_PARTITIONS: u32 = 4_096;
/// Largest weight of a member of a claim.
pub const MAX_WEIGHT: u32 = 1_000;

/// Asks to take part in a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// The claim.
    pub name: Name,
    /// Who joins.
    pub session: SessionId,
    /// How many partitions the claim has.
    pub partitions: u32,
    /// The member's share against the others'.
    pub weight: u32,
    /// Shown to operators.
    pub metadata: Metadata,
}

/// What a member has of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberView {
    /// The group that owns the claim: whose keepalive answers count for it.
    pub group: GroupId,
    /// What it has.
    pub membership: Membership,
}

/// One claim with its members and owners.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimDetail {
    /// The claim in short.
    pub line: ClaimLine,
    /// By session.
    pub members: Vec<ClaimMember>,
    /// By partition; those that nobody has are left out.
    pub owners: Vec<PartitionOwner>,
}

/// One claim in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimLine {
    /// Its name as users write it.
    pub name: String,
    /// The group that owns it.
    pub group: GroupId,
    /// How many partitions it has.
    pub partitions: u32,
    /// How many take part.
    pub members: u32,
    /// How many partitions somebody has.
    pub owned: u32,
    /// How many of those are being revoked.
    pub revoking: u32,
}

/// One member of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimMember {
    /// The session.
    pub session: SessionId,
    /// Its weight.
    pub weight: u32,
    /// Whether it gives everything back.
    pub draining: bool,
    /// How many partitions it has.
    pub owned: u32,
    /// Milliseconds since it joined, as leaders saw it.
    pub joined_ms: u64,
    /// What it says about itself.
    pub metadata: Metadata,
}

/// Who has a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// A page of claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimPage {
    /// In name order.
    pub claims: Vec<ClaimLine>,
    /// Where the next page starts; absent on the last.
    pub next_cursor: Option<String>,
    /// Groups that had no leader, so that their claims are missing here.
    pub unavailable_groups: Vec<GroupId>,
}

impl ClaimLine {
    /// A claim of a group.
    pub fn new(group: GroupId, claim: &ClaimSummary) -> Self {
        Self {
            name: claim.name.text().to_owned(),
            group,
            partitions: claim.partitions,
            members: claim.members,
            owned: claim.owned,
            revoking: claim.revoking,
        }
    }
}

impl ClaimDetail {
    /// A claim of a group, looked at now by the leader's wall clock.
    pub fn new(group: GroupId, claim: ClaimView, now_ms: u64) -> Self {
        let owners = (0..).zip(&claim.owners).filter_map(|(partition, owner)| {
            let owner = (*owner)?;
            let (session, token, revoking) = (owner.session, owner.token, owner.revoking);
            Some(PartitionOwner { partition, session, token, revoking })
        });
        let owners: Vec<PartitionOwner> = owners.collect();
        let mut owned = std::collections::BTreeMap::<SessionId, u32>::new();
        for owner in &owners {
            *owned.entry(owner.session).or_default() += 1;
        }
        let line = ClaimLine {
            name: claim.name.text().to_owned(),
            group,
            partitions: claim.owners.len() as u32,
            members: claim.members.len() as u32,
            owned: owners.len() as u32,
            revoking: owners.iter().filter(|owner| owner.revoking).count() as u32,
        };
        let members = claim.members.into_iter().map(|member| ClaimMember {
            session: member.session,
            weight: member.weight,
            draining: member.draining,
            owned: owned.get(&member.session).copied().unwrap_or_default(),
            joined_ms: now_ms.saturating_sub(member.joined_at_ms),
            metadata: member.metadata,
        });
        Self { line, members: members.collect(), owners }
    }
}
