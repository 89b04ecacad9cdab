//! The SQLite guard, one rule at a time.

use holdfast_fence::{FenceError, MAX_TOKEN, SqliteGuard, rusqlite};
use tempfile::TempDir;

use crate::support::eventually;

async fn new_guard() -> (SqliteGuard, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let guard = SqliteGuard::open(folder.path().join("fence.db")).await.unwrap();
    let made = guard.write("setup", 1, |tx| {
        tx.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")?;
        Ok::<_, FenceError>(())
    });
    made.await.unwrap();
    (guard, folder)
}

async fn note(guard: &SqliteGuard, lock: &str, token: u64, text: &'static str) -> Result<usize, FenceError> {
    guard.write(lock, token, move |tx| Ok(tx.execute("INSERT INTO notes (text) VALUES (?1)", [text])?)).await
}

async fn notes(guard: &SqliteGuard) -> Vec<String> {
    let read = guard.write("setup", 1, |tx| {
        let mut statement = tx.prepare("SELECT text FROM notes ORDER BY id")?;
        let rows = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok::<_, FenceError>(rows)
    });
    read.await.unwrap()
}

#[tokio::test]
async fn lower_tokens_are_refused_and_equal_ones_accepted() {
    let (guard, _folder) = new_guard().await;
    note(&guard, "a", 7, "seven").await.unwrap();
    note(&guard, "a", 7, "seven again").await.unwrap();
    note(&guard, "a", 9, "nine").await.unwrap();
    let refused = note(&guard, "a", 8, "eight").await.unwrap_err();
    assert!(matches!(&refused, FenceError::Stale { lock, token: 8, highest: 9 } if lock == "a"), "{refused}");
    assert!(refused.to_string().contains('9'), "the newer token is named: {refused}");
    note(&guard, "b", 1, "another lock").await.expect("every lock has a mark of its own");
    assert_eq!(notes(&guard).await, ["seven", "seven again", "nine", "another lock"]);
    assert_eq!(guard.highest("a").await.unwrap(), Some(9));
    assert_eq!(guard.highest("never").await.unwrap(), None);
}

#[tokio::test]
async fn tokens_and_names_out_of_bounds_change_nothing() {
    let (guard, _folder) = new_guard().await;
    for (lock, token) in [("a", 0), ("a", MAX_TOKEN + 1), ("", 1), ("a\nb", 1)] {
        let refused = note(&guard, lock, token, "never").await.unwrap_err();
        assert!(matches!(refused, FenceError::InvalidArgument { .. }), "{lock:?} {token}: {refused}");
    }
    note(&guard, "a", MAX_TOKEN, "largest").await.unwrap();
    assert_eq!(notes(&guard).await, ["largest"]);
}

/// The old holder's lease is over, nobody has written since, and the new holder announces itself before it reads.
#[tokio::test]
async fn after_an_advance_the_old_holder_is_always_refused() {
    let (guard, _folder) = new_guard().await;
    note(&guard, "a", 7, "old holder").await.unwrap();
    note(&guard, "a", 7, "lease over, but nobody came").await.unwrap();
    assert_eq!(guard.advance("a", 8).await.unwrap(), 8);
    assert!(matches!(note(&guard, "a", 7, "late").await, Err(FenceError::Stale { highest: 8, .. })));
    assert!(matches!(guard.advance("a", 7).await, Err(FenceError::Stale { highest: 8, .. })));
    assert_eq!(guard.advance("a", 8).await.unwrap(), 8);
    assert_eq!(notes(&guard).await, ["old holder", "lease over, but nobody came"]);
}

#[tokio::test]
async fn a_write_that_fails_takes_its_mark_back() {
    let (guard, _folder) = new_guard().await;
    let failed: Result<(), FenceError> = guard
        .write("a", 50, |tx| {
            tx.execute("INSERT INTO notes (text) VALUES ('half')", [])?;
            tx.execute("INSERT INTO nowhere VALUES (1)", [])?;
            Ok(())
        })
        .await;
    assert!(matches!(failed, Err(FenceError::Database(_))), "{failed:?}");
    assert_eq!(guard.highest("a").await.unwrap(), None);
    note(&guard, "a", 3, "three").await.expect("50 was never accepted");
    assert_eq!(notes(&guard).await, ["three"]);
}

