//! Which snapshots are taken, over a store in memory: newest, named, of a set, damaged, of several clusters.

use holdfast_partitioner::PartitionMap;

use super::*;
use crate::{
    meta::command::MetaCommand,
    raft::types::LogId,
    snapshot::{
        memory_store::MemoryStore, raft_snapshot::tests::meta as snapshot_meta, set::SetManifest,
        source::Capture, store::PutMode,
    },
};

fn cluster(text: &str) -> ClusterId {
    text.parse().unwrap()
}

fn number(group: u32) -> GroupNumber {
    GroupNumber::new(group).unwrap()
}

fn at(index: u64) -> LogId {
    snapshot_meta(1, index).last_log_id.unwrap()
}

fn state(group: u32) -> Bytes {
    if group > 0 {
        return LockTable::new(GroupId(group)).encode().into();
    }
    let mut meta = MetaTable::new();
    let map = PartitionMap::initial(&[GroupId(1)]).unwrap();
    meta.apply(MetaCommand::InitMap { map }).result.unwrap();
    meta.encode().unwrap().into()
}

async fn put(store: &Arc<dyn SnapshotStore>, name: &str, group: u32, index: u64, data: Bytes) -> SnapshotId {
    let catalog = SnapshotCatalog::new(Arc::clone(store), cluster(name));
    let capture = Capture { data, last_log_id: at(index), revision: (index << 44) | 1, map_epoch: 1 };
    catalog.write(number(group), &capture, 1, index * 1_000).await.unwrap().snapshot
}

async fn newest(store: &Arc<dyn SnapshotStore>) -> Result<Chosen, ChooseError> {
    choose(store, &cluster("prod"), &Which::Newest).await
}

fn empty() -> Arc<dyn SnapshotStore> {
    Arc::new(MemoryStore::default())
}

#[tokio::test]
async fn of_each_group_the_newest_is_taken() {
    let store = empty();
    for index in [1, 2, 3] {
        put(&store, "prod", 0, index, state(0)).await;
        put(&store, "prod", 1, index, state(1)).await;
    }
    let chosen = newest(&store).await.unwrap();
    assert_eq!((chosen.found.meta.index, chosen.found.groups[&GroupId(1)].index), (3, 3));
    assert_eq!((chosen.highest_incarnation, chosen.passed_over.len()), (3, 0));
}

#[tokio::test]
async fn a_named_snapshot_takes_the_others_that_are_no_younger() {
    let store = empty();
    put(&store, "prod", 0, 1, state(0)).await;
    let named = put(&store, "prod", 1, 2, state(1)).await;
    put(&store, "prod", 0, 3, state(0)).await;
    put(&store, "prod", 1, 4, state(1)).await;
    let chosen = choose(&store, &cluster("prod"), &Which::UpTo(named)).await.unwrap();
    assert_eq!((chosen.found.meta.index, chosen.found.groups[&GroupId(1)].index), (1, 2));
    assert_eq!(chosen.highest_incarnation, 4, "what is not restored was in use all the same");
    let unknown: SnapshotId = "1-x".parse().unwrap();
    let refused = choose(&store, &cluster("prod"), &Which::UpTo(unknown)).await.unwrap_err();
    assert!(matches!(refused, ChooseError::Unknown { .. }), "{refused}");
}

#[tokio::test]
async fn a_set_is_restored_as_it_was_put_together() {
    let store = empty();
    let newest_set = Which::NewestSet;
    let none = choose(&store, &cluster("prod"), &newest_set).await.unwrap_err();
    assert!(matches!(none, ChooseError::NoSet { .. }), "{none}");
    put(&store, "prod", 0, 1, state(0)).await;
    put(&store, "prod", 1, 1, state(1)).await;
    let catalog = SnapshotCatalog::new(Arc::clone(&store), cluster("prod"));
    let members: Vec<Manifest> = catalog.list_all().await.unwrap().into_values().flatten().collect();
    let set = SetManifest::of(&cluster("prod"), 1, &members, 1, 5_000);
    catalog.write_set(&set).await.unwrap();
    put(&store, "prod", 1, 2, state(1)).await;
    for which in [newest_set, Which::Set(set.set.clone())] {
        let chosen = choose(&store, &cluster("prod"), &which).await.unwrap();
        assert_eq!(chosen.found.groups[&GroupId(1)].index, 1);
        assert_eq!(chosen.highest_incarnation, 2);
    }
}

#[tokio::test]
async fn a_damaged_one_is_passed_over_and_said() {
    let store = empty();
    put(&store, "prod", 0, 1, state(0)).await;
    put(&store, "prod", 1, 1, state(1)).await;
    put(&store, "prod", 1, 2, "no state at all".into()).await;
    let chosen = newest(&store).await.unwrap();
    assert_eq!(chosen.found.groups[&GroupId(1)].index, 1);
    assert!(
        chosen.passed_over.len() == 1 && chosen.passed_over[0].contains("group 1"),
        "{:?}",
        chosen.passed_over
    );
}

#[tokio::test]
async fn a_group_without_a_whole_one_is_named_with_the_reason() {
    let store = empty();
    put(&store, "prod", 0, 1, state(0)).await;
    put(&store, "prod", 1, 1, state(2)).await;
    let refused = newest(&store).await.unwrap_err().to_string();
    assert!(refused.contains("group 1 has no snapshot") && refused.contains("it is of group 2"), "{refused}");
    let without_meta = empty();
    put(&without_meta, "prod", 1, 1, state(1)).await;
    let refused = newest(&without_meta).await.unwrap_err().to_string();
    assert!(refused.contains("group 0 has no snapshot"), "{refused}");
}

#[tokio::test]
async fn the_cluster_is_found_or_asked_for() {
    let store = empty();
    assert!(matches!(cluster_in(store.as_ref(), None).await, Err(ChooseError::Empty)));
    put(&store, "prod", 1, 1, state(1)).await;
    store.put(&"cluster/gone/origin".parse().unwrap(), "x".into(), PutMode::CreateOnly).await.unwrap();
    assert_eq!(cluster_in(store.as_ref(), None).await.unwrap(), cluster("prod"));
    put(&store, "test", 1, 1, state(1)).await;
    let several = cluster_in(store.as_ref(), None).await.unwrap_err().to_string();
    assert!(several.contains("prod, test") && several.contains("--from-cluster"), "{several}");
    assert_eq!(cluster_in(store.as_ref(), Some(&cluster("test"))).await.unwrap(), cluster("test"));
    assert!(cluster_in(store.as_ref(), Some(&cluster("gone"))).await.is_err());
}
