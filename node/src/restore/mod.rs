//! A new cluster from what is left of a lost one (rule R20): from snapshots in the store, or from one member's folder.
//!
//! ```text
//!  store ── choose ──┐
//!                    ├──► Found ── rebuild (pure) ──► Rebuilt ── write ──► one data folder for each member
//!  folder ─ survivor ┘                 ▲
//!                        incarnation ──┘  claimed in the store, or given by the operator
//! ```
//! The new cluster has another id, so that no survivor of the lost one is heard in it, and another incarnation, so that no
//! token of it was ever handed out. Everything is read, decoded and checked before anything is written. Works offline: it
//! talks to no member.

pub mod choose;
pub mod incarnation;
pub mod rebuild;
pub mod survivor;
pub mod write;

use std::sync::Arc;

use self::{
    choose::{ChooseError, Chosen},
    incarnation::IncarnationError,
    rebuild::{Found, Grants, RebuildError, Rebuilt},
    write::WriteError,
};
use crate::{
    config::MemberEntry,
    log::identity::{ClusterId, InvalidClusterId},
    snapshot::store::{SnapshotStore, StoreError},
};

/// What the new cluster is to be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its id; where none is given, the lost one's with the incarnation.
    pub cluster: Option<ClusterId>,
    /// Its members.
    pub members: Vec<MemberEntry>,
    /// On how many members each lock group is.
    pub replicas: u16,
    /// The incarnation; where none is given, the next one is claimed in the store.
    pub incarnation: Option<u64>,
    /// When locks are granted.
    pub grants: Grants,
    /// Milliseconds since 1970, for the audit log.
    pub at_ms: u64,
}

/// The new cluster, ready to be written.
#[derive(Debug)]
pub struct Prepared {
    /// Its id.
    pub cluster: ClusterId,
    /// Its incarnation.
    pub incarnation: u64,
    /// Its members.
    pub members: Vec<MemberEntry>,
    /// The states of its groups.
    pub rebuilt: Rebuilt,
}

/// Why there is no new cluster. Nothing but a claimed incarnation may be left of it.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The snapshots cannot be had.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// There is no incarnation that is surely above all others.
    #[error(transparent)]
    Incarnation(#[from] IncarnationError),
    /// The states do not make up a cluster.
    #[error(transparent)]
    Rebuild(#[from] RebuildError),
    /// The folders cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The id that the new cluster would have is none.
    #[error("the new cluster cannot be named after the lost one ({0}); give it a name with --cluster")]
    ClusterId(#[from] InvalidClusterId),
    /// There is such a cluster already, or was.
    #[error(
        "the cluster {cluster} has left something in the snapshot store already; give the new one another name with --cluster"
    )]
    ClusterTaken {
        /// The name.
        cluster: ClusterId,
    },
    /// It would not be another cluster.
    #[error(
        "the new cluster must not be named {cluster} as the lost one: survivors of that would take part in it"
    )]
    SameCluster {
        /// The name.
        cluster: ClusterId,
    },
}

/// Makes the new cluster from chosen snapshots. Claims its incarnation in the store, unless one is given; writes no folder.
///
/// # Errors
/// See [`RestoreError`].
pub async fn prepare(
    store: &Arc<dyn SnapshotStore>,
    chosen: &Chosen,
    wanted: Wanted,
) -> Result<Prepared, RestoreError> {
    let lost = &chosen.cluster;
    let origin = incarnation::origin_of(store.as_ref(), lost).await?;
    let seen = chosen.highest_incarnation.max(chosen.found.highest_incarnation());
    // Whether the states fit together is known before a number is used up.
    let trial = incarnation::next_above(store.as_ref(), &origin, seen).await?;
    rebuild::rebuild(&chosen.found, &plan(&wanted, trial, lost))?;
    name(&wanted, lost, trial)?;
    let number = match wanted.incarnation {
        Some(given) => incarnation::check_given(store.as_ref(), &origin, seen, given).await?,
        None => incarnation::claim(store.as_ref(), &origin, seen).await?,
    };
    let cluster = name(&wanted, lost, number)?;
    note(store.as_ref(), &cluster, &origin, wanted.incarnation.is_none()).await?;
    let rebuilt = rebuild::rebuild(&chosen.found, &plan(&wanted, number, lost))?;
    Ok(Prepared { cluster, incarnation: number, members: wanted.members, rebuilt })
}

/// Notes in the store that there is this cluster now, and where it comes from. That may fail only where it is not `required`.
///
/// # Errors
/// There was such a cluster before, or the store does not take it.
pub async fn note(
    store: &dyn SnapshotStore,
    cluster: &ClusterId,
    origin: &ClusterId,
    required: bool,
) -> Result<(), RestoreError> {
    if incarnation::is_taken(store, cluster).await? {
        return Err(RestoreError::ClusterTaken { cluster: cluster.clone() });
    }
    match incarnation::note_origin(store, cluster, origin).await {
        // Another restore was faster.
        Err(IncarnationError::Unnoted { fault: StoreError::AlreadyExists { .. }, .. }) => {
            Err(RestoreError::ClusterTaken { cluster: cluster.clone() })
        }
        Err(error) if required => Err(error.into()),
        // An incarnation is given because the store cannot be written.
        Err(error) => {
            tracing::warn!(%error, "restores of the new cluster's snapshots must be given an incarnation, too");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Makes the new cluster from what one member has. The operator answers for the incarnation.
///
/// # Errors
/// See [`RestoreError`].
pub fn prepare_without_store(
    lost: &ClusterId,
    found: &Found,
    incarnation: u64,
    wanted: Wanted,
) -> Result<Prepared, RestoreError> {
    let cluster = name(&wanted, lost, incarnation)?;
    let rebuilt = rebuild::rebuild(found, &plan(&wanted, incarnation, lost))?;
    Ok(Prepared { cluster, incarnation, members: wanted.members, rebuilt })
}

fn plan<'a>(wanted: &'a Wanted, incarnation: u64, lost: &'a ClusterId) -> rebuild::Plan<'a> {
    let members = wanted.members.iter().map(|member| member.id).collect();
    let Wanted { replicas, grants, at_ms, .. } = *wanted;
    rebuild::Plan { incarnation, members, replicas, grants, lost, at_ms }
}

/// The name of the new cluster: a number behind that of the lost one, in the place of an earlier one.
fn name(wanted: &Wanted, lost: &ClusterId, incarnation: u64) -> Result<ClusterId, RestoreError> {
    let cluster = match &wanted.cluster {
        Some(cluster) => cluster.clone(),
        None => {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let stem =
                lost.as_str().rsplit_once("-r").filter(|(stem, tail)| !stem.is_empty() && digits(tail));
            format!("{}-r{incarnation}", stem.map_or(lost.as_str(), |(stem, _)| stem)).parse()?
        }
    };
    if cluster == *lost { Err(RestoreError::SameCluster { cluster }) } else { Ok(cluster) }
}

#[cfg(test)]
mod tests;
