//! 32 writers at PostgreSQL's default isolation: through the guard, and with the check that everybody writes first.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use deadpool_postgres::Pool;
use holdfast_fence::{FenceError, PostgresGuard};

use crate::support::{
    load::{Attempt, Ledger, WRITERS, attempts, faults, judge},
    postgres_server::PostgresServer,
};

const SEED: u64 = 20_260_302;
const WRITES: i64 = 10_000;

/// A part of the load is more than enough for the naive check.
const NAIVE_WRITES: i64 = 400;

const LOG: &str = "INSERT INTO accepted (attempt, lock, token) VALUES ($1, $2, $3)";

async fn fenced_write(guard: &PostgresGuard, pool: &Pool, attempt: Attempt) -> Result<(), FenceError> {
    let mut client = pool.get().await?;
    let tx = client.transaction().await?;
    let lock = attempt.lock_name();
    guard.check(&tx, &lock, attempt.token).await?;
    let log = tx.prepare_cached(LOG).await?;
    tx.execute(&log, &[&attempt.id, &lock, &(attempt.token as i64)]).await?;
    Ok(tx.commit().await?)
}

/// Reads the mark, compares, writes. One transaction, and still wrong.
async fn naive_write(pool: &Pool, attempt: Attempt) -> Result<(), FenceError> {
    let mut client = pool.get().await?;
    let tx = client.transaction().await?;
    let (lock, token) = (attempt.lock_name(), attempt.token as i64);
    let read = tx.prepare_cached("SELECT token FROM naive WHERE lock = $1").await?;
    let highest: i64 = tx.query_one(&read, &[&lock]).await?.get(0);
    if highest > token {
        let (token, highest) = (attempt.token, highest.unsigned_abs());
        return Err(FenceError::Stale { lock, token, highest });
    }
    let raise = tx.prepare_cached("UPDATE naive SET token = $2 WHERE lock = $1").await?;
    tx.execute(&raise, &[&lock, &token]).await?;
    let log = tx.prepare_cached(LOG).await?;
    tx.execute(&log, &[&attempt.id, &lock, &token]).await?;
    Ok(tx.commit().await?)
}

async fn run_load(guard: Option<PostgresGuard>, pool: &Pool, writes: i64) -> Ledger {
    let ledger = Arc::new(Ledger::default());
    let (attempts, next) = (Arc::new(attempts(SEED, writes)), Arc::new(AtomicUsize::new(0)));
    let mut writers = Vec::new();
    for _writer in 0..WRITERS {
        let (guard, pool, ledger) = (guard.clone(), pool.clone(), ledger.clone());
        let (attempts, next) = (attempts.clone(), next.clone());
        writers.push(tokio::spawn(async move {
            while let Some(attempt) = attempts.get(next.fetch_add(1, Ordering::SeqCst)).copied() {
                let floor = ledger.floor(&attempt);
                let answer = match &guard {
                    Some(guard) => fenced_write(guard, &pool, attempt).await,
                    None => naive_write(&pool, attempt).await,
                };
                match answer {
                    Ok(()) => ledger.accepted(&attempt, floor),
                    Err(FenceError::Stale { highest, .. }) => ledger.refused(&attempt, highest),
                    Err(error) => panic!("{attempt:?}: {error}"),
                }
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    Arc::into_inner(ledger).unwrap()
}

/// The log in the order of the database's own serial, and the marks.
async fn outcome(pool: &Pool, marks: &str) -> (Vec<(i64, String, u64)>, BTreeMap<String, u64>) {
    let client = pool.get().await.unwrap();
    let isolation: String = client.query_one("SHOW transaction_isolation", &[]).await.unwrap().get(0);
    assert_eq!(isolation, "read committed", "the default");
    let log = client.query("SELECT attempt, lock, token FROM accepted ORDER BY id", &[]).await.unwrap();
    let marks = client.query(&format!("SELECT lock, token FROM {marks}"), &[]).await.unwrap();
    (
        log.iter().map(|row| (row.get(0), row.get(1), row.get::<_, i64>(2).unsigned_abs())).collect(),
        marks.iter().map(|row| (row.get(0), row.get::<_, i64>(1).unsigned_abs())).collect(),
    )
}

async fn create_log(pool: &Pool) {
    let client = pool.get().await.unwrap();
    client
        .batch_execute(
            "CREATE TABLE accepted (id bigserial PRIMARY KEY, attempt bigint, lock text, token bigint)",
        )
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lower_token_is_accepted_after_a_higher_one_and_no_accepted_write_is_lost() {
    let server = PostgresServer::start();
    let pool = server.pool();
    create_log(&pool).await;
    let guard = PostgresGuard::open(pool.clone()).await.unwrap();
    let ledger = run_load(Some(guard), &pool, WRITES).await;
    let (log, marks) = outcome(&pool, "holdfast_fence.marks").await;
    judge(&log, &ledger, &marks);
}

/// The same load and the same judge: the test above can fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_naive_check_lets_lower_tokens_through_under_the_same_load() {
    let server = PostgresServer::start();
    let pool = server.pool();
    create_log(&pool).await;
    let client = pool.get().await.unwrap();
    client
        .batch_execute(
            "CREATE TABLE naive (lock text PRIMARY KEY, token bigint);
             INSERT INTO naive SELECT 'load/' || i, 0 FROM generate_series(0, 3) AS i",
        )
        .await
        .unwrap();
    drop(client);
    let ledger = run_load(None, &pool, NAIVE_WRITES).await;
    let (log, marks) = outcome(&pool, "naive").await;
    let faults = faults(&log, &ledger, &marks);
    println!("{} faults, the first: {:?}", faults.len(), faults.first());
    assert!(
        faults.iter().any(|fault| fault.contains("logged after")),
        "{} accepted without a fault",
        log.len()
    );
}
