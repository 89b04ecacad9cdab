//! The PostgreSQL guard, one rule at a time. Starting a server is slow, so related rules share one, each with a database
//! of its own.

use deadpool_postgres::{Object, Pool};
use holdfast_fence::{DatabaseError, FenceError, MAX_TOKEN, PostgresGuard};
use tokio_postgres::{IsolationLevel, error::SqlState};

use crate::support::{eventually, postgres_server::PostgresServer};

#[tokio::test]
async fn tokens_are_judged_and_refusals_abort() {
    let server = PostgresServer::start();
    the_rules_of_the_mark_hold(&server).await;
    a_refused_transaction_cannot_be_committed(&server).await;
}

#[tokio::test]
async fn writers_that_meet_wait_and_are_judged_by_what_was_committed() {
    let server = PostgresServer::start();
    a_check_that_waited_for_a_higher_token_is_refused_at_every_isolation(&server).await;
    an_object_belongs_to_the_lock_of_its_first_write_until_it_is_rebound(&server).await;
}

#[tokio::test]
async fn the_schema_serves_every_language_and_is_made_once() {
    let server = PostgresServer::start();
    the_check_is_plain_sql_for_every_language_and_waits_for_the_disk(&server).await;
    migrations_run_once_refuse_newer_tables_and_need_no_rights_when_done(&server).await;
}

async fn new_guard(server: &PostgresServer, database: &str) -> (PostgresGuard, Pool) {
    let pool = server.new_database(database).await;
    let guard = PostgresGuard::open(pool.clone()).await.unwrap();
    pool.get().await.unwrap().batch_execute("CREATE TABLE notes (id bigserial, text text)").await.unwrap();
    (guard, pool)
}

async fn note(
    guard: &PostgresGuard,
    pool: &Pool,
    lock: &str,
    token: u64,
    text: &str,
) -> Result<(), FenceError> {
    let mut client = pool.get().await?;
    let tx = client.transaction().await?;
    guard.check(&tx, lock, token).await?;
    tx.execute("INSERT INTO notes (text) VALUES ($1)", &[&text]).await?;
    Ok(tx.commit().await?)
}

