//! What a group's snapshotter works on: the state to take away, and the log to compact.
//!
//! Only the leader takes snapshots to the store; every member compacts its own log.

use futures::future::BoxFuture;
use holdfast_partitioner::GroupId;

use crate::{
    endpoint::{MapWatch, types::SnapshotView},
    raft::group::RaftGroup,
    snapshot::{
        manifest::Manifest,
        source::{Capture, CaptureError, SnapshotSource},
    },
};

/// Gives the state of a group while this member leads it.
#[derive(Clone, Debug)]
pub struct GroupSource {
    raft: RaftGroup,
    map: MapWatch,
}

impl GroupSource {
    /// The source of one group; the map says which epoch its content belongs to.
    pub fn new(raft: RaftGroup, map: MapWatch) -> Self {
        Self { raft, map }
    }

    async fn capture_now(&self) -> Result<Capture, CaptureError> {
        let not_leader = |leader| CaptureError::NotLeader { leader };
        if !self.raft.leadership().borrow().here {
            return Err(not_leader(self.raft.leadership().borrow().leader));
        }
        self.raft.confirm_leadership().await.map_err(|error| not_leader(error.leader))?;
        let unavailable = |reason: String| CaptureError::Unavailable { reason };
        let (meta, data, revision) =
            self.raft.capture().await.map_err(|error| unavailable(error.to_string()))?;
        let last_log_id =
            meta.last_log_id.ok_or_else(|| unavailable("nothing has been applied yet".to_owned()))?;
        let map_epoch = self.map.borrow().as_ref().map_or(0, |map| map.epoch().0);
        Ok(Capture { data, last_log_id, revision: revision.0, map_epoch })
    }
}

impl SnapshotSource for GroupSource {
    fn capture(&self) -> BoxFuture<'_, Result<Capture, CaptureError>> {
        Box::pin(self.capture_now())
    }
}

impl From<Manifest> for SnapshotView {
    fn from(manifest: Manifest) -> Self {
        Self {
            id: manifest.snapshot.as_str().to_owned(),
            group: GroupId(manifest.group.get()),
            log_index: manifest.log_index,
            term: manifest.log_term,
            revision: holdfast_locktable::ids::Revision(manifest.revision),
            size_bytes: manifest.size_bytes,
            sha256: manifest.sha256,
            created_at_ms: manifest.created_unix_ms,
        }
    }
}
