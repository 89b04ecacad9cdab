//! The verbs that look at the cluster: members, groups, map, snapshots, audit.

use std::future::Future;

use holdfast_partitioner::{GroupId, MapEpoch, PartitionMap};

use super::{
    Answer, ApiError, Endpoint,
    convert::About,
    types::{
        AuditEntry, SnapshotView,
        cluster::{GroupView, MemberView, StatusView},
    },
};
use crate::{
    group::{
        Group,
        call::{GroupAnswer, GroupCall},
    },
    meta::group::{MetaAnswer, MetaCall},
};

impl Endpoint {
    /// What this member says of itself.
    pub async fn status(&self) -> Answer<StatusView> {
        let map_epoch = self.parts.map.borrow().as_ref().map_or(MapEpoch(0), |map| map.epoch());
        Ok(StatusView {
            cluster: self.parts.config.cluster.clone(),
            member: self.parts.router.member(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            map_epoch,
            groups: self.groups_here(),
        })
    }

    fn groups_here(&self) -> Vec<GroupView> {
        let meta = self.parts.router.meta().map(crate::meta::group::MetaGroup::status);
        let groups = self.parts.router.groups();
        let mut views: Vec<GroupView> = meta.into_iter().chain(groups.iter().map(Group::status)).collect();
        views.iter_mut().for_each(|view| self.name_replicas(view));
        views
    }

    /// The cluster's members.
    pub async fn members(&self) -> Answer<Vec<MemberView>> {
        let router = &self.parts.router;
        let placement = router.placement();
        let meta = router.meta().and_then(crate::meta::group::MetaGroup::leader);
        let leads = |member| {
            let meta = Some(GroupId::META).filter(|_| meta == Some(member));
            let locks =
                router.all_groups().into_iter().filter(|group| router.leader_of(*group) == Some(member));
            meta.into_iter().chain(locks).collect()
        };
        let view = |member: &crate::config::MemberEntry| {
            let this = member.id == router.member();
            MemberView {
                id: member.id,
                http: member.http.clone(),
                grpc: member.grpc.clone(),
                peer: member.peer.clone(),
                this,
                reachable: this || self.parts.health.reachable(member.id),
                leads: leads(member.id),
                drained: placement.as_ref().is_some_and(|now| now.drained.contains(&member.id)),
                carries: placement
                    .as_ref()
                    .map(|now| now.carried_by(member.id).collect())
                    .unwrap_or_default(),
            }
        };
        Ok(router.members().iter().map(view).collect())
    }

    /// The cluster's groups; figures of each from its leader where it can be reached.
    pub async fn groups(&self) -> Answer<Vec<GroupView>> {
        let all = [GroupId::META].into_iter().chain(self.parts.router.all_groups());
        let asked = all.map(|group| self.group_from_leader(group));
        Ok(futures::future::join_all(asked).await.into_iter().flatten().collect())
    }

    /// A group's figures from its leader, or from the replica here; nothing where there is neither.
    async fn group_from_leader(&self, group: GroupId) -> Option<GroupView> {
        let router = &self.parts.router;
        let led = if group == GroupId::META {
            match self.meta_call(MetaCall::Status).await {
                Ok(MetaAnswer::Status(leader)) => Some(*leader),
                Ok(_) | Err(_) => router.meta().map(crate::meta::group::MetaGroup::status),
            }
        } else {
            match router.call(group, GroupCall::Status).await {
                Ok(GroupAnswer::Status(leader)) => Some(*leader),
                Ok(_) | Err(_) => {
                    let here = router.current_group(group);
                    Some(here.map_or_else(|| GroupView::unreachable(group), |here| here.status()))
                }
            }
        };
        led.map(|mut view| {
            self.name_replicas(&mut view);
            view
        })
    }

    /// Adds on which members a group is to be.
    fn name_replicas(&self, view: &mut GroupView) {
        let placement = self.parts.router.placement();
        if let Some(place) = placement.as_ref().and_then(|placement| placement.groups.get(&view.group)) {
            view.replicas.clone_from(&place.replicas);
        }
    }

    /// The partition map.
    pub async fn partitions(&self) -> Answer<PartitionMap> {
        Ok((*self.map().await?).clone())
    }

    /// Snapshots in the snapshot store, of all groups, oldest first.
    pub async fn snapshots(&self) -> Answer<Vec<SnapshotView>> {
        let listed = self.parts.snapshots.list_all().await.map_err(|error| {
            ApiError::new(super::ErrorCode::Internal, format!("the snapshot store cannot be read: {error}"))
        })?;
        let mut found: Vec<SnapshotView> = listed.into_values().flatten().map(SnapshotView::from).collect();
        found.sort_by(|a, b| (a.created_at_ms, a.group, &a.id).cmp(&(b.created_at_ms, b.group, &b.id)));
        Ok(found)
    }

    /// Takes snapshots of one group or of all, group 0 included, and answers their manifests once they are durable.
    pub async fn take_snapshot(&self, group: Option<GroupId>, actor: String) -> Answer<Vec<SnapshotView>> {
        let groups: Vec<GroupId> = match group {
            Some(GroupId::META) => vec![GroupId::META],
            Some(group) if self.parts.router.all_groups().contains(&group) => vec![group],
            Some(group) => {
                return Err(ApiError::new(super::ErrorCode::NotFound, format!("there is no group {group}")));
            }
            None => [GroupId::META].into_iter().chain(self.parts.router.all_groups()).collect(),
        };
        let target = group.map_or_else(|| "all groups".to_owned(), |group| format!("group {group}"));
        let take = || async {
            let asked = groups.iter().map(|group| self.take_in(*group));
            futures::future::try_join_all(asked).await
        };
        self.audited("take_snapshot", &target, "", &actor, take).await
    }

    async fn take_in(&self, group: GroupId) -> Answer<SnapshotView> {
        let about = About { group, name: None, session: None };
        if group.is_meta() {
            return match self.meta_call(MetaCall::TakeSnapshot).await? {
                MetaAnswer::Snapshot(taken) => Ok(*taken),
                _ => Err(ApiError::no_leader(GroupId::META)),
            };
        }
        match self.parts.router.call(group, GroupCall::TakeSnapshot).await {
            Ok(GroupAnswer::Snapshot(taken)) => Ok(*taken),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }

    /// The newest lines of the audit log, oldest first. `limit` 1 to 1000.
    pub async fn audit(&self, limit: u32) -> Answer<Vec<AuditEntry>> {
        if !(1..=1_000).contains(&limit) {
            return Err(ApiError::invalid(format!("limit is {limit}; it must be 1 to 1000")));
        }
        match self.meta_call(MetaCall::Audit { limit }).await? {
            MetaAnswer::Audit(entries) => Ok(entries),
            _ => Err(ApiError::no_leader(GroupId::META)),
        }
    }

    /// Does what an operator asks between two lines of the audit log. What cannot be recorded is not done.
    pub(super) async fn audited<T, F: Future<Output = Answer<T>>>(
        &self,
        action: &'static str,
        target: &str,
        reason: &str,
        actor: &str,
        act: impl FnOnce() -> F,
    ) -> Answer<T> {
        let line = |outcome: &str| MetaCall::Record {
            actor: actor.to_owned(),
            action: action.to_owned(),
            target: target.to_owned(),
            reason: reason.to_owned(),
            outcome: outcome.to_owned(),
        };
        self.meta_call(line("requested")).await?;
        let result = act().await;
        let outcome = result.as_ref().map_or_else(|error| error.code.as_str(), |_| "ok");
        self.parts.instruments.service.audited(action, outcome);
        if let Err(error) = self.meta_call(line(outcome)).await {
            tracing::warn!(action, target, outcome, %error, "the outcome of an operator's action is missing in the audit log");
        }
        result
    }

    pub(super) async fn meta_call(&self, call: MetaCall) -> Answer<MetaAnswer> {
        let about = About { group: GroupId::META, name: None, session: None };
        self.parts.router.meta_call(call).await.map_err(|error| about.error(error))
    }
}
