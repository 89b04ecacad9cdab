//! Folders that must be refused, and damage that must be found.

use std::path::Path;

use holdfast_node::log::error::{OpenGroupError, OpenLogError};
use tokio_rusqlite::rusqlite::Connection;

use super::support::{append, entries, group, id, open, options};

fn edit(folder: &Path, sql: &str) {
    Connection::open(folder.join("raft-log.sqlite")).unwrap().execute_batch(sql).unwrap();
}

fn refusal(folder: &Path) -> String {
    match open(options(folder)) {
        Ok(_) => panic!("it should have been refused"),
        Err(err) => err.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    let pid = std::process::id();
    assert_eq!(
        refusal(folder.path()),
        format!(
            "the folder {} is in use by another process (pid {pid}); stop that process, or give this member a folder of its own",
            folder.path().display()
        )
    );
    log.close().await;
    open(options(folder.path())).unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_members_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(options(folder.path())).unwrap().close().await;

    let mut other = options(folder.path());
    other.identity.member = 2;
    let err = open(other).err().unwrap();
    assert!(matches!(err, OpenLogError::OtherMember { wanted: 2, .. }));
    assert!(err.to_string().contains("belongs to member 1 and not to member 2"), "{err}");

    let mut other = options(folder.path());
    other.identity.cluster = "prod".parse().unwrap();
    let err = open(other).err().unwrap().to_string();
    assert!(err.contains("belongs to cluster \"test\" and not to cluster \"prod\""), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_and_foreign_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(options(folder.path())).unwrap().close().await;
    edit(folder.path(), "PRAGMA user_version = 99");
    let err = refusal(folder.path());
    assert!(
        err.contains("is damaged: it says that it has schema version 99, and it was never raised"),
        "{err}"
    );
    assert!(err.ends_with("add it again with an empty folder"), "{err}");
    edit(folder.path(), "INSERT INTO identity(k, v) VALUES ('schema', '99')");
    let err = refusal(folder.path());
    assert!(err.contains("has schema version 99, and this version of Holdfast knows only up to 1"), "{err}");
    assert!(err.ends_with("run the newer version"), "{err}");

    edit(folder.path(), "PRAGMA user_version = 1; PRAGMA application_id = 5");
    assert!(refusal(folder.path()).contains("is no Holdfast log"));

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("raft-log.sqlite"), b"no database at all, only a text").unwrap();
    assert!(refusal(folder.path()).contains("file is not a database"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    append(&mut log.group(3).await, entries(1, 0..10)).await;
    log.close().await;
    let row = (3i64 << 44) | 5;
    edit(
        folder.path(),
        &format!(
            "UPDATE log SET e = CAST(substr(e, 1, 30) || x'00' || substr(e, 32) AS BLOB) WHERE id = {row}"
        ),
    );

    let log = open(options(folder.path())).unwrap();
    let err = log.opener.open_group(group(3)).await.unwrap_err().to_string();
    assert!(
        err.contains("raft-log.sqlite cannot be used: entry 5 of group 3 in the log is damaged"),
        "{err}"
    );
    assert!(err.ends_with("add it again with an empty folder"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_entries_are_found_when_the_group_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    for number in [3, 4] {
        let mut group = log.group(number).await;
        append(&mut group, entries(1, 0..10)).await;
        openraft::storage::RaftLogStorage::save_committed(&mut group, Some(id(1, 8))).await.unwrap();
    }
    log.close().await;
    edit(folder.path(), &format!("DELETE FROM log WHERE id = {}", (3i64 << 44) | 5));
    edit(folder.path(), &format!("DELETE FROM log WHERE id >= {}", (4i64 << 44) | 8));

    let log = open(options(folder.path())).unwrap();
    let err = log.opener.open_group(group(3)).await.unwrap_err().to_string();
    assert!(
        err.contains("raft-log.sqlite cannot be used: entry 5 of group 3 in the log is missing"),
        "{err}"
    );
    let OpenGroupError::In { source, .. } = log.opener.open_group(group(4)).await.unwrap_err() else {
        panic!("the file is named");
    };
    assert!(matches!(*source, OpenGroupError::LostTail { group: 4, committed: 8 }), "{source}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_without_owner_or_with_unknown_marks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    append(&mut log.group(3).await, entries(1, 0..10)).await;
    log.close().await;
    edit(folder.path(), "UPDATE meta SET k = 'commitz' WHERE k = 'commits'");
    let err = refusal(folder.path());
    assert!(err.contains("holds a mark \"commitz\" of group 0, which does not exist"), "{err}");
    edit(folder.path(), "UPDATE meta SET k = 'commits' WHERE k = 'commitz'; DELETE FROM identity");
    let err = refusal(folder.path());
    assert!(err.contains("does not say whose it is although it holds entries"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_version_byte_of_a_record_is_damage_and_not_a_newer_version() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(options(folder.path())).unwrap();
    append(&mut log.group(3).await, entries(1, 0..10)).await;
    log.close().await;
    let row = (3i64 << 44) | 5;
    edit(folder.path(), &format!("UPDATE log SET e = CAST(x'03' || substr(e, 2) AS BLOB) WHERE id = {row}"));
    let log = open(options(folder.path())).unwrap();
    let err = log.opener.open_group(group(3)).await.unwrap_err().to_string();
    assert!(
        err.contains("raft-log.sqlite cannot be used: entry 5 of group 3 in the log is damaged"),
        "{err}"
    );
    assert!(err.ends_with("add it again with an empty folder"), "{err}");
    log.close().await;

    edit(folder.path(), "UPDATE meta SET v = CAST(x'41' || substr(v, 2) AS BLOB) WHERE k = 'commits'");
    let err = refusal(folder.path());
    assert!(err.contains("raft-log.sqlite is damaged: the count of commits of group 0 is damaged"), "{err}");
}
