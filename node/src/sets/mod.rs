//! Takes snapshot sets: at the leader of the meta group, one at a time.
//!
//! ```text
//!   hold new moves ─► the present one ends ─► every group takes a snapshot ─► let moves go on ─► read back, check ─► set
//! ```
//! No move is under way while the groups take theirs, so each is before all of them or behind all of them. That this
//! went well is not believed but checked, by what stands in the snapshots
//! ([`consistency`](crate::snapshot::consistency)): another leader of the meta group may have moved something
//! meanwhile. The set's description is written last and only then, so that what stands in the store can be restored.
//! Decides nothing about what a set must be.

use std::{collections::BTreeSet, time::Duration};

use holdfast_locktable::ids::Term;
use holdfast_partitioner::{GroupId, MapEpoch};
use tokio::time::{Instant, timeout};

use crate::{
    endpoint::router::Router,
    group::{
        call::{GroupAnswer, GroupCall},
        proposer::GroupError,
    },
    log::group_number::GroupNumber,
    meta::{
        group::MetaGroup,
        sets::{SetResult, SetsAsked, WAITING_SETS},
    },
    raft::types::MemberId,
    snapshot::{
        catalog::{CatalogError, SnapshotCatalog},
        inspect::{Inspected, go_together, inspect},
        manifest::SnapshotId,
        set::SetManifest,
    },
};

/// How long a move that is under way may take to end before the set is given up.
const MOVE_WAIT: Duration = Duration::from_secs(20);
/// How long the groups may take; no new move begins meanwhile.
const LONGEST_HOLD: Duration = Duration::from_secs(60);
/// Pause between two looks at a move that is under way.
const LOOK: Duration = Duration::from_millis(50);
/// How often snapshots are taken that turn out not to go together.
const MOST_TRIES: u32 = 3;

/// Takes sets while this member leads the meta group.
#[derive(Debug)]
pub struct SetTaker {
    meta: MetaGroup,
    router: Router,
    catalog: SnapshotCatalog,
    asked: SetsAsked,
}

/// A try that came to nothing.
enum Failed {
    /// The snapshots do not go together; others may.
    Apart(String),
    /// There is no set now.
    No(GroupError),
}

impl From<GroupError> for Failed {
    fn from(error: GroupError) -> Self {
        Self::No(error)
    }
}

/// Snapshots of all groups as they were taken.
type Taken = Vec<(GroupId, SnapshotId)>;

impl SetTaker {
    /// A taker for a member.
    pub fn new(meta: MetaGroup, router: Router, catalog: SnapshotCatalog, asked: SetsAsked) -> Self {
        Self { meta, router, catalog, asked }
    }

    /// Takes sets as they are asked for, until the member stops. All that wait when one begins are answered by it.
    pub async fn run(mut self) {
        let mut waiting = Vec::new();
        while self.asked.recv_many(&mut waiting, WAITING_SETS).await > 0 {
            let taken = self.take().await;
            match &taken {
                Ok(set) => tracing::info!(set = %set.set, map_epoch = set.map_epoch, "took a snapshot set"),
                Err(error) => tracing::warn!(%error, "a snapshot set was not taken"),
            }
            for tell in waiting.drain(..) {
                // Whoever asked may have gone away.
                drop(tell.send(taken.clone()));
            }
        }
    }

