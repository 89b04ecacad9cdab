//! Which snapshots of a store a cluster is restored from, read and decoded.
//!
//! Of each group the newest one that is whole: a damaged one is passed over, and said so. Whether they fit together is not known
//! here, only that all are of one cluster.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use holdfast_locktable::table::LockTable;
use holdfast_partitioner::GroupId;

use super::rebuild::{At, Found};
use crate::{
    log::{group_number::GroupNumber, identity::ClusterId},
    meta::MetaTable,
    snapshot::{
        catalog::{CatalogError, SnapshotCatalog, locate},
        manifest::{Manifest, SnapshotId},
        set::SetId,
        store::{SnapshotStore, StoreError},
    },
};

/// What to restore from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The newest whole snapshot of each group.
    Newest,
    /// The newest snapshot set.
    NewestSet,
    /// This snapshot set.
    Set(SetId),
    /// This snapshot of one group, and of each other group the newest whole one that was taken no later.
    UpTo(SnapshotId),
}

/// The snapshots that were chosen.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The cluster that took them.
    pub cluster: ClusterId,
    /// What is in them.
    pub found: Found,
    /// They themselves, one of each group.
    pub manifests: BTreeMap<GroupNumber, Manifest>,
    /// Newer ones that are not whole, with what is wrong.
    pub passed_over: Vec<String>,
    /// The highest incarnation of any snapshot of the cluster, chosen or not.
    pub highest_incarnation: u64,
}

/// Why there is nothing to restore from.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// The store or a snapshot cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The store cannot be listed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store is empty.
    #[error("the snapshot store holds no snapshots; give the store of the lost cluster with --store")]
    Empty,
    /// The store holds several clusters.
    #[error("the snapshot store holds snapshots of several clusters ({}); say which with --from-cluster", found.join(", "))]
    SeveralClusters {
        /// Their names.
        found: Vec<String>,
    },
    /// No such cluster.
    #[error("the snapshot store holds no snapshots of the cluster {wanted}, only of {}", found.join(", "))]
    OtherClusters {
        /// The one asked for.
        wanted: ClusterId,
        /// Those there are.
        found: Vec<String>,
    },
    /// No such snapshot.
    #[error("there is no snapshot {snapshot} of any group; `holdfast snapshots list` shows those there are")]
    Unknown {
        /// The one asked for.
        snapshot: SnapshotId,
    },
    /// There is no set at all.
    #[error(
        "there is no snapshot set of cluster {cluster}; restore `newest`, the newest snapshot of each group"
    )]
    NoSet {
        /// The cluster.
        cluster: ClusterId,
    },
    /// A group has none that is whole.
    #[error(
        "group {group} has no snapshot that can be used{}; restore an older set, or take new snapshots",
        why(faults)
    )]
    NoneWhole {
        /// The group.
        group: GroupNumber,
        /// What is wrong with those there are.
        faults: Vec<String>,
    },
}

fn why(faults: &[String]) -> String {
    if faults.is_empty() { String::new() } else { format!(" ({})", faults.join("; ")) }
}

/// Finds the cluster whose snapshots the store holds.
///
/// # Errors
/// There is none, there are several and none is asked for, or not the one asked for.
pub async fn cluster_in(
    store: &dyn SnapshotStore,
    wanted: Option<&ClusterId>,
) -> Result<ClusterId, ChooseError> {
    let found: Vec<ClusterId> = locate::clusters(store).await?.into_iter().collect();
    let names = || found.iter().map(ToString::to_string).collect();
    match (wanted, found.as_slice()) {
        (_, []) => Err(ChooseError::Empty),
        (Some(wanted), found) if found.contains(wanted) => Ok(wanted.clone()),
        (Some(wanted), _) => Err(ChooseError::OtherClusters { wanted: wanted.clone(), found: names() }),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(ChooseError::SeveralClusters { found: names() }),
    }
}

