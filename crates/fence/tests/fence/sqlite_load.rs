//! 32 writers over several connections in two processes, one SQLite file.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use holdfast_fence::{FenceError, SqliteGuard};

use crate::support::{
    child::{TestChild, end_with_parent, say},
    load::{Attempt, LOCKS, Ledger, WRITERS, attempts, judge},
};

const SEED: u64 = 20_260_301;
const WRITES: i64 = 10_000;
const PROCESSES: usize = 2;
const GUARDS_PER_PROCESS: usize = 2;
const PATH: &str = "HOLDFAST_TEST_SQLITE_FILE";

/// On a slow disk the load ends here; what was written until then is judged.
const BUDGET: Duration = Duration::from_secs(35);

async fn write(guard: &SqliteGuard, attempt: Attempt) -> Result<(), FenceError> {
    let lock = attempt.lock_name();
    let logged = lock.clone();
    guard
        .write(&lock, attempt.token, move |tx| {
            tx.execute(
                "INSERT INTO accepted (attempt, lock, token) VALUES (?1, ?2, ?3)",
                (attempt.id, logged, attempt.token as i64),
            )?;
            Ok(())
        })
        .await
}

/// Half of the writers: every second attempt, on two connections.
async fn half_of_the_load(path: &Path, process: usize) -> Arc<Ledger> {
    let ledger = Arc::new(Ledger::default());
    let mine: Vec<_> = attempts(SEED, WRITES).into_iter().skip(process).step_by(PROCESSES).collect();
    let (mine, next, end) = (Arc::new(mine), Arc::new(AtomicUsize::new(0)), Instant::now() + BUDGET);
    let mut writers = Vec::new();
    for _guard in 0..GUARDS_PER_PROCESS {
        let guard = SqliteGuard::open(path).await.unwrap();
        for _writer in 0..WRITERS / PROCESSES / GUARDS_PER_PROCESS {
            let (guard, ledger, mine, next) = (guard.clone(), ledger.clone(), mine.clone(), next.clone());
            writers.push(tokio::spawn(async move {
                while let Some(attempt) = mine.get(next.fetch_add(1, Ordering::SeqCst)).copied() {
                    let floor = ledger.floor(&attempt);
                    match write(&guard, attempt).await {
                        Ok(()) => ledger.accepted(&attempt, floor),
                        Err(FenceError::Stale { highest, .. }) => ledger.refused(&attempt, highest),
                        Err(error) => panic!("{attempt:?}: {error}"),
                    }
                    if Instant::now() > end {
                        break;
                    }
                }
            }));
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    ledger
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lower_token_is_accepted_after_a_higher_one_and_no_accepted_write_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.db");
    let guard = SqliteGuard::open(&path).await.unwrap();
    let made = guard.write("setup", 1, |tx| {
        tx.execute_batch(
            "CREATE TABLE accepted (id INTEGER PRIMARY KEY AUTOINCREMENT, attempt INTEGER, lock TEXT, token INTEGER)",
        )?;
        Ok::<_, FenceError>(())
    });
    made.await.unwrap();

    let mut child =
        TestChild::start("sqlite_load::child_writes_the_other_half", &[(PATH, path.to_str().unwrap())]);
    let ledger = half_of_the_load(&path, 0).await;
    while let Some(id) = child.next("accepted ") {
        match id.as_str() {
            "all" => break,
            id => ledger.accepted_elsewhere(id.parse().unwrap()),
        }
    }

    let log = guard.write("setup", 1, |tx| {
        let mut statement = tx.prepare("SELECT attempt, lock, token FROM accepted ORDER BY id")?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?.unsigned_abs())))?
            .collect::<Result<Vec<(i64, String, u64)>, _>>()?;
        Ok::<_, FenceError>(rows)
    });
    let log = log.await.unwrap();
    let mut marks = BTreeMap::new();
    for lock in 0..LOCKS {
        let lock = format!("load/{lock}");
        marks.insert(lock.clone(), guard.highest(&lock).await.unwrap().unwrap());
    }
    let of_child = log.iter().filter(|(id, ..)| id % 2 == 1).count();
    assert!(
        of_child > 0 && of_child < log.len(),
        "both processes had writes accepted: {of_child} of {}",
        log.len()
    );
    judge(&log, &ledger, &marks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_writes_the_other_half() {
    // Does its work only in a process that a test above has started.
    if std::env::var_os(PATH).is_none() {
        return;
    }
    end_with_parent();
    let path = std::env::var(PATH).unwrap();
    let ledger = half_of_the_load(Path::new(&path), 1).await;
    for id in ledger.accepted_ids() {
        say(&format!("accepted {id}"));
    }
    say("accepted all");
}
