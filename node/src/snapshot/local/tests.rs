//! Snapshot files: durable, newest first, damage noticed.

use std::fs;

use sha2::{Digest as _, Sha256};

use super::{super::raft_snapshot::tests::meta, *};

fn group() -> GroupNumber {
    GroupNumber::new(5).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder.join("raft-snapshots/5"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

async fn loaded(snapshots: &RaftSnapshots) -> Option<(u64, Bytes)> {
    let found = snapshots.load().await.unwrap();
    found.map(|(meta, data)| (meta.last_log_id.unwrap().index, data))
}

fn state(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[tokio::test]
async fn the_newest_survives_and_older_ones_go() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = RaftSnapshots::in_folder(folder.path(), group());
    assert_eq!(loaded(&snapshots).await, None);
    snapshots.save(&meta(1, 9), &state("nine")).await.unwrap();
    snapshots.save(&meta(1, 10), &state("ten")).await.unwrap();
    assert_eq!(files(folder.path()), ["00000000000000000010-00000000000000000001.snapshot"]);
    let restarted = RaftSnapshots::in_folder(folder.path(), group());
    assert_eq!(loaded(&restarted).await, Some((10, state("ten"))));
}

#[tokio::test]
async fn an_older_snapshot_never_replaces_a_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = RaftSnapshots::in_folder(folder.path(), group());
    snapshots.save(&meta(2, 50), &state("installed")).await.unwrap();
    snapshots.save(&meta(1, 40), &state("built meanwhile")).await.unwrap();
    assert_eq!(loaded(&snapshots).await, Some((50, state("installed"))));
    let restarted = RaftSnapshots::in_folder(folder.path(), group());
    restarted.save(&meta(1, 40), &state("built before anything was read")).await.unwrap();
    assert_eq!(loaded(&restarted).await, Some((50, state("installed"))));
}

#[tokio::test]
async fn an_interrupted_write_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = RaftSnapshots::in_folder(folder.path(), group());
    snapshots.save(&meta(1, 9), &state("nine")).await.unwrap();
    fs::write(folder.path().join("raft-snapshots/5/unfinished"), b"half a snap").unwrap();
    let restarted = RaftSnapshots::in_folder(folder.path(), group());
    assert_eq!(loaded(&restarted).await, Some((9, state("nine"))));
    restarted.save(&meta(1, 11), &state("eleven")).await.unwrap();
    assert_eq!(loaded(&restarted).await, Some((11, state("eleven"))));
}

#[tokio::test]
async fn a_damaged_snapshot_is_passed_over_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = RaftSnapshots::in_folder(folder.path(), group());
    snapshots.save(&meta(1, 9), &state("nine")).await.unwrap();
    let damaged = folder.path().join("raft-snapshots/5/00000000000000000012-00000000000000000001.snapshot");
    let mut bytes =
        fs::read(folder.path().join("raft-snapshots/5/00000000000000000009-00000000000000000001.snapshot"))
            .unwrap();
    bytes.truncate(40);
    fs::write(&damaged, &bytes).unwrap();
    let restarted = RaftSnapshots::in_folder(folder.path(), group());
    assert_eq!(loaded(&restarted).await, Some((9, state("nine"))));
    restarted.save(&meta(1, 10), &state("ten")).await.unwrap();
    assert_eq!(files(folder.path()).len(), 1, "the damaged one is gone as well");

    fs::remove_file(folder.path().join("raft-snapshots/5").join(&files(folder.path())[0])).unwrap();
    fs::write(&damaged, &bytes).unwrap();
    let err = RaftSnapshots::in_folder(folder.path(), group()).load().await.unwrap_err().to_string();
    assert!(
        err.starts_with(&format!("the snapshot {} cannot be used: it is torn", damaged.display())),
        "{err}"
    );
}

#[tokio::test]
async fn the_memory_twin_behaves_alike() {
    let disk = MemorySnapshots::default();
    let snapshots = RaftSnapshots::in_memory(&disk, group());
    assert_eq!(loaded(&snapshots).await, None);
    snapshots.save(&meta(2, 50), &state("installed")).await.unwrap();
    let restarted = RaftSnapshots::in_memory(&disk, group());
    restarted.save(&meta(1, 40), &state("older")).await.unwrap();
    assert_eq!(loaded(&restarted).await, Some((50, state("installed"))));
    assert_eq!(loaded(&RaftSnapshots::in_memory(&disk, GroupNumber::new(6).unwrap())).await, None);
}

