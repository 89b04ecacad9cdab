//! From messages to plain types. Absent parts become empty ones: nothing here fails.

use holdfast_proto::v1;

use super::types::{
    AuditEntry, GroupView, HistoryView, HolderView, LeaderView, LockDetail, LockPage, LockView, MemberView,
    PartitionMap, PartitionRule, PartitionTable, SessionInfo, SessionLock, SessionPage, SnapshotView,
    StatusView, VoterView, WaiterView,
};
use crate::ids::{SessionId, Token};

fn all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

impl From<v1::ListLocksResponse> for LockPage {
    fn from(page: v1::ListLocksResponse) -> Self {
        Self {
            locks: all(page.locks),
            next_cursor: page.next_cursor,
            unavailable_groups: page.unavailable_groups,
        }
    }
}

impl From<v1::LockView> for LockView {
    fn from(lock: v1::LockView) -> Self {
        Self {
            name: lock.name,
            group: lock.group,
            holder: lock.holder.map(Into::into),
            waiters: lock.waiters,
        }
    }
}

impl From<v1::HolderView> for HolderView {
    fn from(holder: v1::HolderView) -> Self {
        Self {
            session: SessionId::from_wire(holder.session),
            token: Token::new(holder.token),
            held_ms: holder.held_ms,
            ttl_left_ms: holder.ttl_left_ms,
            metadata: holder.metadata.into_iter().collect(),
            value: holder.value,
        }
    }
}

impl From<v1::LockDetail> for LockDetail {
    fn from(detail: v1::LockDetail) -> Self {
        Self {
            lock: detail.lock.unwrap_or_default().into(),
            queue: all(detail.queue),
            history: all(detail.history),
        }
    }
}

impl From<v1::WaiterView> for WaiterView {
    fn from(waiter: v1::WaiterView) -> Self {
        Self {
            session: SessionId::from_wire(waiter.session),
            position: waiter.position,
            revision: waiter.revision,
            waiting_ms: waiter.waiting_ms,
            metadata: waiter.metadata.into_iter().collect(),
        }
    }
}

impl From<v1::HistoryView> for HistoryView {
    fn from(line: v1::HistoryView) -> Self {
        Self {
            revision: line.revision,
            at_ms: line.at_ms,
            what: line.what,
            session: line.session.map(SessionId::from_wire),
            token: line.token,
        }
    }
}

impl From<v1::LeaderView> for LeaderView {
    fn from(leader: v1::LeaderView) -> Self {
        Self {
            name: leader.name,
            session: SessionId::from_wire(leader.session),
            token: Token::new(leader.token),
            value: leader.value,
            leading_ms: leader.leading_ms,
            candidates: leader.candidates,
        }
    }
}

impl From<v1::ListSessionsResponse> for SessionPage {
    fn from(page: v1::ListSessionsResponse) -> Self {
        Self { sessions: all(page.sessions), unavailable_groups: page.unavailable_groups }
    }
}

impl From<v1::SessionInfo> for SessionInfo {
    fn from(session: v1::SessionInfo) -> Self {
        Self {
            session: SessionId::from_wire(session.session),
            ttl_ms: session.ttl_ms,
            ttl_left_ms: session.ttl_left_ms,
            home: session.home,
            groups: session.groups,
            open_ms: session.open_ms,
            metadata: session.metadata.into_iter().collect(),
            locks: all(session.locks),
        }
    }
}

impl From<v1::SessionLock> for SessionLock {
    fn from(lock: v1::SessionLock) -> Self {
        Self { name: lock.name, election: lock.election, token: lock.token, held: lock.held }
    }
}

impl From<v1::StatusResponse> for StatusView {
    fn from(status: v1::StatusResponse) -> Self {
        Self {
            cluster: status.cluster,
            member: status.member,
            version: status.version,
            map_epoch: status.map_epoch,
            groups: all(status.groups),
        }
    }
}

impl From<v1::MemberView> for MemberView {
    fn from(member: v1::MemberView) -> Self {
        Self {
            id: member.id,
            http: member.http,
            grpc: member.grpc,
            peer: member.peer,
            this: member.this,
            reachable: member.reachable,
            leads: member.leads,
            carries: member.carries,
            drained: member.drained,
        }
    }
}

impl From<v1::GroupView> for GroupView {
    fn from(group: v1::GroupView) -> Self {
        Self {
            group: group.group,
            leader: group.leader,
            term: group.term,
            last_log_index: group.last_log_index,
            committed_index: group.committed_index,
            applied_index: group.applied_index,
            revision: group.revision,
            replicas: group.replicas,
            voters: all(group.voters),
            learners: all(group.learners),
            joint: group.joint,
            held: group.held,
            waiting: group.waiting,
            sessions: group.sessions,
        }
    }
}

impl From<v1::VoterView> for VoterView {
    fn from(voter: v1::VoterView) -> Self {
        Self { member: voter.member, matched_index: voter.matched_index }
    }
}

impl From<v1::PartitionMap> for PartitionMap {
    fn from(map: v1::PartitionMap) -> Self {
        Self { epoch: map.epoch, rules: all(map.rules), home_slots: map.home_slots }
    }
}

impl From<v1::PartitionRule> for PartitionRule {
    fn from(rule: v1::PartitionRule) -> Self {
        let table = match rule.table {
            Some(v1::partition_rule::Table::Splits(table)) => PartitionTable::Splits(
                table.splits.into_iter().map(|split| (split.from, split.group)).collect(),
            ),
            Some(v1::partition_rule::Table::Slots(slots)) => PartitionTable::Slots(slots.groups),
            None => PartitionTable::Slots(Vec::new()),
        };
        Self {
            prefix: rule.prefix,
            depth: rule.depth,
            strategy: rule.strategy,
            params: rule.params.into_iter().collect(),
            table,
        }
    }
}

impl From<v1::SnapshotView> for SnapshotView {
    fn from(snapshot: v1::SnapshotView) -> Self {
        Self {
            id: snapshot.id,
            group: snapshot.group,
            log_index: snapshot.log_index,
            term: snapshot.term,
            revision: snapshot.revision,
            size_bytes: snapshot.size_bytes,
            sha256: snapshot.sha256,
            created_at_ms: snapshot.created_at_ms,
        }
    }
}

impl From<v1::AuditEntry> for AuditEntry {
    fn from(entry: v1::AuditEntry) -> Self {
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
