//! Snapshot sets in the catalogue, and what may be deleted.

use super::*;
use crate::snapshot::{
    catalog::locate::{RemoveError, clusters},
    set::SetManifest,
};

fn number(group: u32) -> GroupNumber {
    GroupNumber::new(group).unwrap()
}

/// A snapshot of a group at a revision, which is also the millisecond it was taken.
async fn taken(catalog: &SnapshotCatalog, group: u32, revision: u64) -> Manifest {
    catalog.write(number(group), &capture(revision), 2, revision).await.unwrap()
}

/// A set of new snapshots of groups 0 and 4.
async fn set_at(catalog: &SnapshotCatalog, revision: u64) -> SetManifest {
    let snapshots = [taken(catalog, 4, revision).await, taken(catalog, 0, revision).await];
    let set = SetManifest::of(&catalog.cluster, 7, &snapshots, 2, revision);
    catalog.write_set(&set).await.unwrap();
    set
}

async fn damage(store: &MemoryStore, manifest: &Manifest) {
    store.put(&manifest.data_object().unwrap(), "x".into(), PutMode::Replace).await.unwrap();
}

#[tokio::test]
async fn sets_are_listed_oldest_first_and_those_that_cannot_be_used_are_left_out() {
    let (store, catalog) = catalog();
    assert_eq!(catalog.sets().await.unwrap(), []);
    let (newer, older) = (set_at(&catalog, 20).await, set_at(&catalog, 10).await);
    let broken: ObjectName = "cluster/prod/set/set-1.json".parse().unwrap();
    store.put(&broken, "{".into(), PutMode::Replace).await.unwrap();
    assert_eq!(catalog.sets().await.unwrap(), [older.clone(), newer.clone()]);
    assert_eq!(catalog.find_set(&newer.set).await.unwrap(), newer);
    let unknown = catalog.find_set(&"set-2".parse().unwrap()).await.unwrap_err();
    assert!(matches!(unknown, CatalogError::UnknownSet { .. }), "{unknown}");
    // The same once more is what a write whose answer was lost looks like.
    catalog.write_set(&newer).await.unwrap();
    let other = SetManifest { member: newer.member + 1, ..newer.clone() };
    let taken = catalog.write_set(&other).await.unwrap_err();
    assert!(matches!(taken, CatalogError::Store(StoreError::AlreadyExists { .. })), "{taken}");
    // Neither a set nor its objects are taken for snapshots.
    assert_eq!(catalog.list_all().await.unwrap().into_values().flatten().count(), 4);
    assert_eq!(clusters(&store).await.unwrap(), [catalog.cluster.clone()].into());
}

#[tokio::test]
async fn a_set_knows_its_snapshots_from_others_of_the_same_name() {
    let (store, catalog) = catalog();
    let set = set_at(&catalog, 10).await;
    let member = &set.snapshots[1];
    let manifest = catalog.manifest_in(&set, member).await.unwrap();
    assert_eq!((manifest.group, &manifest.snapshot), (number(4), &member.snapshot));
    let other = Manifest { sha256: "00".to_owned(), ..manifest.clone() };
    let json = serde_json::to_vec(&other).unwrap();
    store.put(&manifest.manifest_object().unwrap(), json.into(), PutMode::Replace).await.unwrap();
    let said = catalog.manifest_in(&set, member).await.unwrap_err();
    assert!(said.is_damage() && said.to_string().contains("is not the one"), "{said}");
    catalog.delete(&manifest).await.unwrap();
    assert!(catalog.manifest_in(&set, member).await.unwrap_err().is_damage());
}

#[tokio::test]
async fn retention_keeps_what_the_newest_set_names_and_lets_older_sets_go() {
    let (_store, catalog) = catalog();
    let older = set_at(&catalog, 10).await;
    let newest = set_at(&catalog, 20).await;
    for revision in [30, 40, 50] {
        taken(&catalog, 4, revision).await;
    }
    let deleted = catalog.prune(number(4), keep(2), 1_000, None).await.unwrap();
    let revisions: Vec<u64> = catalog.list(number(4)).await.unwrap().iter().map(|one| one.revision).collect();
    assert_eq!((deleted.len(), revisions), (2, vec![20, 40, 50]));
    assert_eq!(catalog.sets().await.unwrap(), std::slice::from_ref(&newest));
    // Of group 0 nothing was pruned; the set that is gone named one of its snapshots.
    assert!(older.names(number(0), &catalog.list(number(0)).await.unwrap()[0].snapshot));
}

#[tokio::test]
async fn the_last_good_snapshot_of_a_group_is_not_deleted() {
    let (store, catalog) = catalog();
    let (first, second) = (taken(&catalog, 4, 1).await, taken(&catalog, 4, 2).await);
    damage(&store, &second).await;
    let said = catalog.remove(number(4), &first.snapshot).await.unwrap_err();
    assert!(matches!(said, RemoveError::LastGood { .. }), "{said}");
    assert!(said.to_string().ends_with("take a new one first"), "{said}");
    // The damaged one is no good one.
    assert_eq!(catalog.remove(number(4), &second.snapshot).await.unwrap(), []);
    assert_eq!(catalog.list(number(4)).await.unwrap(), std::slice::from_ref(&first));
    taken(&catalog, 4, 3).await;
    catalog.remove(number(4), &first.snapshot).await.unwrap();
    let gone = catalog.remove(number(4), &first.snapshot).await.unwrap_err();
    assert!(matches!(gone, RemoveError::Catalog(CatalogError::Unknown { .. })), "{gone}");
}

#[tokio::test]
async fn a_snapshot_whose_manifest_is_damaged_can_be_deleted() {
    let (store, catalog) = catalog();
    let bad = taken(&catalog, 4, 1).await;
    store.put(&bad.manifest_object().unwrap(), "{".into(), PutMode::Replace).await.unwrap();
    assert_eq!(catalog.group_of(&bad.snapshot).await.unwrap(), number(4));
    catalog.remove(number(4), &bad.snapshot).await.unwrap();
    assert_eq!(names(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn snapshots_of_the_newest_set_are_not_deleted_and_older_sets_go_with_theirs() {
    let (_store, catalog) = catalog();
    let (older, newest) = (set_at(&catalog, 10).await, set_at(&catalog, 20).await);
    let said = catalog.remove(number(4), &newest.snapshots[1].snapshot).await.unwrap_err();
    assert!(matches!(&said, RemoveError::InNewestSet { set, .. } if *set == newest.set), "{said}");
    let went = catalog.remove(number(4), &older.snapshots[1].snapshot).await.unwrap();
    assert_eq!(went, [older.set]);
    assert_eq!(catalog.sets().await.unwrap(), [newest]);
}

#[tokio::test]
async fn a_snapshot_is_found_by_its_id_alone_where_only_one_group_has_it() {
    let (_store, catalog) = catalog();
    let one = taken(&catalog, 4, 1).await;
    assert_eq!(catalog.group_of(&one.snapshot).await.unwrap(), number(4));
    taken(&catalog, 11, 1).await;
    let said = catalog.group_of(&one.snapshot).await.unwrap_err().to_string();
    assert!(said.contains("the groups 11, 4 have") && said.contains("--group"), "{said}");
    let nowhere = catalog.group_of(&"1-x".parse().unwrap()).await.unwrap_err();
    assert!(matches!(nowhere, CatalogError::Nowhere { .. }), "{nowhere}");
}