#[tokio::test]
async fn an_object_belongs_to_the_lock_of_its_first_write_until_it_is_rebound() {
    let (guard, _folder) = new_guard().await;
    let write =
        |lock: &'static str, token| guard.write_object("report", lock, token, |_tx| Ok::<_, FenceError>(()));
    write("a", 900).await.unwrap();
    let refused = write("b", 3).await.unwrap_err();
    assert!(matches!(&refused, FenceError::WrongLock { bound_to, .. } if bound_to == "a"), "{refused}");
    assert_eq!(guard.highest("b").await.unwrap(), None, "a refused write leaves no mark");

    assert!(matches!(guard.rebind("other", "b", "ada", "moved").await, Err(FenceError::NotBound { .. })));
    assert!(matches!(guard.rebind("report", "b", "ada", "").await, Err(FenceError::InvalidArgument { .. })));
    let done = guard.rebind("report", "b", "ada", "team moved").await.unwrap();
    assert_eq!((done.from_lock.as_str(), done.to_lock.as_str()), ("a", "b"));
    assert!(done.at_ms > 1_700_000_000_000, "{done:?}");
    assert_eq!(guard.rebindings("report").await.unwrap(), [done]);

    write("b", 3).await.unwrap();
    assert!(matches!(write("a", 901).await, Err(FenceError::WrongLock { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn guards_that_open_a_new_file_at_once_make_its_tables_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence.db");
    let opening: Vec<_> = (1..=8_u64)
        .map(|token| {
            let path = path.clone();
            tokio::spawn(async move { SqliteGuard::open(path).await?.advance("a", 8 + token % 2).await })
        })
        .collect();
    for opened in opening {
        match opened.await.unwrap() {
            Ok(_) | Err(FenceError::Stale { highest: 9, .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let guard = SqliteGuard::open(&path).await.unwrap();
    assert_eq!(guard.highest("a").await.unwrap(), Some(9));
    guard.close().await.unwrap();
}

#[tokio::test]
async fn tables_of_a_newer_version_are_left_alone() {
    let (guard, folder) = new_guard().await;
    let newer = guard.write("setup", 1, |tx| {
        tx.execute("INSERT INTO holdfast_fence_migrations VALUES ('guard', 99, 0)", [])?;
        Ok::<_, FenceError>(())
    });
    newer.await.unwrap();
    let refused = SqliteGuard::open(folder.path().join("fence.db")).await.unwrap_err();
    assert!(matches!(refused, FenceError::NewerSchema { found: 99, .. }), "{refused}");
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_named() {
    let refused = SqliteGuard::open("/nowhere/at/all.db").await.unwrap_err();
    assert!(refused.to_string().contains("/nowhere/at/all.db"), "{refused}");
}

#[tokio::test]
async fn a_commit_waits_for_the_disk() {
    let (guard, _folder) = new_guard().await;
    let settings = guard.write("setup", 1, |tx| {
        let synchronous: i64 = tx.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
        let journal: String = tx.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        Ok::<_, FenceError>((synchronous, journal))
    });
    assert_eq!(settings.await.unwrap(), (2, "wal".to_owned()), "2 is FULL");
}

#[tokio::test]
async fn a_full_queue_is_an_answer() {
    let (guard, _folder) = new_guard().await;
    let (started, holds) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let slow = tokio::spawn({
        let guard = guard.clone();
        async move {
            let write = guard.write("a", 1, move |_tx| {
                let _ = started.send(());
                let _ = released.recv();
                Ok::<_, FenceError>(())
            });
            write.await
        }
    });
    holds.await.unwrap();
    let waiting: Vec<_> = (0..1_100)
        .map(|_| {
            let guard = guard.clone();
            tokio::spawn(async move { guard.advance("a", 1).await })
        })
        .collect();
    let too_many = 1_100 - 1_023;
    eventually("the others find the queue full", || async {
        waiting.iter().filter(|write| write.is_finished()).count() >= too_many
    })
    .await;
    drop(release);
    slow.await.unwrap().unwrap();
    let mut overloaded = 0;
    for write in waiting {
        match write.await.unwrap() {
            Ok(highest) => assert_eq!(highest, 1),
            Err(FenceError::Overloaded) => overloaded += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(overloaded, too_many, "one write holds the connection, 1,023 wait behind it");
}