/// Reads what to restore from.
///
/// # Errors
/// See [`ChooseError`].
pub async fn choose(
    store: &Arc<dyn SnapshotStore>,
    cluster: &ClusterId,
    which: &Which,
) -> Result<Chosen, ChooseError> {
    let catalog = SnapshotCatalog::new(Arc::clone(store), cluster.clone());
    let mut all = catalog.list_all().await?;
    let highest = all.values().flatten().map(|manifest| manifest.incarnation).max();
    let latest_ms = match which {
        Which::Newest => u64::MAX,
        Which::NewestSet | Which::Set(_) => {
            all = of_set(&catalog, cluster, which).await?;
            u64::MAX
        }
        Which::UpTo(snapshot) => {
            let named = all.values().flatten().find(|manifest| manifest.snapshot == *snapshot);
            let unknown = || ChooseError::Unknown { snapshot: snapshot.clone() };
            named.ok_or_else(unknown)?.created_unix_ms
        }
    };
    let (mut passed_over, mut manifests, mut groups) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let mut meta = None;
    for (group, of_group) in all {
        let candidates = of_group.into_iter().filter(|manifest| manifest.created_unix_ms <= latest_ms);
        let (manifest, state) = newest_whole(&catalog, group, candidates.collect(), &mut passed_over).await?;
        let index = manifest.log_index;
        match state {
            State::Meta(state) => meta = Some(At { state: *state, index }),
            State::Locks(state) => {
                groups.insert(GroupId(group.get()), At { state: *state, index });
            }
        }
        manifests.insert(group, manifest);
    }
    let none = |group| ChooseError::NoneWhole { group, faults: Vec::new() };
    let meta = match (meta, GroupNumber::try_from(GroupId::META.0)) {
        (Some(meta), _) => meta,
        (None, Ok(group)) => return Err(none(group)),
        (None, Err(_)) => return Err(ChooseError::Empty),
    };
    let highest_incarnation = highest.unwrap_or(0);
    let found = Found { meta, groups };
    Ok(Chosen { cluster: cluster.clone(), found, manifests, passed_over, highest_incarnation })
}

/// The snapshots of a set, one of each group.
async fn of_set(
    catalog: &SnapshotCatalog,
    cluster: &ClusterId,
    which: &Which,
) -> Result<BTreeMap<GroupNumber, Vec<Manifest>>, ChooseError> {
    let set = match which {
        Which::Set(set) => catalog.find_set(set).await?,
        Which::Newest | Which::NewestSet | Which::UpTo(_) => {
            let none = || ChooseError::NoSet { cluster: cluster.clone() };
            catalog.sets().await?.pop().ok_or_else(none)?
        }
    };
    let mut snapshots = BTreeMap::new();
    for member in &set.snapshots {
        snapshots.insert(member.group, vec![catalog.manifest_in(&set, member).await?]);
    }
    Ok(snapshots)
}

enum State {
    Meta(Box<MetaTable>),
    Locks(Box<LockTable>),
}

/// Reads the newest of these that is whole; they are oldest first.
async fn newest_whole(
    catalog: &SnapshotCatalog,
    group: GroupNumber,
    candidates: Vec<Manifest>,
    passed_over: &mut Vec<String>,
) -> Result<(Manifest, State), ChooseError> {
    let mut faults = Vec::new();
    for manifest in candidates.into_iter().rev() {
        let read = match catalog.read(&manifest).await {
            Ok(data) => decode(group, &data),
            Err(error @ CatalogError::Damaged { .. }) => Err(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        match read {
            Ok(state) => {
                passed_over.append(&mut faults);
                return Ok((manifest, state));
            }
            Err(fault) => faults.push(format!("{} of group {group}: {fault}", manifest.snapshot)),
        }
    }
    Err(ChooseError::NoneWhole { group, faults })
}

fn decode(group: GroupNumber, data: &Bytes) -> Result<State, String> {
    if group.get() == GroupId::META.0 {
        let state = MetaTable::decode(data).map_err(|error| error.to_string())?;
        return Ok(State::Meta(Box::new(state)));
    }
    let state = LockTable::decode(data).map_err(|error| error.to_string())?;
    if state.group().0 == group.get() {
        Ok(State::Locks(Box::new(state)))
    } else {
        Err(format!("it is of group {}", state.group()))
    }
}

#[cfg(test)]
mod tests;
