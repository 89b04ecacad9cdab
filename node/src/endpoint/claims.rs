//! The verbs of claims: partitions that sessions share.

use holdfast_locktable::{
    ids::{Revision, SessionId, Token},
    name::{Name, NameKind},
};
use holdfast_partitioner::GroupId;

use super::{
    Answer, ApiError, Endpoint, ErrorCode, about_name,
    convert::About,
    locks::{check_limit, name_of_kind},
    types::{
        MAX_WAIT_MS,
        claims::{ClaimDetail, ClaimPage, JoinRequest, MAX_PARTITIONS, MAX_WEIGHT, MemberView},
    },
};
use crate::group::{
    call::{GroupAnswer, GroupCall},
    claims::{ClaimAnswer, ClaimCall},
    proposer::GroupError,
};

impl Endpoint {
    /// A session takes part in a claim; answers what it has now. Repeated, nothing changes. `OtherPartitions` where the claim
    /// has another number of partitions.
    pub async fn join_claim(&self, join: JoinRequest) -> Answer<MemberView> {
        if !(1..=MAX_PARTITIONS).contains(&join.partitions) {
            return Err(ApiError::invalid(format!(
                "partitions is {}; it must be 1 to {MAX_PARTITIONS}",
                join.partitions
            )));
        }
        if !(1..=MAX_WEIGHT).contains(&join.weight) {
            return Err(ApiError::invalid(format!(
                "weight is {}; it must be 1 to {MAX_WEIGHT}",
                join.weight
            )));
        }
        let (name, session) = (join.name.clone(), join.session);
        self.member_of(&name, session, ClaimCall::Join(join)).await
    }

    /// A session takes part no more: what it had is free at once. `false` where it took no part.
    pub async fn leave_claim(&self, name: Name, session: SessionId) -> Answer<bool> {
        let call = ClaimCall::Leave { name: name.clone(), session };
        match self.claim_call(&name, Some(session), call).await?.1 {
            ClaimAnswer::Left(left) => Ok(left),
            other => Err(surprise(&name, &other)),
        }
    }

    /// A member gives everything back, partition by partition, and goes. `NotMember` where it takes no part (any more).
    pub async fn drain_claim(&self, name: Name, session: SessionId) -> Answer<()> {
        let call = ClaimCall::Drain { name: name.clone(), session };
        match self.claim_call(&name, Some(session), call).await?.1 {
            ClaimAnswer::Draining => Ok(()),
            other => Err(surprise(&name, &other)),
        }
    }

    /// A member has stopped using partitions that it was to give back; answers what it has now. What is not being revoked
    /// from it with that token is left alone.
    pub async fn give_back(
        &self,
        name: Name,
        session: SessionId,
        partitions: Vec<(u32, Token)>,
    ) -> Answer<MemberView> {
        if partitions.len() > MAX_PARTITIONS as usize {
            return Err(ApiError::invalid(format!("partitions has more than {MAX_PARTITIONS} entries")));
        }
        let call = ClaimCall::GiveBack { name: name.clone(), session, partitions };
        self.member_of(&name, session, call).await
    }

    /// What a member has, once that differs from what it has seen, or the time is over. `NotMember` where it takes no part.
    pub async fn await_claim(
        &self,
        name: Name,
        session: SessionId,
        seen: Option<Revision>,
        wait_ms: u64,
    ) -> Answer<MemberView> {
        let wait_ms = wait_ms.min(MAX_WAIT_MS);
        let call = ClaimCall::Await { name: name.clone(), session, seen, wait_ms };
        self.member_of(&name, session, call).await
    }

    /// One claim with its members and owners; `NotFound` where nobody takes part.
    pub async fn claim(&self, name: &Name) -> Answer<ClaimDetail> {
        match self.claim_call(name, None, ClaimCall::Show(name.clone())).await?.1 {
            ClaimAnswer::Detail(Some(detail)) => Ok(*detail),
            ClaimAnswer::Detail(None) => Err(ApiError::new(
                ErrorCode::NotFound,
                format!("nobody takes part in the claim {:?} right now", name.text()),
            )),
            other => Err(surprise(name, &other)),
        }
    }

    /// Claims whose name begins with `prefix`, in name order over all groups. `limit` 1 to 1000. The cursor is the last name
    /// of the page before.
    pub async fn claims(&self, prefix: &str, limit: u32, cursor: Option<&str>) -> Answer<ClaimPage> {
        check_limit(limit)?;
        let after = cursor.map(|cursor| name_of_kind(NameKind::Claim, cursor)).transpose()?;
        let groups = self.parts.router.all_groups();
        let asked = groups.iter().map(|group| {
            let call = ClaimCall::List { prefix: prefix.to_owned(), after: after.clone(), limit };
            self.parts.router.call(*group, GroupCall::Claim(call))
        });
        let (mut page, mut more) = (ClaimPage::default(), false);
        for (group, answer) in groups.iter().zip(futures::future::join_all(asked).await) {
            match answer {
                Ok(GroupAnswer::Claim(ClaimAnswer::Page { claims, more: rest })) => {
                    page.claims.extend(claims);
                    more |= rest;
                }
                Ok(other) => return Err(About { group: *group, name: None, session: None }.surprise(&other)),
                Err(_) => page.unavailable_groups.push(*group),
            }
        }
        page.claims.sort_by(|a, b| a.name.cmp(&b.name));
        // A range that is just changing hands shows in both groups, the same in both.
        page.claims.dedup_by(|a, b| a.name == b.name);
        more |= page.claims.len() > limit as usize;
        page.claims.truncate(limit as usize);
        page.next_cursor = page.claims.last().filter(|_| more).map(|claim| claim.name.clone());
        Ok(page)
    }

    /// A verb that answers what a member has.
    async fn member_of(&self, name: &Name, session: SessionId, call: ClaimCall) -> Answer<MemberView> {
        match self.claim_call(name, Some(session), call).await? {
            (group, ClaimAnswer::Member(membership)) => Ok(MemberView { group, membership }),
            (_, other) => Err(surprise(name, &other)),
        }
    }

    async fn claim_call(
        &self,
        name: &Name,
        session: Option<SessionId>,
        call: ClaimCall,
    ) -> Answer<(GroupId, ClaimAnswer)> {
        let (group, answer) = self.call_owner(name, GroupCall::Claim(call)).await?;
        let about = about_name(group, name, session);
        match answer {
            Ok(GroupAnswer::Claim(answer)) => Ok((group, answer)),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }
}

/// An answer that the verb cannot have.
fn surprise(name: &Name, answer: &ClaimAnswer) -> ApiError {
    about_name(GroupId::META, name, None)
        .error(GroupError::Fatal(format!("a verb of claims was answered with {answer:?}")))
}
