//! From what the endpoint answers to messages. Nothing here fails or decides.

use std::collections::HashMap;

use holdfast_locktable::{metadata::Metadata, outcome::CancelOutcome};
use holdfast_partitioner::{GroupId, PartitionMap, Rule, Table};
use holdfast_proto::v1::{self, place::State};

use crate::{
    endpoint::{
        locate::Located,
        types::{
            AuditEntry, Granted, HistoryView, HolderView, KeepaliveAck, LeaderView, LeaseState, LockDetail,
            LockPage, LockView, SessionInfo, SessionLock, SessionPage, SnapshotView, WaiterView, WatchEvent,
            cluster::{GroupDetail, GroupView, MemberView, StatusView, VoterView},
        },
    },
    group::read::removal_text,
};

pub(super) fn all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

pub(super) fn groups(groups: Vec<GroupId>) -> Vec<u32> {
    groups.into_iter().map(|group| group.0).collect()
}

pub(super) fn map(metadata: &Metadata) -> HashMap<String, String> {
    metadata.entries().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

impl From<KeepaliveAck> for v1::KeepaliveAck {
    fn from(ack: KeepaliveAck) -> Self {
        let line = |state| match state {
            LeaseState::Renewed => v1::LeaseState::Renewed,
            LeaseState::Unknown => v1::LeaseState::Unknown,
            LeaseState::Lost => v1::LeaseState::Lost,
            LeaseState::Unavailable => v1::LeaseState::Unavailable,
            LeaseState::Moving => v1::LeaseState::Moving,
        };
        let groups = ack
            .groups
            .into_iter()
            .map(|lease| v1::GroupLease {
                group: lease.group.0,
                state: line(lease.state).into(),
                epoch: lease.epoch.0,
            })
            .collect();
        Self { ttl_ms: ack.ttl_ms, groups }
    }
}

impl From<Granted> for v1::Granted {
    fn from(granted: Granted) -> Self {
        Self { token: granted.token.0, group: granted.group.0, epoch: granted.epoch.0 }
    }
}

impl From<Located> for v1::Place {
    fn from(located: Located) -> Self {
        let of = |state: State| Self { state: state.into(), group: 0, epoch: 0, what: String::new() };
        match located {
            Located::Stands { group, epoch } => Self { group: group.0, epoch: epoch.0, ..of(State::Stands) },
            Located::Ended(reason) => {
                Self { what: reason.map_or("", removal_text).to_owned(), ..of(State::Ended) }
            }
            Located::Unknown => of(State::Unknown),
        }
    }
}

pub(super) fn cancel_done(outcome: CancelOutcome) -> v1::CancelDone {
    let (outcome, token, released) = match outcome {
        CancelOutcome::Cancelled => (v1::cancel_done::Outcome::Cancelled, 0, false),
        CancelOutcome::Granted { token, released } => (v1::cancel_done::Outcome::Granted, token.0, released),
        CancelOutcome::None => (v1::cancel_done::Outcome::None, 0, false),
    };
    v1::CancelDone { outcome: outcome.into(), token, released }
}

impl From<LockPage> for v1::ListLocksResponse {
    fn from(page: LockPage) -> Self {
        Self {
            locks: all(page.locks),
            next_cursor: page.next_cursor,
            unavailable_groups: groups(page.unavailable_groups),
        }
    }
}

impl From<LockView> for v1::LockView {
    fn from(lock: LockView) -> Self {
        Self {
            name: lock.name,
            group: lock.group.0,
            holder: lock.holder.map(Into::into),
            waiters: lock.waiters,
        }
    }
}

impl From<HolderView> for v1::HolderView {
    fn from(holder: HolderView) -> Self {
        Self {
            session: holder.session.get(),
            token: holder.token.0,
            held_ms: holder.held_ms,
            ttl_left_ms: holder.ttl_left_ms,
            metadata: map(&holder.metadata),
            value: holder.value,
        }
    }
}

impl From<LockDetail> for v1::LockDetail {
    fn from(detail: LockDetail) -> Self {
        Self { lock: Some(detail.lock.into()), queue: all(detail.queue), history: all(detail.history) }
    }
}

impl From<WaiterView> for v1::WaiterView {
    fn from(waiter: WaiterView) -> Self {
        Self {
            session: waiter.session.get(),
            position: waiter.position,
            revision: waiter.revision.0,
            waiting_ms: waiter.waiting_ms,
            metadata: map(&waiter.metadata),
        }
    }
}

impl From<HistoryView> for v1::HistoryView {
    fn from(line: HistoryView) -> Self {
        Self {
            revision: line.revision.0,
            at_ms: line.at_ms,
            what: line.what,
            session: line.session.map(|session| session.get()),
            token: line.token.0,
        }
    }
}

impl From<WatchEvent> for v1::WatchEvent {
    fn from(event: WatchEvent) -> Self {
        Self {
            group: event.group.0,
            revision: event.revision.0,
            at_ms: event.at_ms,
            what: event.what,
            name: event.name,
            session: event.session.map(|session| session.get()),
            token: event.token.0,
            value: event.value,
            cursor: event.cursor,
        }
    }
}

impl From<LeaderView> for v1::LeaderView {
    fn from(leader: LeaderView) -> Self {
        Self {
            name: leader.name,
            session: leader.session.get(),
            token: leader.token.0,
            value: leader.value,
            leading_ms: leader.leading_ms,
            candidates: leader.candidates,
        }
    }
}

impl From<SessionPage> for v1::ListSessionsResponse {
    fn from(page: SessionPage) -> Self {
        Self { sessions: all(page.sessions), unavailable_groups: groups(page.unavailable_groups) }
    }
}

impl From<SessionInfo> for v1::SessionInfo {
    fn from(session: SessionInfo) -> Self {
        Self {
            session: session.session.get(),
            ttl_ms: session.ttl_ms,
            ttl_left_ms: session.ttl_left_ms,
            home: session.home.0,
            groups: groups(session.groups),
            open_ms: session.open_ms,
            metadata: map(&session.metadata),
            locks: all(session.locks),
        }
    }
}

impl From<SessionLock> for v1::SessionLock {
    fn from(lock: SessionLock) -> Self {
        Self { name: lock.name, election: lock.election, token: lock.token.0, held: lock.held }
    }
}

impl From<StatusView> for v1::StatusResponse {
    fn from(status: StatusView) -> Self {
        Self {
            cluster: status.cluster,
            member: status.member,
            version: status.version,
            map_epoch: status.map_epoch.0,
            groups: all(status.groups),
        }
    }
}

impl From<MemberView> for v1::MemberView {
    fn from(member: MemberView) -> Self {
        Self {
            id: member.id,
            http: member.http,
            grpc: member.grpc,
            peer: member.peer,
            this: member.this,
            reachable: member.reachable,
            leads: groups(member.leads),
            carries: groups(member.carries),
            drained: member.drained,
        }
    }
}

impl From<GroupView> for v1::GroupView {
    fn from(group: GroupView) -> Self {
        Self {
            group: group.group.0,
            leader: group.leader,
            term: group.term,
            last_log_index: group.last_log_index,
            committed_index: group.committed_index,
            applied_index: group.applied_index,
            revision: group.revision.0,
            voters: all(group.voters),
            held: group.held,
            waiting: group.waiting,
            sessions: group.sessions,
            replicas: group.replicas,
            learners: all(group.learners),
            joint: group.joint,
        }
    }
}

impl From<GroupDetail> for v1::GroupDetail {
    fn from(detail: GroupDetail) -> Self {
        Self {
            view: Some(detail.view.into()),
            leaving: detail.leaving,
            under_way: detail.under_way,
            why: detail.why,
            entries_per_s: detail.entries_per_s,
        }
    }
}

impl From<VoterView> for v1::VoterView {
    fn from(voter: VoterView) -> Self {
        Self { member: voter.member, matched_index: voter.matched_index }
    }
}

/// The map in the order of its prefixes.
pub(super) fn partition_map(map: &PartitionMap) -> v1::PartitionMap {
    v1::PartitionMap {
        epoch: map.epoch().0,
        rules: map.rules().iter().map(|(prefix, rule)| partition_rule(prefix, rule)).collect(),
        home_slots: map.home_slots().iter().map(|group| group.0).collect(),
    }
}

fn partition_rule(prefix: &str, rule: &Rule) -> v1::PartitionRule {
    let table = match &rule.table {
        Table::Slots(slots) => v1::partition_rule::Table::Slots(v1::Slots {
            groups: slots.iter().map(|group| group.0).collect(),
        }),
        Table::Splits(splits) => {
            let splits = splits.iter().map(|(from, group)| v1::Split { from: from.clone(), group: group.0 });
            v1::partition_rule::Table::Splits(v1::Splits { splits: splits.collect() })
        }
    };
    v1::PartitionRule {
        prefix: prefix.to_owned(),
        depth: u32::from(rule.depth),
        strategy: rule.strategy.name.clone(),
        params: rule.strategy.params.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        table: Some(table),
    }
}

impl From<SnapshotView> for v1::SnapshotView {
    fn from(snapshot: SnapshotView) -> Self {
        Self {
            id: snapshot.id,
            group: snapshot.group.0,
            log_index: snapshot.log_index,
            term: snapshot.term,
            revision: snapshot.revision.0,
            size_bytes: snapshot.size_bytes,
            sha256: snapshot.sha256,
            created_at_ms: snapshot.created_at_ms,
        }
    }
}

impl From<AuditEntry> for v1::AuditEntry {
    fn from(entry: AuditEntry) -> Self {
        Self {
            index: entry.index,
            at_ms: entry.at_ms,
            actor: entry.actor,
            action: entry.action,
            target: entry.target,
            reason: entry.reason,
            outcome: entry.outcome,
        }
    }
}
