//! A group as the target of log compaction (rule R21).

use futures::{FutureExt, future::BoxFuture};

use super::{fault::SnapshotError, group::RaftGroup};
use crate::snapshot::{
    compaction::LogProgress,
    raft_target::{CompactionTarget, TargetStopped},
};

/// A snapshot that cannot be stored is an event for the log and not the end of the group.
impl CompactionTarget for RaftGroup {
    fn progress(&self) -> LogProgress {
        let status = self.status();
        LogProgress {
            applied: Some(status.applied),
            durable_snapshot: status.snapshot,
            purged: status.purged,
        }
    }

    /// Returns when the snapshot is durable.
    fn build_snapshot(&self) -> BoxFuture<'_, Result<(), TargetStopped>> {
        async move {
            match RaftGroup::build_snapshot(self).await {
                Ok(_) => Ok(()),
                Err(err @ SnapshotError::Stopped { .. }) => Err(TargetStopped { reason: err.to_string() }),
                Err(err @ (SnapshotError::Store { .. } | SnapshotError::Empty { .. })) => {
                    tracing::warn!(group = %self.id(), %err, "no snapshot");
                    Ok(())
                }
            }
        }
        .boxed()
    }

    fn purge(&self, upto: u64) -> BoxFuture<'_, Result<(), TargetStopped>> {
        async move { self.purge_upto(upto).await.map_err(|err| TargetStopped { reason: err.to_string() }) }
            .boxed()
    }
}
