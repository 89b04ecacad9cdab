//! The catalogue over a store in memory: layout, damage and retention.

use std::num::NonZeroUsize;

mod sets;

use openraft::{RaftTypeConfig, vote::RaftLeaderId};
use sha2::{Digest as _, Sha256};

use super::{super::memory_store::MemoryStore, *};
use crate::raft::types::{LogId, TypeConfig};

fn group() -> GroupNumber {
    GroupNumber::new(4).unwrap()
}

fn capture(revision: u64) -> Capture {
    let leader = <TypeConfig as RaftTypeConfig>::LeaderId::new(3, 1).to_committed();
    Capture {
        data: Bytes::from(format!("state {revision}")),
        last_log_id: LogId::new(leader, revision + 100),
        revision,
        map_epoch: 7,
    }
}

fn catalog() -> (MemoryStore, SnapshotCatalog) {
    let store = MemoryStore::default();
    let catalog = SnapshotCatalog::new(Arc::new(store.clone()), "prod".parse().unwrap());
    (store, catalog)
}

fn keep(count: usize) -> Retention {
    Retention { keep: NonZeroUsize::new(count).unwrap(), max_age: None }
}

async fn names(store: &MemoryStore) -> Vec<String> {
    store.list("").await.unwrap().into_iter().map(|info| info.name.to_string()).collect()
}

#[tokio::test]
async fn a_snapshot_is_listed_found_and_read() {
    let (store, catalog) = catalog();
    let manifest = catalog.write(group(), &capture(12), 2, 1_000).await.unwrap();
    assert_eq!(
        names(&store).await,
        [
            "cluster/prod/group/4/00000000001000-0000000000000012-m2/data",
            "cluster/prod/group/4/00000000001000-0000000000000012-m2/manifest.json",
        ]
    );
    let stored = store.get(&manifest.data_object().unwrap()).await.unwrap();
    assert!(stored.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]), "it is a frame of zstd");
    let sum: String = Sha256::digest(&stored).iter().map(|byte| format!("{byte:02x}")).collect();
    let object = manifest.manifest_object().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&store.get(&object).await.unwrap()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "format_version": 2, "cluster": "prod", "group": 4,
            "snapshot": "00000000001000-0000000000000012-m2",
            "log_index": 112, "log_term": 3, "revision": 12, "incarnation": 0, "map_epoch": 7, "size_bytes": 8,
            "stored_bytes": stored.len(), "sha256": sum,
            "created_unix_ms": 1_000, "member": 2,
        })
    );
    assert_eq!(catalog.list(group()).await.unwrap(), std::slice::from_ref(&manifest));
    assert_eq!(catalog.find(group(), &manifest.snapshot).await.unwrap(), manifest);
    assert_eq!(catalog.read(&manifest).await.unwrap(), "state 12");
    assert_eq!(catalog.list_all().await.unwrap().into_keys().collect::<Vec<_>>(), [group()]);
    let again = catalog.write(group(), &capture(12), 2, 1_000).await.unwrap();
    assert_eq!(again, manifest, "as after an answer that was lost");
    let other = Capture { data: Bytes::from_static(b"other"), ..capture(12) };
    let other = catalog.write(group(), &other, 2, 1_000).await.unwrap_err();
    assert!(matches!(other, CatalogError::Store(StoreError::AlreadyExists { .. })));
    assert_eq!(catalog.read(&manifest).await.unwrap(), "state 12");
}

