//! Safety on real processes, over HTTP: leaders and clients die at bad moments, requests come twice or too late, and no
//! grant is lost, doubled or out of order. The public failure cases stand in `cases`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use harness::{Answer, Cluster, delete, eventually, get, post};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(15);

fn acquire(cluster: &Cluster, member: u16, name: &str, session: &str, wait_ms: u64, id: &str) -> Answer {
    let body = json!({"name": name, "session": session, "wait_ms": wait_ms, "request_id": id});
    post(&format!("{}/v1/locks/acquire", cluster.http(member)), &body)
}

fn release(cluster: &Cluster, member: u16, name: &str, session: &str, token: &Value) -> Answer {
    let body = json!({"name": name, "session": session, "token": token});
    post(&format!("{}/v1/locks/release", cluster.http(member)), &body)
}

fn keepalive(cluster: &Cluster, member: u16, session: &str) -> u16 {
    post(&format!("{}/v1/sessions/keepalive", cluster.http(member)), &json!({"session": session})).status
}

fn code(answer: &Answer) -> String {
    answer.body["code"].as_str().unwrap_or_default().to_owned()
}

/// The member that leads the group of a lock.
fn leader_of(cluster: &Cluster, name: &str) -> u16 {
    let group = cluster.lock(1, name)["group"].clone();
    let groups = get(&format!("{}/v1/groups", cluster.http(1))).expect(200)["groups"].clone();
    let view = groups.as_array().unwrap().iter().find(|view| view["group"] == group).unwrap().clone();
    u16::try_from(view["leader"].as_u64().unwrap()).unwrap()
}

/// One hold as its client saw it: from the answer to just before the release was sent.
struct Hold {
    token: u64,
    from: Instant,
    until: Instant,
}

/// Acquires and releases until told to stop; at any member, again with the same request id where an answer is lost.
fn contend(cluster: &Cluster, client: u16, stop: &AtomicBool, holds: &Mutex<Vec<Hold>>) {
    let session = cluster.session(client % 3 + 1, 60_000);
    for round in 0_u16.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let id = format!("c{client}-r{round}");
        let granted = eventually("an acquire is answered for good", Duration::from_secs(60), || {
            let member = (client + round) % 3 + 1;
            let answer = acquire(cluster, member, "hot", &session, 20_000, &id);
            match answer.status {
                200 => Some(answer.body),
                408 => panic!("20 s were not enough: {}", answer.body),
                0 | 503 => acquire_elsewhere(cluster, member, &session, &id),
                _ => panic!("{}: {}", answer.status, answer.body),
            }
        });
        let from = Instant::now();
        let until = Instant::now();
        let token = granted["token"].as_u64().unwrap();
        holds.lock().unwrap().push(Hold { token, from, until });
        eventually("a release is answered for good", Duration::from_secs(60), || {
            let answers = (1..=3).map(|member| release(cluster, member, "hot", &session, &granted["token"]));
            answers.map(|answer| answer.status).find(|status| *status == 200)
        });
    }
}

fn acquire_elsewhere(cluster: &Cluster, but: u16, session: &str, id: &str) -> Option<Value> {
    let answer = acquire(cluster, but % 3 + 1, "hot", session, 20_000, id);
    (answer.status == 200).then_some(answer.body)
}

#[test]
fn a_leader_killed_under_contention_loses_and_doubles_no_grant() {
    let cluster = Cluster::start();
    let (stop, holds) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for client in 0..20 {
            let (cluster, stop, holds) = (&cluster, &stop, &holds);
            scope.spawn(move || contend(cluster, client, stop, holds));
        }
        let count = || holds.lock().unwrap().len();
        eventually("the lock goes round", SOON, || (count() > 40).then_some(()));
        cluster.kill(leader_of(&cluster, "hot"));
        let before = count();
        eventually("it goes round again", Duration::from_secs(30), || (count() > before + 40).then_some(()));
        stop.store(true, Ordering::Relaxed);
    });
    let mut holds = holds.into_inner().unwrap();
    holds.sort_by_key(|hold| hold.token);
    for pair in holds.windows(2) {
        assert!(pair[0].token < pair[1].token, "BROKEN PROMISE: token {} was granted twice", pair[0].token);
        assert!(
            pair[0].until <= pair[1].from,
            "BROKEN PROMISE: tokens {} and {} overlap",
            pair[0].token,
            pair[1].token
        );
    }
    cluster.wait_ready();
    assert_eq!(cluster.lock(1, "hot")["holder"], Value::Null, "everything was released");
}

#[test]
fn a_session_closed_at_home_while_it_acquires_elsewhere_holds_nothing() {
    let cluster = Cluster::start();
    for round in 0..30 {
        let session = cluster.session(1, 60_000);
        let names: Vec<String> = (0..4).map(|n| format!("r4-{round}-{n}")).collect();
        thread::scope(|scope| {
            for name in &names {
                let (cluster, session) = (&cluster, &session);
                scope.spawn(move || acquire(cluster, 2, name, session, 0, "r"));
            }
            let closed = delete(&format!("{}/v1/sessions?session={session}", cluster.http(3)));
            assert_eq!(closed.status, 204, "{}", closed.body);
        });
        for name in &names {
            eventually(&format!("{name} is free"), Duration::from_secs(5), || {
                (cluster.lock(1, name)["holder"] == Value::Null).then_some(())
            });
        }
    }
}

#[test]
fn a_late_duplicate_of_an_acquire_is_never_executed_again() {
    let cluster = Cluster::start();
    let session = cluster.session(1, 60_000);
    let first = acquire(&cluster, 1, "r11", &session, 0, "once").expect(200);
    let repeat = acquire(&cluster, 2, "r11", &session, 0, "once").expect(200);
    assert_eq!(first["token"], repeat["token"], "a repeat while it holds is the same grant");
    let second = acquire(&cluster, 3, "r11", &session, 0, "other");
    assert_eq!((second.status, code(&second).as_str()), (409, "already_held"), "{}", second.body);
    release(&cluster, 1, "r11", &session, &first["token"]).expect(200);
    let late = acquire(&cluster, 2, "r11", &session, 0, "once");
    assert_eq!((late.status, code(&late).as_str()), (409, "stale_request"), "{}", late.body);
    assert_eq!(cluster.lock(3, "r11")["holder"], Value::Null);
}

#[test]
fn holders_and_sessions_survive_a_full_stop_and_start() {
    let mut cluster = Cluster::start();
    let session = cluster.session(1, 60_000);
    let held = acquire(&cluster, 2, "again", &session, 0, "r").expect(200);
    assert!(cluster.stop(Signal::SIGINT).success());
    cluster.start_again();
    let lock = cluster.lock(3, "again");
    assert_eq!((&lock["holder"]["session"], &lock["holder"]["token"]), (&json!(session), &held["token"]));
    assert_eq!(keepalive(&cluster, 2, &session), 200);
    assert_eq!(release(&cluster, 1, "again", &session, &held["token"]).expect(200)["released"], true);
    let next = acquire(&cluster, 1, "again", &session, 0, "r2").expect(200);
    assert!(next["token"].as_u64() > held["token"].as_u64(), "tokens grow over a restart");
}