    async fn take(&self) -> SetResult {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.attempt().await {
                Ok(set) => return Ok(set),
                Err(Failed::No(error)) => return Err(error),
                Err(Failed::Apart(why)) if tries < MOST_TRIES => {
                    tracing::info!(why, tries, "snapshots do not go together; taking others");
                }
                Err(Failed::Apart(why)) => {
                    return Err(conflict(format!(
                        "no snapshot set was taken: in {tries} tries {why}; try again in a moment"
                    )));
                }
            }
        }
    }

    async fn attempt(&self) -> Result<SetManifest, Failed> {
        let term = self.meta.confirm().await?;
        let (taken, epoch) = self.take_all(term).await?;
        let snapshots = self.read_back(taken).await?;
        let found = go_together(&snapshots).map_err(|fault| Failed::Apart(fault.to_string()))?;
        if found != epoch {
            return Err(Failed::Apart(format!("the partition map changed from epoch {epoch} to {found}")));
        }
        let manifests: Vec<_> = snapshots.into_iter().map(|one| one.manifest).collect();
        let (member, now) = (self.member(), self.meta.wall_ms());
        let Some(first) = manifests.first() else { return Err(Failed::Apart("there were none".to_owned())) };
        let set = SetManifest::of(&first.cluster, found.0, &manifests, member, now);
        self.catalog.write_set(&set).await.map_err(|error| Failed::No(unwritten(&error)))?;
        self.still_there(&set).await?;
        Ok(set)
    }

    /// Retention may have taken one of the snapshots away before it knew of the set; then there is no set.
    async fn still_there(&self, set: &SetManifest) -> Result<(), Failed> {
        for member in &set.snapshots {
            if let Err(error) = self.catalog.manifest_in(set, member).await {
                if let Err(left) = self.catalog.delete_set(set).await {
                    tracing::warn!(set = %set.set, error = %left, "cannot take a snapshot set back");
                }
                return Err(Failed::Apart(error.to_string()));
            }
        }
        Ok(())
    }

    /// Has every group take a snapshot while no move is under way. Answers them, and the epoch of the map then.
    async fn take_all(&self, term: Term) -> Result<(Taken, MapEpoch), Failed> {
        let held = timeout(MOVE_WAIT, self.meta.sets().may_start()).await;
        // Dropped at the end of this function, however it ends: moves go on.
        let _held =
            held.map_err(|_elapsed| conflict("a change of the partition map does not get on".to_owned()))?;
        self.wait_unmoved().await?;
        let (epoch, groups) = self.mapped()?;
        let all = timeout(LONGEST_HOLD, self.take_each(&groups)).await.map_err(|_elapsed| {
            conflict(format!(
                "the groups did not take their snapshots within {} s, and moves of ranges cannot wait longer; see that the \
                 snapshot store is quick, and try again",
                LONGEST_HOLD.as_secs()
            ))
        })??;
        if self.meta.leads_in() != Some(term) {
            return Err(Failed::No(GroupError::NotLeader { leader: self.meta.leader() }));
        }
        match self.mapped()? {
            (after, _) if after == epoch => Ok((all, epoch)),
            (after, _) => {
                Err(Failed::Apart(format!("the partition map changed from epoch {epoch} to {after}")))
            }
        }
    }

    /// Waits until no move is under way; none begins meanwhile.
    async fn wait_unmoved(&self) -> Result<(), GroupError> {
        let began = Instant::now();
        loop {
            let moving = self.meta.changes().under_way.and_then(|change| change.moving);
            let Some(moving) = moving else { return Ok(()) };
            if began.elapsed() >= MOVE_WAIT {
                return Err(conflict(format!(
                    "move {} of a range has been under way for {} s, and a snapshot set is taken before or after it; see \
                     `holdfast partitions show`, and try again",
                    moving.number.0,
                    MOVE_WAIT.as_secs()
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn mapped(&self) -> Result<(MapEpoch, BTreeSet<GroupId>), GroupError> {
        let map = self.meta.map().ok_or(GroupError::NotLeader { leader: None })?;
        Ok((map.epoch(), map.groups()))
    }

    async fn take_each(&self, groups: &BTreeSet<GroupId>) -> Result<Taken, GroupError> {
        let asked = groups.iter().map(|group| self.take_in(*group));
        let (meta, locks) = tokio::try_join!(self.take_meta(), futures::future::try_join_all(asked))?;
        Ok([meta].into_iter().chain(locks).collect())
    }

    async fn take_meta(&self) -> Result<(GroupId, SnapshotId), GroupError> {
        let failed = |error: GroupError| conflict(format!("the snapshot of group 0 was not taken: {error}"));
        Ok((GroupId::META, self.meta.sets().take_snapshot().await.map_err(failed)?.snapshot))
    }

    async fn take_in(&self, group: GroupId) -> Result<(GroupId, SnapshotId), GroupError> {
        let failed = |why: String| conflict(format!("the snapshot of group {group} was not taken: {why}"));
        match self.router.call(group, GroupCall::TakeSnapshot).await {
            Ok(GroupAnswer::Snapshot(taken)) => {
                let id = taken.id.parse::<SnapshotId>().map_err(|error| failed(error.to_string()))?;
                Ok((group, id))
            }
            Ok(other) => Err(failed(format!("its leader answered something else: {}", other.kind()))),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Reads the snapshots back as whoever restores them will, one after the other.
    async fn read_back(&self, taken: Taken) -> Result<Vec<Inspected>, GroupError> {
        let mut found = Vec::with_capacity(taken.len());
        for (group, snapshot) in taken {
            let number = GroupNumber::new(group.0).map_err(|error| conflict(error.to_string()))?;
            let manifest = self.catalog.find(number, &snapshot).await.map_err(|error| self.unread(error))?;
            let inspected = inspect(&self.catalog, manifest).await;
            found.push(inspected.map_err(|error| conflict(format!("no snapshot set was taken: {error}")))?);
        }
        Ok(found)
    }

    fn unread(&self, error: CatalogError) -> GroupError {
        match error {
            CatalogError::Unknown { group, snapshot } => conflict(format!(
                "the snapshot {snapshot}, which the leader of group {group} has just taken, is not in the snapshot store of \
                 member {}; a snapshot set needs one store for all members: a bucket, or a folder that they share",
                self.member()
            )),
            error => conflict(format!("no snapshot set was taken: {error}")),
        }
    }

    fn member(&self) -> MemberId {
        self.meta.raft().member()
    }
}

fn conflict(why: String) -> GroupError {
    GroupError::Conflict { why }
}

fn unwritten(error: &CatalogError) -> GroupError {
    conflict(format!("the description of the snapshot set was not written: {error}; try again"))
}
