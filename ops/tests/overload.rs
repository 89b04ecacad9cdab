//! Many more clients than a cluster can serve: what is too much is refused and not queued, sessions that are kept stay,
//! and what was acknowledged stays acknowledged.
//!
//! `HOLDFAST_SOAK=1`: 5,000 clients for a minute instead of 300 for five seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;
#[path = "overload/storm.rs"]
mod storm;
#[path = "overload/wait.rs"]
mod wait;

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use harness::HOLDFAST;
use holdfast_client::{Client, LockGuard, Session, SessionState};
use holdfast_faults::{Cluster, Plan};
use serde_json::json;
use storm::{Storm, Stormer};
use tokio::runtime::{Builder, Runtime};
use wait::until;

/// Sessions that are kept through it all.
const LIVE: usize = 50;
/// How long a sync takes on slow disks: longer than new work may wait.
const SLOW: Duration = Duration::from_secs(3);
/// What a member may take of memory: far more than it does, far less than queues that grow.
const MEMORY_KIB: u64 = 1 << 20;

/// Of the kept sessions.
fn ttl() -> Duration {
    Duration::from_secs(form(6, 20))
}

fn form<T>(short: T, long: T) -> T {
    if std::env::var_os("HOLDFAST_SOAK").is_some_and(|value| value == "1") { long } else { short }
}

/// A session of the Rust client with the lock that it holds.
struct Kept {
    session: Session,
    guard: LockGuard,
    name: String,
}

/// What the clients run on that keep sessions: threads of its own, as a process of its own would have. Beside the storm's
/// thousands of tasks on one runtime, a timer can come ten seconds late.
struct Keeper(Option<Runtime>);

impl Keeper {
    fn start() -> Self {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("keeper").enable_all().build();
        Self(Some(runtime.unwrap()))
    }

