//! Restores after restores, over a store in memory: names and incarnations that nobody else has.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_locktable::table::LockTable;
use holdfast_partitioner::{GroupId, PartitionMap};

use super::{choose::Which, *};
use crate::{
    log::group_number::GroupNumber,
    meta::{MetaTable, command::MetaCommand},
    snapshot::{
        catalog::SnapshotCatalog, memory_store::MemoryStore, raft_snapshot::tests::meta as snapshot_meta,
        source::Capture,
    },
};

fn id(text: &str) -> ClusterId {
    text.parse().unwrap()
}

fn wanted() -> Wanted {
    let member = |id| MemberEntry { id, ..MemberEntry::default() };
    Wanted {
        cluster: None,
        members: (1..=3).map(member).collect(),
        replicas: 3,
        incarnation: None,
        grants: Grants::AfterLongestTtl,
        at_ms: 1,
    }
}

async fn put(store: &Arc<dyn SnapshotStore>, cluster: &str, group: u32, data: Bytes, revision: u64) {
    let catalog = SnapshotCatalog::new(Arc::clone(store), id(cluster));
    let last_log_id = snapshot_meta(1, 7).last_log_id.unwrap();
    let capture = Capture { data, last_log_id, revision, map_epoch: 1 };
    catalog.write(GroupNumber::new(group).unwrap(), &capture, 1, 1_000).await.unwrap();
}

/// A store with snapshots of a cluster of one lock group.
async fn store() -> Arc<dyn SnapshotStore> {
    let store: Arc<dyn SnapshotStore> = Arc::new(MemoryStore::default());
    let mut meta = MetaTable::new();
    let map = PartitionMap::initial(&[GroupId(1)]).unwrap();
    meta.apply(MetaCommand::InitMap { map }).result.unwrap();
    put(&store, "prod", 0, meta.encode().unwrap().into(), 0).await;
    put(&store, "prod", 1, LockTable::new(GroupId(1)).encode().into(), 0).await;
    store
}

async fn restored(
    store: &Arc<dyn SnapshotStore>,
    cluster: &str,
    wanted: Wanted,
) -> Result<Prepared, RestoreError> {
    let chosen = choose::choose(store, &id(cluster), &Which::Newest).await.unwrap();
    prepare(store, &chosen, wanted).await
}

#[tokio::test]
async fn no_two_restores_have_the_same_incarnation_or_name() {
    let store = store().await;
    let first = restored(&store, "prod", wanted()).await.unwrap();
    let second = restored(&store, "prod", wanted()).await.unwrap();
    assert_eq!((first.incarnation, first.cluster.as_str()), (1, "prod-r1"));
    assert_eq!((second.incarnation, second.cluster.as_str()), (2, "prod-r2"));
    // The first restored cluster takes snapshots of its own, and is lost in turn.
    for (group, restored) in first.rebuilt.groups {
        put(&store, "prod-r1", group.0, restored.state, (group.0 as u64) << 44).await;
    }
    let third = restored(&store, "prod-r1", wanted()).await.unwrap();
    assert_eq!(
        (third.incarnation, third.cluster.as_str()),
        (3, "prod-r3"),
        "the number of the second is in use"
    );
}

#[tokio::test]
async fn a_name_that_is_in_use_or_the_same_is_refused() {
    let store = store().await;
    let named = |cluster: &str| Wanted { cluster: Some(id(cluster)), ..wanted() };
    let same = restored(&store, "prod", named("prod")).await.unwrap_err();
    assert!(matches!(same, RestoreError::SameCluster { .. }), "{same}");
    restored(&store, "prod", named("other")).await.unwrap();
    let taken = restored(&store, "prod", named("other")).await.unwrap_err();
    assert!(matches!(taken, RestoreError::ClusterTaken { .. }), "{taken}");
}

#[tokio::test]
async fn states_that_do_not_fit_use_no_number_up() {
    let store = store().await;
    let chosen = choose::choose(&store, &id("prod"), &Which::Newest).await.unwrap();
    let mut part = chosen.clone();
    part.found.groups = BTreeMap::new();
    assert!(matches!(prepare(&store, &part, wanted()).await, Err(RestoreError::Rebuild(_))));
    assert_eq!(prepare(&store, &chosen, wanted()).await.unwrap().incarnation, 1);
}
