//! Where snapshots are looked at: over a cluster's members, or in a snapshot store without any cluster.
//!
//! Both give the same answers. Knows no table and no exit code but those of failures.

use std::{sync::Arc, time::Duration};

use clap::Args;
use holdfast_client::{Client, SnapshotDetail, SnapshotSet, SnapshotSetDetail, SnapshotView};
use holdfast_node::{
    config::{MemberConfig, SnapshotsConfig, StorePlace},
    log::{group_number::GroupNumber, identity::ClusterId},
    member::ground::snapshot_store,
    snapshot::{
        catalog::{SnapshotCatalog, locate},
        inspect::{self, ExaminedSet},
        manifest::{Manifest, SnapshotId},
        set::SetId,
        store::SnapshotStore,
    },
};

use super::{convert, progress::Progress};
use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::Failure,
};

/// How long a member may work on one request: reading a large snapshot back takes a while.
const PATIENCE: Duration = Duration::from_secs(600);

/// Which snapshot store, where no member is to be asked.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// Look into this snapshot store itself, without a cluster: a folder, or s3://bucket/prefix
    #[arg(long, value_name = "FOLDER|s3://…")]
    pub store: Option<String>,
    /// The cluster whose snapshots are meant, where the store has those of several
    #[arg(long, value_name = "NAME", requires = "store")]
    pub from_cluster: Option<ClusterId>,
}

/// Which snapshot.
#[derive(Clone, Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Its id, as `holdfast snapshots list` shows it
    #[arg(value_name = "ID")]
    pub id: SnapshotId,
    /// Its group, where several groups have a snapshot of that id
    #[arg(long, value_name = "N")]
    pub group: Option<u32>,
}

/// Where snapshots are looked at.
#[derive(Debug)]
pub(crate) enum Source {
    /// Over a cluster's members.
    Members(Client),
    /// In a store.
    Store(SnapshotCatalog),
}

impl Source {
    /// The store that is named, else the members.
    pub(crate) async fn open(global: &Global, args: &StoreArgs) -> Result<Source, Failure> {
        match &args.store {
            Some(text) => {
                let store = opened(text)?;
                let cluster = the_cluster(store.as_ref(), text, args.from_cluster.as_ref()).await?;
                Ok(Source::Store(SnapshotCatalog::new(store, cluster)))
            }
            None => Ok(Source::Members(members(global).await?)),
        }
    }

    pub(super) async fn list(&self) -> Result<Vec<SnapshotView>, Failure> {
        match self {
            Source::Members(client) => client.admin().snapshots().await.map_err(|e| failed(&e)),
            Source::Store(catalog) => {
                let groups = catalog.list_all().await.map_err(|e| broken(&e))?;
                let mut all: Vec<SnapshotView> = groups.into_values().flatten().map(convert::view).collect();
                all.sort_by(|a, b| (a.created_at_ms, a.group, &a.id).cmp(&(b.created_at_ms, b.group, &b.id)));
                Ok(all)
            }
        }
    }

    pub(super) async fn show(&self, which: &SnapshotArgs) -> Result<SnapshotDetail, Failure> {
        match self {
            Source::Members(client) => {
                let found = client.admin().snapshot(which.id.as_str(), which.group).await;
                found.map_err(|e| failed(&e))
            }
            Source::Store(catalog) => Ok(convert::detail(inspect::described(found(catalog, which).await?))),
        }
    }

    pub(super) async fn verify(&self, which: &SnapshotArgs) -> Result<SnapshotDetail, Failure> {
        let _bar = Progress::of_unknown_length(&format!("verifying {}", which.id));
        match self {
            Source::Members(client) => {
                let verified = client.admin().verify_snapshot(which.id.as_str(), which.group).await;
                verified.map_err(|e| failed(&e))
            }
            Source::Store(catalog) => {
                let manifest = found(catalog, which).await?;
                let examined = inspect::examine(catalog, manifest).await.map_err(|e| broken(&e))?;
                Ok(convert::detail(examined))
            }
        }
    }

    /// Answers the sets that went with it.
    pub(super) async fn delete(&self, which: &SnapshotArgs) -> Result<Vec<String>, Failure> {
        match self {
            Source::Members(client) => {
                let admin = client.admin();
                let gone = admin.delete_snapshot(which.id.as_str(), which.group, &cluster::actor()).await;
                gone.map_err(|e| failed(&e))
            }
            Source::Store(catalog) => {
                let group = group(catalog, which).await?;
                let sets = catalog.remove(group, &which.id).await.map_err(|e| broken(&e))?;
                Ok(sets.into_iter().map(String::from).collect())
            }
        }
    }