    async fn keep(&self, cluster: &Cluster, ttl: Duration) -> Vec<Kept> {
        let endpoints = cluster.endpoints();
        self.0.as_ref().unwrap().spawn(open(endpoints, ttl)).await.unwrap()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Waiting for its threads is not possible where a test waits for its futures.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

async fn open(endpoints: Vec<String>, ttl: Duration) -> Vec<Kept> {
    let client = Client::builder().endpoints(endpoints).build().unwrap();
    let one = |i: usize| {
        let client = client.clone();
        async move {
            let name = format!("live{i}/kept");
            let session = client.session().ttl(ttl).open().await.unwrap();
            let guard = session.lock(name.as_str()).acquire().await.unwrap();
            Kept { session, guard, name }
        }
    };
    join_all((0..LIVE).map(one)).await
}

/// Nobody of them lost anything.
async fn expect_kept(storm: &Storm, kept: &[Kept], ttl: Duration) {
    let least = kept.iter().map(|kept| kept.guard.remaining()).min().unwrap_or_default();
    println!("overload: least time that a kept session has left: {least:?} of {ttl:?}");
    for Kept { session, guard, name } in kept {
        if guard.state().ended() {
            panic!("{name} was lost: {:?}", guard.lost().await);
        }
        assert!(session.state() != SessionState::Lost, "the session of {name} was lost");
        assert_eq!(storm.holder(name).await.map(|(_, token)| token), Some(guard.token().get()), "{name}");
    }
}

/// The most that each member ever had in memory, KiB.
fn peaks() -> Vec<u64> {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let children = threads.flat_map(|thread| {
        let list = fs::read_to_string(thread.unwrap().path().join("children")).unwrap_or_default();
        list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    children
        .filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        })
        .collect()
}

fn expect_bounded_memory() {
    let peaks = peaks();
    println!(
        "overload: most memory of each member, MiB: {:?}",
        peaks.iter().map(|kib| kib >> 10).collect::<Vec<_>>()
    );
    assert_eq!(peaks.len(), 3, "three members");
    assert!(peaks.iter().all(|kib| *kib < MEMORY_KIB), "{peaks:?} KiB");
}

fn restart_all(cluster: &Cluster) {
    cluster.numbers().for_each(|member| cluster.kill(member).unwrap());
    cluster.numbers().for_each(|member| cluster.start_member(member).unwrap());
    cluster.wait_ready().unwrap();
}

/// The storm, with sessions beside it; and all members killed right behind it.
async fn rage(cluster: &Cluster) {
    let keeper = Keeper::start();
    let kept = keeper.keep(cluster, ttl()).await;
    let storm = Arc::new(Storm::at(cluster));
    let (clients, length) = form((300, Duration::from_secs(5)), (5_000, Duration::from_secs(60)));
    let stormers: Vec<Stormer> = join_all((0..clients).map(|i| Stormer::join(storm.clone(), i))).await;
    storm.begin(length);
    let own = join_all(stormers.iter().map(|stormer| tokio::spawn(stormer.clone().rage()))).await;
    let own: Vec<(String, String, u64)> = own.into_iter().map(|grant| grant.unwrap()).collect();
    println!("overload: {clients} clients for {length:?}: {}", storm.summary());
    expect_kept(&storm, &kept, ttl()).await;
    expect_bounded_memory();
    storm.judge();
    // What was acknowledged in the storm is there, also when all members go down right after it.
    restart_all(cluster);
    for (name, session, token) in &own {
        assert_eq!(storm.holder(name).await, Some((session.clone(), *token)), "{name} was dropped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_clients_costs_no_session_and_no_acknowledged_grant() {
    rage(&Plan::new(HOLDFAST).start().unwrap()).await;
}

/// What is asked of a member at once, and its answer: status, code, and whether it says when to come back.
async fn ask(url: String, body: serde_json::Value) -> (u16, String, bool) {
    let answer = reqwest::Client::new().post(url).json(&body).send().await.unwrap();
    let (status, retry) = (answer.status().as_u16(), answer.headers().contains_key("retry-after"));
    let body: serde_json::Value = answer.json().await.unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned(), retry)
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_slow_disks_new_work_is_refused_and_what_stands_lives_on() {
    let cluster = match Plan::new(HOLDFAST).groups(1).switches().start() {
        Ok(cluster) => cluster,
        Err(error) if error.is_impossible() => return eprintln!("SKIPPED, nothing was tested: {error}"),
        Err(error) => panic!("{error}"),
    };
    let keeper = Keeper::start();
    let kept = keeper.keep(&cluster, ttl()).await;
    let storm = Storm::at(&cluster);
    // The leader and one more: what is proposed needs one of their disks, but the leader and the third member are enough
    // for proofs of leadership.
    let leader = cluster.leader(1).unwrap();
    let other = cluster.numbers().find(|member| *member != leader).unwrap();
    let disks = [leader, other].map(|member| cluster.switch(member).unwrap());
    disks.iter().for_each(|disk| disk.delay_syncs(SLOW).unwrap());
    let slow = Instant::now();
    let member = cluster.http(leader);
    let acquire = |i: usize| {
        let body = json!({"name": "slow/lock", "session": kept[i].session.id().to_string(),
            "request_id": "one", "wait_ms": 60_000});
        tokio::spawn(ask(format!("{member}/v1/locks/acquire"), body))
    };
    let mut asked = Vec::new();
    for i in 0..20 {
        asked.push(acquire(i));
        until(slow + Duration::from_millis(200) * (u32::try_from(i).unwrap() + 1)).await;
    }
    // Whatever ends something is taken, however long its outcome is in coming.
    let body = json!({"name": kept[20].name, "session": kept[20].session.id().to_string(),
        "token": kept[20].guard.token().get()});
    let (status, code, _) = ask(format!("{member}/v1/locks/release"), body).await;
    assert!(code != "overloaded", "a release was refused: {status} {code}");
    // Longer than a TTL: without keepalives all sessions would be over.
    until(slow + ttl() + Duration::from_secs(2)).await;
    disks.iter().for_each(|disk| disk.heal().unwrap());
    let mut refused = 0;
    for (i, answer) in asked.into_iter().enumerate() {
        if !answer.is_finished() {
            answer.abort();
            continue;
        }
        let (status, code, retry) = answer.await.unwrap();
        assert!(status != 503 || retry, "{code} without Retry-After");
        // It stands in the log since before the disks were too much, whatever a repeat of it was answered.
        assert!(i > 0 || status == 200 || code == "unknown_outcome", "the first acquire: {status} {code}");
        refused += usize::from((status, code.as_str()) == (503, "overloaded"));
    }
    assert!(refused > 0, "nothing was refused as overloaded");
    println!("overload: {refused} of 20 refused behind slow disks");
    let (_, others) = kept.split_at(21);
    expect_kept(&storm, others, ttl()).await;
}
