//! Where a snapshot's content comes from: the seam to the group.

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::raft::types::{LogId, MemberId};

/// A group's state at one point of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The encoded state.
    pub data: Bytes,
    /// The last entry in it.
    pub last_log_id: LogId,
    /// The group's revision at that point.
    pub revision: u64,
    /// Epoch of the partition map that the group knew.
    pub map_epoch: u64,
}

/// Why there is nothing to capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The group's leader takes snapshots, and that is another member.
    #[error("this member does not lead the group; ask {}", leader.map_or("its leader, once there is one".to_owned(), |leader| format!("member {leader}")))]
    NotLeader {
        /// Who leads, if that is known.
        leader: Option<MemberId>,
    },
    /// The state cannot be had now.
    #[error("the group's state cannot be captured: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// Gives the state of one group. Implemented by the group.
pub trait SnapshotSource: Send + Sync + 'static {
    /// The state as of now or later, consistent in itself.
    fn capture(&self) -> BoxFuture<'_, Result<Capture, CaptureError>>;
}
