//! Where snapshots of the meta group and sets of all groups are asked for, and how moves are held meanwhile.
//!
//! Knows neither how a set is taken nor how a range is moved; both ask here.

use std::sync::Arc;

use actix::Addr;
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc, oneshot};

use crate::{
    group::proposer::GroupError,
    snapshot::{
        actor::{Snapshotter, TakeSnapshot},
        manifest::Manifest,
        set::SetManifest,
    },
};

/// Requests that may wait for the next set; all of them are answered by it. Beyond it they are refused.
pub const WAITING_SETS: usize = 64;

/// What comes of a set that was asked for.
pub type SetResult = Result<SetManifest, GroupError>;

/// Who waits for a set.
pub type SetRequest = oneshot::Sender<SetResult>;

/// What is asked for, for whoever takes sets.
pub type SetsAsked = mpsc::Receiver<SetRequest>;

/// Asks for sets. Clones are the same.
#[derive(Clone, Debug)]
pub struct SetDesk {
    ask: mpsc::Sender<SetRequest>,
    starts: Arc<Mutex<()>>,
    snapshotter: Addr<Snapshotter>,
}

impl SetDesk {
    /// A desk over the meta group's own snapshotter, and what is asked there.
    #[must_use]
    pub fn new(snapshotter: Addr<Snapshotter>) -> (SetDesk, SetsAsked) {
        let (ask, asked) = mpsc::channel(WAITING_SETS);
        (SetDesk { ask, starts: Arc::default(), snapshotter }, asked)
    }

    /// Takes a snapshot of the meta group.
    ///
    /// # Errors
    /// Where it was not taken; nothing of it can be used then.
    pub async fn take_snapshot(&self) -> Result<Manifest, GroupError> {
        match self.snapshotter.send(TakeSnapshot).await {
            Ok(Ok(manifest)) => Ok(manifest),
            Ok(Err(error)) => Err(GroupError::Fatal(format!("the snapshot was not taken: {error}"))),
            Err(error) => Err(GroupError::Fatal(format!("the snapshotter has stopped: {error}"))),
        }
    }

    /// Asks for a set that begins now or later.
    pub(super) async fn take(&self) -> SetResult {
        let (tell, told) = oneshot::channel();
        self.ask.try_send(tell).map_err(|_full| GroupError::Overloaded)?;
        told.await.unwrap_or(Err(GroupError::NotLeader { leader: None }))
    }

    /// The right to begin a move or to change the map at this member; nobody else has it until it is dropped. A move
    /// that has begun goes on without it.
    pub async fn may_start(&self) -> OwnedMutexGuard<()> {
        self.starts.clone().lock_owned().await
    }
}
