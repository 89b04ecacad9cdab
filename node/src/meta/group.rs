//! The meta group on one member: verbs for its leader, and the partition map for everybody.
//!
//! No verb here forwards: a member that does not lead the group says so.

use std::sync::Arc;

use holdfast_locktable::{ids::Revision, table::Position};
use holdfast_partitioner::{GroupId, PartitionMap};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use super::{AuditRecord, MetaApplied, MetaCommand, MetaOutcome, encode_command};
use crate::{
    clock::Clock,
    endpoint::types::{AuditEntry, GroupView},
    group::{proposer::GroupError, read::group_view},
    raft::{
        group::RaftGroup,
        sink::ApplySink,
        types::{MemberId, Reply},
    },
};

/// A verb for the leader of the meta group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MetaCall {
    /// Add a line to the audit log.
    Record {
        /// Who.
        actor: String,
        /// What.
        action: String,
        /// On what.
        target: String,
        /// Why.
        reason: String,
        /// How it went so far.
        outcome: String,
    },
    /// Read the newest lines of the audit log.
    Audit {
        /// At most so many.
        limit: u32,
    },
    /// Figures of the group.
    Status,
}

/// What a verb answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MetaAnswer {
    /// Done.
    Done,
    /// Lines of the audit log, oldest first.
    Audit(Vec<AuditEntry>),
    /// Figures.
    Status(Box<GroupView>),
}

/// The result of a verb.
pub type MetaResult = Result<MetaAnswer, GroupError>;

/// The meta group on this member. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MetaGroup {
    raft: RaftGroup,
    clock: Clock,
}

impl MetaGroup {
    /// The meta group of a member.
    pub fn new(raft: RaftGroup, clock: Clock) -> Self {
        Self { raft, clock }
    }

    /// Its Raft half.
    pub fn raft(&self) -> &RaftGroup {
        &self.raft
    }

    /// Its leader as this member knows it.
    pub fn leader(&self) -> Option<MemberId> {
        self.raft.leadership().borrow().leader
    }

    /// Whether this member leads it and has applied an entry of its own term.
    pub fn leads(&self) -> bool {
        self.raft.leadership().borrow().here
    }

    /// Carries out a verb, if this member leads the group.
    pub async fn call(&self, call: MetaCall) -> MetaResult {
        if !self.leads() {
            return Err(GroupError::NotLeader { leader: self.leader() });
        }
        match call {
            MetaCall::Record { actor, action, target, reason, outcome } => {
                let at_ms = self.clock.wall_ms();
                self.propose(MetaCommand::Record(AuditRecord {
                    at_ms,
                    actor,
                    action,
                    target,
                    reason,
                    outcome,
                }))
                .await?;
                Ok(MetaAnswer::Done)
            }
            MetaCall::Audit { limit } => {
                self.raft
                    .confirm_leadership()
                    .await
                    .map_err(|error| GroupError::NotLeader { leader: error.leader })?;
                Ok(MetaAnswer::Audit(self.audit(limit as usize)))
            }
            MetaCall::Status => Ok(MetaAnswer::Status(Box::new(self.status()))),
        }
    }

    /// Sets the first partition map, where there is none.
    pub async fn init_map(&self, map: PartitionMap) -> Result<(), GroupError> {
        self.propose(MetaCommand::InitMap { map }).await
    }

    /// The partition map as this member's replica has it.
    pub fn map(&self) -> Option<PartitionMap> {
        self.raft.with_meta(|meta, _| meta.map().cloned()).flatten()
    }

    async fn propose(&self, command: MetaCommand) -> Result<(), GroupError> {
        let payload = encode_command(&command).map_err(|error| GroupError::Fatal(error.to_string()))?;
        match self.raft.propose(payload.into()).await? {
            // A map that is there already is what was wanted.
            Reply::Meta { .. } => Ok(()),
            other => Err(GroupError::Fatal(format!("the meta group answered {other:?}"))),
        }
    }

    fn audit(&self, limit: usize) -> Vec<AuditEntry> {
        let entry = |line: super::AuditLine<'_>| AuditEntry {
            index: line.index,
            at_ms: line.record.at_ms,
            actor: line.record.actor.clone(),
            action: line.record.action.clone(),
            target: line.record.target.clone(),
            reason: line.record.reason.clone(),
            outcome: line.record.outcome.clone(),
        };
        self.raft.with_meta(|meta, _| meta.audit(limit).map(entry).collect()).unwrap_or_default()
    }

    /// Figures of the group as this member knows them.
    pub fn status(&self) -> GroupView {
        group_view(
            GroupId::META,
            self.raft.status(),
            Revision(0),
            holdfast_locktable::view::Counts::default(),
        )
    }
}

/// Notices when the replica's partition map may have changed.
#[derive(Debug, Default)]
pub struct MapSink {
    stale: Arc<Notify>,
}

impl MapSink {
    /// Notified when the map may have changed.
    pub fn stale(&self) -> Arc<Notify> {
        self.stale.clone()
    }
}

impl ApplySink<MetaApplied> for MapSink {
    fn applied(&self, batch: Vec<(Position, MetaApplied)>) {
        let changed =
            |(_, applied): &(Position, MetaApplied)| matches!(applied.result, Ok(MetaOutcome::MapSet { .. }));
        if batch.iter().any(changed) {
            self.stale.notify_one();
        }
    }

    fn restored(&self) {
        self.stale.notify_one();
    }
}

/// Copies the replica's map to where everybody looks, whenever it may have changed.
pub async fn follow_map(group: MetaGroup, map: watch::Sender<Option<Arc<PartitionMap>>>, stale: Arc<Notify>) {
    loop {
        if let Some(now) = group.map() {
            map.send_replace(Some(Arc::new(now)));
        }
        stale.notified().await;
    }
}