#[tokio::test]
async fn only_snapshots_with_a_valid_manifest_exist() {
    let (store, catalog) = catalog();
    let good = catalog.write(group(), &capture(1), 2, 1_000).await.unwrap();
    let put = async |name: &str, text: String| {
        store.put(&name.parse().unwrap(), text.into(), PutMode::Replace).await.unwrap();
    };
    let json = serde_json::to_string(&good).unwrap();
    put("cluster/prod/group/4/1-unfinished/data", "half".to_owned()).await;
    put("cluster/prod/group/4/1-garbage/manifest.json", "{".to_owned()).await;
    put("cluster/prod/group/4/1-copied/manifest.json", json.clone()).await;
    put(
        "cluster/prod/group/4/1-newer/manifest.json",
        json.replace("\"format_version\":2", "\"format_version\":3,\"parts\":3"),
    )
    .await;
    assert_eq!(catalog.list(group()).await.unwrap(), [good]);

    let fault = async |id: &str| catalog.find(group(), &id.parse().unwrap()).await.unwrap_err().to_string();
    assert!(fault("1-copied").await.contains("it describes cluster/prod/group/4/00000000001000"));
    assert!(fault("1-newer").await.contains("it has format 3, newer than the 2"));
    assert!(fault("1-unknown").await.contains("there is no usable snapshot 1-unknown of group 4"));
}

#[tokio::test]
async fn a_newer_manifest_is_told_from_a_damaged_version() {
    let (store, catalog) = catalog();
    let good = catalog.write(group(), &capture(1), 2, 1_000).await.unwrap();
    let object = good.manifest_object().unwrap();
    let json = String::from_utf8(store.get(&object).await.unwrap().to_vec()).unwrap();
    let said = async |json: String| {
        store.put(&object, json.into(), PutMode::Replace).await.unwrap();
        catalog.find(group(), &good.snapshot).await.unwrap_err().to_string()
    };
    for version in [0, 1, 3, 9] {
        let damaged =
            said(json.replace("\"format_version\": 2", &format!("\"format_version\": {version}"))).await;
        assert!(damaged.contains(object.as_str()) && damaged.contains("it is damaged: it says"), "{damaged}");
        assert!(damaged.ends_with("take a new snapshot, and restore from another one"), "{damaged}");
    }
    let newer = said(json.replace("\"format_version\": 2", "\"format_version\": 3, \"parts\": 3")).await;
    assert!(
        newer.contains(object.as_str()) && newer.contains("it has format 3, newer than the 2"),
        "{newer}"
    );
    assert!(newer.ends_with("run the newer version"), "{newer}");
}

#[tokio::test]
async fn damaged_data_are_found() {
    let (store, catalog) = catalog();
    let manifest = catalog.write(group(), &capture(1), 2, 1_000).await.unwrap();
    catalog.verify(&manifest).await.unwrap();
    let object = manifest.data_object().unwrap();
    let whole = store.get(&object).await.unwrap();
    let verify = async |data: Option<Bytes>| {
        match data {
            Some(data) => store.put(&object, data, PutMode::Replace).await.unwrap(),
            None => store.delete(&object).await.unwrap(),
        }
        match catalog.verify(&manifest).await.unwrap_err() {
            CatalogError::Damaged { fault, .. } => fault,
            err => panic!("{err}"),
        }
    };
    let expected = whole.len() as u64;
    let short = whole.slice(1..);
    assert_eq!(verify(Some(short)).await, DataFault::Size { found: expected - 1, expected });
    let long = [&whole[..], b"x"].concat();
    assert_eq!(verify(Some(long.into())).await, DataFault::Size { found: expected + 1, expected });
    for at in 0..whole.len() {
        let mut other = whole.to_vec();
        other[at] ^= 1;
        assert!(matches!(verify(Some(other.into())).await, DataFault::Checksum { .. }), "byte {at}");
    }
    assert_eq!(verify(None).await, DataFault::Missing);
}

