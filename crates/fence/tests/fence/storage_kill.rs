//! The Storage Service is killed in the middle of writes and has lost none that it accepted.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use holdfast_fence::{Options, serve};
use serde_json::{Value, json};

use crate::support::{
    child::{TestChild, end_with_parent, say},
    eventually,
    http::{call, send},
    postgres_server::PostgresServer,
};

const DATABASE: &str = "HOLDFAST_TEST_DATABASE";
const CLIENTS: usize = 8;
const ROUNDS: usize = 4;

/// Writes accepted per round before the kill; the rounds differ so that the kill falls on different moments.
const WRITES_PER_ROUND: u64 = 120;

fn start(database: &str) -> (TestChild, SocketAddr) {
    let mut child = TestChild::start("storage_kill::child_serves", &[(DATABASE, database)]);
    let addr = child.next("ready ").expect("the service starts").parse().unwrap();
    (child, addr)
}

/// Writes 1, 2, 3… to one object until the service is gone; `accepted` holds the last that was answered.
async fn write_until_killed(addr: SocketAddr, client: usize, accepted: Arc<AtomicU64>) {
    loop {
        let next = accepted.load(Ordering::SeqCst) + 1;
        let body = json!({"lock": format!("lock/{client}"), "token": next, "data": next}).to_string();
        let path = format!("/v1/objects/object/{client}");
        match send(addr, "PUT", &path, &["Content-Type: application/json"], body.as_bytes()).await {
            Ok(answer) => assert_eq!(answer.status, 200, "{answer:?}"),
            Err(_killed) => return,
        }
        accepted.store(next, Ordering::SeqCst);
    }
}

async fn object(addr: SocketAddr, client: usize) -> Value {
    call(addr, "GET", &format!("/v1/objects/object/{client}"), Value::Null).await.json()
}

/// The highest token, as whoever comes with a stale one is told.
async fn highest_told(addr: SocketAddr, client: usize, stale: u64) -> Value {
    let refused =
        call(addr, "POST", "/v1/fence", json!({"lock": format!("lock/{client}"), "token": stale})).await;
    assert_eq!(refused.status, 412);
    refused.json()["highest"].clone()
}

/// Whether the object and the mark of its lock go together: a database server goes on with a commit whose client was killed, and
/// may be done with it between two looks.
async fn decided(addr: SocketAddr, client: usize) -> bool {
    let data = object(addr, client).await["data"].as_u64().unwrap_or_default();
    data < 2 || highest_told(addr, client, data - 1).await == json!(data)
}

async fn kill_again_and_again(database: &str) {
    let accepted: Vec<Arc<AtomicU64>> = (0..CLIENTS).map(|_| Arc::default()).collect();
    let total = || accepted.iter().map(|count| count.load(Ordering::SeqCst)).sum::<u64>();
    for round in 1..=ROUNDS as u64 {
        let (mut child, addr) = start(database);
        let writers: Vec<_> = accepted
            .iter()
            .enumerate()
            .map(|(client, accepted)| tokio::spawn(write_until_killed(addr, client, accepted.clone())))
            .collect();
        let enough = total() + WRITES_PER_ROUND + 17 * round;
        eventually("enough writes are accepted", || async { total() >= enough }).await;
        child.kill();
        for writer in writers {
            writer.await.unwrap();
        }

        let (_child, addr) = start(database);
        for (client, accepted) in accepted.iter().enumerate() {
            eventually("the write under way at the kill is decided", || decided(addr, client)).await;
            let object = object(addr, client).await;
            let (data, known) =
                (object["data"].as_u64().unwrap_or_default(), accepted.load(Ordering::SeqCst));
            // The write under way at the kill may have been committed without an answer.
            assert!(data == known || data == known + 1, "accepted {known}, found {object}");
            if data > 0 {
                assert_eq!((&object["version"], &object["token"]), (&json!(data), &json!(data)));
            }
            if data > 1 {
                assert_eq!(highest_told(addr, client, data - 1).await, json!(data));
            }
            accepted.store(data, Ordering::SeqCst);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_keeps_every_accepted_write_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    kill_again_and_again(folder.path().join("objects.db").to_str().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_keeps_every_accepted_write_in_postgres() {
    let server = PostgresServer::start();
    kill_again_and_again(&server.url("postgres")).await;
}

#[tokio::test]
async fn child_serves() {
    // Does its work only in a process that a test above has started.
    if std::env::var_os(DATABASE).is_none() {
        return;
    }
    end_with_parent();
    let database = std::env::var(DATABASE).unwrap().parse().unwrap();
    let storage = serve(Options::new("127.0.0.1:0".parse().unwrap(), database)).await.unwrap();
    say(&format!("ready {}", storage.local_addr()));
    std::future::pending::<()>().await;
}