#[tokio::test]
async fn a_log_that_was_purged_needs_a_snapshot_that_reaches_as_far() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = RaftSnapshots::in_folder(folder.path(), group());
    let purged = |index| meta(1, index).last_log_id;
    snapshots.check_covers(None).await.unwrap();
    let err = snapshots.check_covers(purged(7)).await.unwrap_err().to_string();
    assert!(
        err.contains("begins after entry 7, and no snapshot in") && err.contains("raft-snapshots/5"),
        "{err}"
    );
    snapshots.save(&meta(1, 9), &state("nine")).await.unwrap();
    snapshots.check_covers(purged(9)).await.unwrap();
    assert!(snapshots.check_covers(purged(10)).await.is_err());
    let file = folder.path().join("raft-snapshots/5").join(&files(folder.path())[0]);
    let good = fs::read(&file).unwrap();
    for position in 0..good.len() {
        let mut bad = good.clone();
        bad[position] ^= 0x20;
        fs::write(&file, &bad).unwrap();
        for covered in [None, purged(7)] {
            let err = snapshots.check_covers(covered).await.unwrap_err().to_string();
            assert!(err.contains(".snapshot cannot be used"), "byte {position}: {err}");
            assert!(err.ends_with("with an empty folder"), "byte {position}: {err}");
        }
    }
}

#[tokio::test]
async fn a_start_reads_the_disk_once() {
    let folder = tempfile::tempdir().unwrap();
    RaftSnapshots::in_folder(folder.path(), group()).save(&meta(1, 9), &state("nine")).await.unwrap();
    let snapshots = RaftSnapshots::in_folder(folder.path(), group());
    snapshots.check_covers(meta(1, 9).last_log_id).await.unwrap();
    let file = folder.path().join("raft-snapshots/5").join(&files(folder.path())[0]);
    let spoil = || fs::write(&file, b"whoever reads this again finds no snapshot").unwrap();
    spoil();
    assert_eq!(loaded(&snapshots).await, Some((9, state("nine"))));
    // openraft restores the state by installing what it loaded, and loads once more.
    snapshots.save(&meta(1, 9), &state("nine")).await.unwrap();
    spoil();
    assert_eq!(loaded(&snapshots.clone()).await, Some((9, state("nine"))));
    snapshots.started().await;
    assert!(snapshots.load().await.is_err(), "after the start the disk is read");
    snapshots.save(&meta(1, 10), &state("ten")).await.unwrap();
    assert_eq!(loaded(&snapshots).await, Some((10, state("ten"))));
}

#[tokio::test]
async fn a_newer_snapshot_is_refused_and_kept_and_a_damaged_version_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = RaftSnapshots::in_folder(folder.path(), group());
    snapshots.save(&meta(1, 9), &state("nine")).await.unwrap();
    let path = folder.path().join("raft-snapshots/5");
    let bytes = fs::read(path.join(&files(folder.path())[0])).unwrap();

    let twelve = path.join("00000000000000000012-00000000000000000001.snapshot");
    let mut damaged = bytes.clone();
    damaged[8] ^= 8;
    fs::write(&twelve, &damaged).unwrap();
    assert_eq!(loaded(&RaftSnapshots::in_folder(folder.path(), group())).await, Some((9, state("nine"))));

    let mut newer = [&bytes[..8], &[2, 0], b"whatever it holds"].concat();
    let digest = Sha256::digest(&newer);
    newer.extend_from_slice(&digest);
    fs::write(&twelve, &newer).unwrap();
    let restarted = RaftSnapshots::in_folder(folder.path(), group());
    let said = format!(
        "the snapshot {} cannot be used: it has format 2, newer than the 1 this version of Holdfast knows; run the newer version",
        twelve.display()
    );
    assert_eq!(restarted.check_covers(None).await.unwrap_err().to_string(), said);
    let restarted = RaftSnapshots::in_folder(folder.path(), group());
    assert_eq!(restarted.save(&meta(1, 13), &state("later")).await.unwrap_err().to_string(), said);
    assert_eq!(files(folder.path()).len(), 2, "nothing is deleted");
}