#[tokio::test]
async fn snapshots_of_the_first_format_are_read() {
    let (store, catalog) = catalog();
    let folder = "cluster/prod/group/4/00000000001000-0000000000000012-m2";
    let put = async |name: &str, text: String| {
        store.put(&format!("{folder}/{name}").parse().unwrap(), text.into(), PutMode::Replace).await.unwrap();
    };
    let json = serde_json::json!({
        "format_version": 1, "cluster": "prod", "group": 4,
        "snapshot": "00000000001000-0000000000000012-m2",
        "log_index": 112, "log_term": 3, "revision": 12, "map_epoch": 7, "size_bytes": 8,
        "sha256": "ca05f2d026722db8c640c188558da059d268a5fcae9af52fc6c66f81543aaa0d",
        "created_unix_ms": 1_000, "member": 2,
    });
    put("data", "state 12".to_owned()).await;
    put("manifest.json", json.to_string()).await;
    let [manifest] = &catalog.list(group()).await.unwrap()[..] else { panic!("one is there") };
    assert_eq!((manifest.format_version, manifest.stored_bytes, manifest.incarnation), (1, 8, 0));
    assert_eq!(catalog.read(manifest).await.unwrap(), "state 12");
    put("data", "State 12".to_owned()).await;
    assert!(catalog.read(manifest).await.unwrap_err().to_string().contains("its checksum is"));
}

#[tokio::test]
async fn a_manifest_whose_answer_was_lost_is_found_there() {
    let (store, catalog) = catalog();
    let object: ObjectName = "cluster/prod/group/4/1-a/manifest.json".parse().unwrap();
    catalog.put_manifest(&object, "mine".into()).await.unwrap();
    catalog.put_manifest(&object, "mine".into()).await.unwrap();
    let other = catalog.put_manifest(&object, "another".into()).await.unwrap_err();
    assert_eq!(other, StoreError::AlreadyExists { name: object.clone() });
    assert_eq!(store.get(&object).await.unwrap(), "mine");
}

#[tokio::test]
async fn pruning_keeps_the_newest_and_takes_the_data_along() {
    let (store, catalog) = catalog();
    for revision in 1..=4 {
        catalog.write(group(), &capture(revision), 2, revision * 10).await.unwrap();
    }
    let deleted = catalog.prune(group(), keep(2), 100, None).await.unwrap();
    assert_eq!(deleted, [SnapshotId::new(10, 1, 2), SnapshotId::new(20, 2, 2)]);
    assert_eq!(names(&store).await.len(), 4);
    assert_eq!(catalog.prune(group(), keep(2), 100, None).await.unwrap(), []);
    assert_eq!(catalog.prune(GroupNumber::new(9).unwrap(), keep(2), 100, None).await.unwrap(), []);
}

#[tokio::test]
async fn what_was_just_taken_is_not_pruned_for_newer_ones_of_another_life_of_the_cluster() {
    let (store, catalog) = catalog();
    for revision in [70, 80] {
        catalog.write(group(), &capture(revision), 2, 10).await.unwrap();
    }
    let taken = catalog.write(group(), &capture(1), 2, 20).await.unwrap();
    assert_eq!(catalog.prune(group(), keep(2), 100, Some(&taken.snapshot)).await.unwrap(), []);
    assert_eq!(names(&store).await.len(), 6);
}

#[tokio::test]
async fn nothing_is_pruned_while_the_newest_is_damaged() {
    let (store, catalog) = catalog();
    catalog.write(group(), &capture(1), 2, 10).await.unwrap();
    let newest = catalog.write(group(), &capture(2), 2, 20).await.unwrap();
    store.put(&newest.data_object().unwrap(), "damaged".into(), PutMode::Replace).await.unwrap();
    assert!(matches!(catalog.prune(group(), keep(1), 100, None).await, Err(CatalogError::Damaged { .. })));
    assert_eq!(catalog.list(group()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn old_data_without_a_manifest_are_pruned() {
    let (store, catalog) = catalog();
    let now = 100_000_000;
    catalog.write(group(), &capture(9), 2, now).await.unwrap();
    for created in [now - retention::ORPHAN_AGE_MS - 1, now - 1] {
        let object = format!("cluster/prod/group/4/{}/data", SnapshotId::new(created, 1, 2));
        store.put(&object.parse().unwrap(), "half".into(), PutMode::Replace).await.unwrap();
    }
    catalog.prune(group(), keep(1), now, None).await.unwrap();
    assert_eq!(names(&store).await.len(), 3, "the recent one may still be on its way");
}
