//! What compaction acts on: openraft's own snapshot and the log of one group.

use futures::{FutureExt, future::BoxFuture};
use openraft::{Raft, async_runtime::watch::WatchReceiver, storage::RaftStateMachine};

use super::compaction::LogProgress;
use crate::raft::types::TypeConfig;

/// openraft has ended and takes no orders any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the group has stopped: {reason}")]
pub struct TargetStopped {
    /// Why.
    pub reason: String,
}

/// A group whose log is compacted.
pub trait CompactionTarget: Send + Sync + 'static {
    /// Where the log stands.
    fn progress(&self) -> LogProgress;
    /// Begins to build a snapshot; it is durable once `progress` shows it.
    fn build_snapshot(&self) -> BoxFuture<'_, Result<(), TargetStopped>>;
    /// Begins to purge the entries up to `upto`.
    fn purge(&self, upto: u64) -> BoxFuture<'_, Result<(), TargetStopped>>;
}

/// Its state machine must have made a snapshot durable before it reports it as built or installed.
impl<SM> CompactionTarget for Raft<TypeConfig, SM>
where
    SM: RaftStateMachine<TypeConfig>,
{
    fn progress(&self) -> LogProgress {
        let metrics = self.data_metrics();
        let metrics = metrics.borrow_watched();
        LogProgress {
            applied: metrics.last_applied.map(|id| id.index),
            durable_snapshot: metrics.snapshot.map(|id| id.index),
            purged: metrics.purged.map(|id| id.index),
        }
    }

    fn build_snapshot(&self) -> BoxFuture<'_, Result<(), TargetStopped>> {
        async move {
            self.trigger().snapshot().await.map_err(|err| TargetStopped { reason: err.to_string() })
        }
        .boxed()
    }

    fn purge(&self, upto: u64) -> BoxFuture<'_, Result<(), TargetStopped>> {
        async move {
            self.trigger().purge_log(upto).await.map_err(|err| TargetStopped { reason: err.to_string() })
        }
        .boxed()
    }
}
