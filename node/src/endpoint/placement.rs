//! The verbs about which members carry and lead which groups.

use std::time::Duration;

use holdfast_partitioner::GroupId;

use super::{
    Answer, ApiError, Endpoint, ErrorCode, convert::About, sessions::check_reason,
    types::cluster::GroupDetail,
};
use crate::{
    group::{
        call::{GroupAnswer, GroupCall},
        members::MembersCall,
    },
    meta::{
        group::{MetaAnswer, MetaCall},
        places::{Doing, PlaceAsk, PlacementNow},
    },
    raft::types::MemberId,
};

/// How long new groups are waited for: less than a client of many members waits for the answer of one.
const BEGIN: Duration = Duration::from_millis(400);

impl Endpoint {
    /// Adds lock groups, which own nothing yet, on the members that carry the fewest, those first that answer now; refused where
    /// those are no majority of a group. Answers once each has a leader, or after half a second. A repeat with the same
    /// request number adds nothing again. Recorded in the audit log.
    pub async fn add_groups(
        &self,
        count: u16,
        request: Option<u64>,
        reason: String,
        actor: String,
    ) -> Answer<Vec<GroupId>> {
        check_reason(&reason)?;
        let request = request.unwrap_or_else(rand::random);
        let target = format!("{count} lock groups");
        let add = || async {
            let reachable = self.parts.router.reachable().await;
            let ask = PlaceAsk::AddGroups { count, reachable, reason: reason.clone(), request };
            match self.meta_call(MetaCall::Place(ask)).await? {
                MetaAnswer::GroupsAdded(groups) => Ok(groups),
                _ => Err(ApiError::no_leader(GroupId::META)),
            }
        };
        let groups = self.audited("add_groups", &target, &reason, &actor, add).await?;
        // A group that takes longer begins all the same.
        drop(tokio::time::timeout(BEGIN, self.wait_begun(&groups)).await);
        Ok(groups)
    }

    async fn wait_begun(&self, groups: &[GroupId]) {
        self.wait_known(groups).await;
        let led = groups.iter().map(|group| self.parts.router.call(*group, GroupCall::Status));
        futures::future::join_all(led).await;
    }

    /// Waits until this member has heard of new groups, but not for ever.
    async fn wait_known(&self, groups: &[GroupId]) {
        let mut places = self.parts.router.places();
        let known = places.wait_for(|now| {
            now.as_ref().is_some_and(|now| groups.iter().all(|group| now.groups.contains_key(group)))
        });
        drop(tokio::time::timeout(self.patience(), known).await);
    }

    /// One group: where it is, what goes on with it and why. `NotFound` where there is none.
    pub async fn group(&self, group: GroupId) -> Answer<GroupDetail> {
        let found = self.groups().await?.into_iter().find(|view| view.group == group);
        let view = found.ok_or_else(|| self.no_such_group(group))?;
        let PlacementNow { mut placement, mut doing } = self.placement_now().await?;
        let place = placement.groups.remove(&group);
        let Doing { under_way, entries_per_s } = doing.remove(&group).unwrap_or_default();
        let why = place.as_ref().map(|place| place.why.clone()).filter(|why| !why.is_empty());
        let fresh =
            place.as_ref().filter(|place| !place.has_begun()).map(|_| "it has not begun yet".to_owned());
        Ok(GroupDetail {
            leaving: place.map(|place| place.leaving.into_iter().collect()).unwrap_or_default(),
            under_way: under_way.or(fresh),
            why,
            entries_per_s: Some(entries_per_s).filter(|_| !view.group.is_meta()),
            view,
        })
    }

    /// Has a group led by another of its members; recorded in the audit log. Callers wait for the moment without leader.
    pub async fn transfer_leader(
        &self,
        group: GroupId,
        to: MemberId,
        reason: String,
        actor: String,
    ) -> Answer<()> {
        check_reason(&reason)?;
        if !group.is_meta() && !self.parts.router.all_groups().contains(&group) {
            return Err(self.no_such_group(group));
        }
        let target = format!("group {group} to member {to}");
        let transfer = || async {
            if group.is_meta() {
                return self.meta_call(MetaCall::Transfer { to }).await.map(drop);
            }
            let call = GroupCall::Members(MembersCall::Transfer { to });
            match self.parts.router.call(group, call).await {
                Ok(GroupAnswer::Done) => Ok(()),
                Ok(other) => Err(About { group, name: None, session: None }.surprise(&other)),
                Err(error) => Err(About { group, name: None, session: None }.error(error)),
            }
        };
        self.audited("transfer_leader", &target, &reason, &actor, transfer).await
    }

    /// Has a member carry and lead no lock group any more, one after the other, or allows it to again. Recorded in the audit
    /// log. Refused where too few members would be left.
    pub async fn drain_member(
        &self,
        member: MemberId,
        drained: bool,
        reason: String,
        actor: String,
    ) -> Answer<()> {
        check_reason(&reason)?;
        let (action, ask) = match drained {
            true => ("drain_member", PlaceAsk::Drain { member }),
            false => ("undrain_member", PlaceAsk::Undrain { member }),
        };
        let drain = || async { self.meta_call(MetaCall::Place(ask)).await.map(drop) };
        self.audited(action, &format!("member {member}"), &reason, &actor, drain).await
    }

    async fn placement_now(&self) -> Answer<PlacementNow> {
        match self.meta_call(MetaCall::Place(PlaceAsk::Show)).await? {
            MetaAnswer::Placement(now) => Ok(*now),
            _ => Err(ApiError::no_leader(GroupId::META)),
        }
    }

    fn no_such_group(&self, group: GroupId) -> ApiError {
        let last = self.parts.router.all_groups().last().map_or(0, |last| last.0);
        ApiError::new(ErrorCode::NotFound, format!("there is no group {group}; groups are 0 to {last}"))
    }
}