async fn notes(pool: &Pool) -> Vec<String> {
    let rows = pool.get().await.unwrap().query("SELECT text FROM notes ORDER BY id", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn write_object(guard: &PostgresGuard, pool: &Pool, lock: &str, token: u64) -> Result<(), FenceError> {
    let mut client = pool.get().await?;
    let tx = client.transaction().await?;
    guard.check_object(&tx, "report", lock, token).await?;
    Ok(tx.commit().await?)
}

async fn the_rules_of_the_mark_hold(server: &PostgresServer) {
    let (guard, pool) = new_guard(server, "marks").await;
    note(&guard, &pool, "a", 7, "seven").await.unwrap();
    note(&guard, &pool, "a", 7, "seven again").await.unwrap();
    note(&guard, &pool, "a", 9, "nine").await.unwrap();
    let refused = note(&guard, &pool, "a", 8, "eight").await.unwrap_err();
    assert!(matches!(&refused, FenceError::Stale { lock, token: 8, highest: 9 } if lock == "a"), "{refused}");
    for (lock, token) in [("a", 0), ("a", MAX_TOKEN + 1), ("", 1), ("a\nb", 1)] {
        let refused = note(&guard, &pool, lock, token, "never").await.unwrap_err();
        assert!(matches!(refused, FenceError::InvalidArgument { .. }), "{lock:?} {token}: {refused}");
    }
    let longest = "é".repeat(1_023) + "x";
    note(&guard, &pool, &longest, MAX_TOKEN, "largest").await.unwrap();
    assert_eq!(notes(&pool).await, ["seven", "seven again", "nine", "largest"]);

    assert_eq!(guard.advance("a", 12).await.unwrap(), 12);
    assert!(matches!(note(&guard, &pool, "a", 9, "late").await, Err(FenceError::Stale { highest: 12, .. })));
    assert!(matches!(guard.advance("a", 11).await, Err(FenceError::Stale { highest: 12, .. })));
    assert_eq!(guard.highest("a").await.unwrap(), Some(12));
    assert_eq!(guard.highest("never").await.unwrap(), None);
}

async fn a_refused_transaction_cannot_be_committed(server: &PostgresServer) {
    let (guard, pool) = new_guard(server, "refusals").await;
    guard.advance("a", 9).await.unwrap();
    for (lock, token) in [("a", 8), ("a", 0), ("", 10)] {
        let mut client = pool.get().await.unwrap();
        let tx = client.transaction().await.unwrap();
        tx.execute("INSERT INTO notes (text) VALUES ('before the check')", &[]).await.unwrap();
        assert!(guard.check(&tx, lock, token).await.is_err());
        let after = tx.execute("INSERT INTO notes (text) VALUES ('after the check')", &[]).await.unwrap_err();
        assert_eq!(after.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
        let _ = tx.commit().await;
    }
    assert!(notes(&pool).await.is_empty());
}

/// The trap: the check waits for the row, and must then judge by the row as committed, not as it was before the wait.
async fn a_check_that_waited_for_a_higher_token_is_refused_at_every_isolation(server: &PostgresServer) {
    let (guard, pool) = new_guard(server, "waits").await;
    let levels =
        [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];
    for (round, level) in (1_u64..).zip(levels) {
        let (lower, higher) = (round * 10, round * 10 + 1);
        let mut newer = pool.get().await.unwrap();
        let newer = newer.transaction().await.unwrap();
        guard.check(&newer, "a", higher).await.unwrap();
        let older = tokio::spawn({
            let (guard, pool) = (guard.clone(), pool.clone());
            async move {
                let mut client: Object = pool.get().await?;
                let tx = client.build_transaction().isolation_level(level).start().await?;
                guard.check(&tx, "a", lower).await?;
                Ok::<_, FenceError>(tx.commit().await?)
            }
        });
        eventually("the older holder waits for the row", || async {
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            pool.get().await.unwrap().query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 1
        })
        .await;
        newer.commit().await.unwrap();
        let refused = older.await.unwrap().unwrap_err();
        match (level, &refused) {
            (IsolationLevel::ReadCommitted, FenceError::Stale { highest, .. }) => {
                assert_eq!(*highest, higher)
            }
            (_, FenceError::Database(DatabaseError::Postgres(error))) => {
                assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
            }
            _ => panic!("{level:?}: {refused}"),
        }
    }
}

async fn an_object_belongs_to_the_lock_of_its_first_write_until_it_is_rebound(server: &PostgresServer) {
    let (guard, pool) = new_guard(server, "objects").await;
    write_object(&guard, &pool, "a", 900).await.unwrap();
    let refused = write_object(&guard, &pool, "b", 3).await.unwrap_err();
    assert!(matches!(&refused, FenceError::WrongLock { bound_to, .. } if bound_to == "a"), "{refused}");
    assert_eq!(guard.highest("b").await.unwrap(), None, "a refused write leaves no mark");
    assert!(matches!(guard.rebind("other", "b", "ada", "moved").await, Err(FenceError::NotBound { .. })));
    assert!(matches!(
        guard.rebind("report", "b", "", "moved").await,
        Err(FenceError::InvalidArgument { .. })
    ));

    // A write under way is finished before its object moves.
    let mut client = pool.get().await.unwrap();
    let tx = client.transaction().await.unwrap();
    guard.check_object(&tx, "report", "a", 901).await.unwrap();
    let moving = tokio::spawn({
        let guard = guard.clone();
        async move { guard.rebind("report", "b", "ada", "team moved").await }
    });
    eventually("the rebinding waits for the write", || async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        pool.get().await.unwrap().query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    tx.commit().await.unwrap();
    let done = moving.await.unwrap().unwrap();
    assert_eq!((done.from_lock.as_str(), done.to_lock.as_str()), ("a", "b"));
    assert_eq!(guard.rebindings("report").await.unwrap(), [done]);

    write_object(&guard, &pool, "b", 3).await.unwrap();
    assert!(matches!(write_object(&guard, &pool, "a", 902).await, Err(FenceError::WrongLock { .. })));
}

async fn the_check_is_plain_sql_for_every_language_and_waits_for_the_disk(server: &PostgresServer) {
    let (guard, pool) = new_guard(server, "sql").await;
    let mut client = pool.get().await.unwrap();
    client.batch_execute("SELECT holdfast_fence.check_token('a', 7, 'report')").await.unwrap();
    assert_eq!(guard.highest("a").await.unwrap(), Some(7));
    for (call, state, detail) in [
        ("check_token('a', 6)", "HF412", Some("7")),
        ("check_token('b', 1, 'report')", "HF409", Some("a")),
        ("check_token('a', 0)", "HF400", None),
        ("check_token('a', NULL)", "HF400", None),
        ("check_token('a', 9007199254740992)", "HF400", None),
        ("check_token('', 8)", "HF400", None),
        (r"check_token(E'a\u0085', 8)", "HF400", None),
        ("check_token(repeat('a', 2048), 8)", "HF400", None),
        ("rebind('never', 'b', 'ada', 'moved')", "HF404", None),
    ] {
        let refused = client.batch_execute(&format!("SELECT holdfast_fence.{call}")).await.unwrap_err();
        let db = refused.as_db_error().unwrap();
        assert_eq!((db.code().code(), db.detail()), (state, detail), "{call}: {}", db.message());
    }

    client.batch_execute("SET synchronous_commit = off").await.unwrap();
    let tx = client.transaction().await.unwrap();
    guard.check(&tx, "a", 8).await.unwrap();
    let inside: String = tx.query_one("SHOW synchronous_commit", &[]).await.unwrap().get(0);
    tx.commit().await.unwrap();
    let outside: String = client.query_one("SHOW synchronous_commit", &[]).await.unwrap().get(0);
    assert_eq!((inside.as_str(), outside.as_str()), ("on", "off"));
}

async fn migrations_run_once_refuse_newer_tables_and_need_no_rights_when_done(server: &PostgresServer) {
    let pool = server.new_database("migrations").await;
    let opening: Vec<_> = (0..8).map(|_| tokio::spawn(PostgresGuard::open(pool.clone()))).collect();
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    let client = pool.get().await.unwrap();
    client
        .batch_execute(
            "CREATE ROLE app LOGIN;
             GRANT USAGE ON SCHEMA holdfast_fence TO app;
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA holdfast_fence TO app",
        )
        .await
        .unwrap();
    let app = server.pool_for(&server.url("migrations").replace("postgres@", "app@"));
    let guard = PostgresGuard::open(app).await.unwrap();
    assert_eq!(guard.advance("a", 7).await.unwrap(), 7);

    let newer = "INSERT INTO holdfast_fence.migrations (component, version) VALUES ('guard', 99)";
    client.batch_execute(newer).await.unwrap();
    let refused = PostgresGuard::open(pool.clone()).await.unwrap_err();
    assert!(matches!(refused, FenceError::NewerSchema { found: 99, .. }), "{refused}");

    client.batch_execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0").await.unwrap();
    let refused = PostgresGuard::open(server.pool_for(&server.url("latin"))).await.unwrap_err();
    assert!(refused.to_string().contains("UTF8"), "{refused}");
}
