//! Claims: who takes part, who has which partition.

use alloc::{string::String, vec::Vec};
use core::ops::Bound;

use super::super::{Claim, LockTable, Member};
use crate::{
    ids::SessionId,
    name::{CLAIM_MARK, Name},
    view::{ClaimMemberView, ClaimSummary, ClaimView, Membership, Stake},
};

impl LockTable {
    /// One claim; `None` where nobody takes part.
    pub fn claim(&self, name: &Name) -> Option<ClaimView> {
        let claim = self.state.claims.live.get(name)?;
        let member = |(session, member): (&SessionId, &Member)| ClaimMemberView {
            session: *session,
            weight: member.weight,
            draining: member.draining,
            metadata: member.metadata.clone(),
            joined_at_ms: member.joined_at_ms,
        };
        Some(ClaimView {
            name: name.clone(),
            owners: claim.owners.clone(),
            members: claim.members.iter().map(member).collect(),
        })
    }

    /// Claims whose name as users wrote it begins with `prefix`, in name order: at most `limit` of them behind `after`, and
    /// whether there are more.
    pub fn claims(&self, prefix: &str, after: Option<&Name>, limit: usize) -> (Vec<ClaimSummary>, bool) {
        let mut internal = String::from(CLAIM_MARK);
        internal.push_str(prefix);
        let start = match after.map(Name::internal) {
            Some(after) if after >= internal.as_str() => Bound::Excluded(after),
            Some(_) | None => Bound::Included(internal.as_str()),
        };
        let range = self.state.claims.live.range::<str, _>((start, Bound::Unbounded));
        let mut found = range.take_while(|(name, _)| name.internal().starts_with(&internal));
        let page = found.by_ref().take(limit).map(|(name, claim)| summary(name, claim)).collect();
        (page, found.next().is_some())
    }

    /// What a session has of a claim; `None` where it takes no part.
    pub fn membership(&self, name: &Name, session: SessionId) -> Option<Membership> {
        let claim = self.state.claims.live.get(name)?;
        let member = claim.members.get(&session)?;
        let stakes = (0..).zip(&claim.owners).filter_map(|(partition, owner)| {
            let owner = owner.filter(|owner| owner.session == session)?;
            Some(Stake { partition, token: owner.token, revoking: owner.revoking })
        });
        Some(Membership {
            revision: member.changed,
            partitions: count(claim.owners.len()),
            weight: member.weight,
            draining: member.draining,
            stakes: stakes.collect(),
        })
    }

    /// Whether a session takes part in a claim.
    pub fn is_member(&self, name: &Name, session: SessionId) -> bool {
        self.state.claims.live.get(name).is_some_and(|claim| claim.members.contains_key(&session))
    }

    /// The revision at which something changed last that a member must know; cheaper than the whole membership.
    pub fn membership_revision(&self, name: &Name, session: SessionId) -> Option<crate::ids::Revision> {
        self.state.claims.live.get(name)?.members.get(&session).map(|member| member.changed)
    }
}

fn summary(name: &Name, claim: &Claim) -> ClaimSummary {
    let owned = claim.owners.iter().flatten().count();
    ClaimSummary {
        name: name.clone(),
        partitions: count(claim.owners.len()),
        members: count(claim.members.len()),
        owned: count(owned),
        revoking: count(claim.owners.iter().flatten().filter(|owner| owner.revoking).count()),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