    pub(super) async fn sets(&self) -> Result<Vec<SnapshotSet>, Failure> {
        match self {
            Source::Members(client) => client.admin().snapshot_sets().await.map_err(|e| failed(&e)),
            Source::Store(catalog) => {
                let sets = catalog.sets().await.map_err(|e| broken(&e))?;
                Ok(sets.into_iter().map(convert::set).collect())
            }
        }
    }

    pub(super) async fn verify_set(&self, id: &SetId) -> Result<SnapshotSetDetail, Failure> {
        match self {
            Source::Members(client) => {
                let _bar = Progress::of_unknown_length(&format!("verifying {id}"));
                client.admin().verify_snapshot_set(id.as_str()).await.map_err(|e| failed(&e))
            }
            Source::Store(catalog) => {
                let set = catalog.find_set(id).await.map_err(|e| broken(&e))?;
                let bar = Progress::of(set.snapshots.len() as u64, &format!("verifying {id}"));
                let examined = inspect::examine_set(catalog, set, |_| bar.step()).await;
                let ExaminedSet { set, snapshots, fault } = examined.map_err(|e| broken(&e))?;
                let snapshots = snapshots.into_iter().map(convert::detail).collect();
                Ok(SnapshotSetDetail { set: convert::set(set), snapshots, fault })
            }
        }
    }
}

/// A client whose requests may take as long as reading a large snapshot does.
pub(super) async fn members(global: &Global) -> Result<Client, Failure> {
    cluster::patient(global, PATIENCE).await
}

async fn group(catalog: &SnapshotCatalog, which: &SnapshotArgs) -> Result<GroupNumber, Failure> {
    match which.group {
        Some(number) => GroupNumber::new(number).map_err(|e| Failure::usage(e.to_string())),
        None => catalog.group_of(&which.id).await.map_err(|e| broken(&e)),
    }
}

async fn found(catalog: &SnapshotCatalog, which: &SnapshotArgs) -> Result<Manifest, Failure> {
    let group = group(catalog, which).await?;
    catalog.find(group, &which.id).await.map_err(|e| broken(&e))
}

/// The settings of snapshots that mean this store.
pub(super) fn settings(store: &str) -> SnapshotsConfig {
    SnapshotsConfig { store: Some(store.to_owned()), ..SnapshotsConfig::default() }
}

/// Opens the store. A folder must be there: opening one would make it.
pub(super) fn opened(text: &str) -> Result<Arc<dyn SnapshotStore>, Failure> {
    let config = MemberConfig { snapshots: settings(text), ..MemberConfig::default() };
    let place = config.snapshot_place().map_err(|why| Failure::usage(format!("--store: {why}")))?;
    if let StorePlace::Folder(folder) = place
        && !folder.is_dir()
    {
        return Err(Failure::other(format!("there is no snapshot store {}", folder.display())));
    }
    snapshot_store(&config).map_err(|e| broken(&e))
}

/// The cluster that is named, else the only one.
async fn the_cluster(
    store: &dyn SnapshotStore,
    text: &str,
    named: Option<&ClusterId>,
) -> Result<ClusterId, Failure> {
    let clusters = locate::clusters(store).await.map_err(|e| broken(&e))?;
    let list = || clusters.iter().map(ClusterId::to_string).collect::<Vec<_>>().join(", ");
    match named {
        Some(named) if clusters.contains(named) => Ok(named.clone()),
        Some(named) => {
            let all = if clusters.is_empty() { "none".to_owned() } else { list() };
            Err(Failure::other(format!(
                "{text} has no snapshots of the cluster {named}; it has those of: {all}"
            )))
        }
        None if clusters.len() > 1 => Err(Failure::usage(format!(
            "{text} has snapshots of several clusters; say which is meant with --from-cluster: {}",
            list()
        ))),
        None => clusters.first().cloned().ok_or_else(|| Failure::other(format!("{text} has no snapshots"))),
    }
}

fn broken(error: &dyn std::error::Error) -> Failure {
    Failure::other(error.to_string())
}
