//! Clients that take a few locks by turns while the cluster changes under them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::json;

use crate::harness::{Cluster, eventually, post};

/// How long clients may be without a turn.
const TURNS_WITHIN: Duration = Duration::from_secs(40);
const NAMES: usize = 6;
/// Before a member that could not answer is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Clients at all members that take a few locks by turns, and never two of them the same one.
pub(crate) struct Crowd {
    stop: Arc<AtomicBool>,
    turns: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    pub(crate) fn begin(cluster: &Cluster, members: u16) -> Self {
        let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let inside: Arc<Vec<AtomicU32>> = Arc::new((0..NAMES).map(|_| AtomicU32::new(0)).collect());
        let newest: Arc<Vec<AtomicU64>> = Arc::new((0..NAMES).map(|_| AtomicU64::new(0)).collect());
        let mut clients = Vec::new();
        for at in 1..=members {
            let (stop, turns, inside, newest) = (stop.clone(), turns.clone(), inside.clone(), newest.clone());
            let (http, session) = (cluster.http(at), cluster.session(at, 600_000));
            clients.push(std::thread::spawn(move || {
                let (mut turn, mut request) = (usize::from(at), 0);
                while !stop.load(Ordering::Relaxed) {
                    let number = turn % NAMES;
                    let name = format!("crowd/{number}");
                    let id = format!("{at}-{request}");
                    let body = json!({"name": name, "session": session, "request_id": id, "wait_ms": 20_000});
                    let answer = post(&format!("{http}/v1/locks/acquire"), &body);
                    assert_ne!(answer.status, 410, "the session of {name} is lost: {answer:?}");
                    if answer.status != 200 {
                        // Without an outcome the same request is asked again: a member is down, or a group between two leaders.
                        request += u32::from(answer.status == 408);
                        std::thread::park_timeout(PAUSE);
                        continue;
                    }
                    (turn, request) = (turn + 1, request + 1);
                    let token = answer.expect(200)["token"].as_u64().unwrap();
                    assert_eq!(inside[number].fetch_add(1, Ordering::SeqCst), 0, "two hold {name}");
                    assert!(
                        newest[number].fetch_max(token, Ordering::SeqCst) < token,
                        "the token of {name} is old"
                    );
                    inside[number].fetch_sub(1, Ordering::SeqCst);
                    let body = json!({"name": name, "session": session, "token": token});
                    // One whose answer was lost has released it the first time.
                    while !matches!(post(&format!("{http}/v1/locks/release"), &body).status, 200 | 409) {
                        std::thread::park_timeout(PAUSE);
                    }
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        Self { stop, turns, clients }
    }

    /// Waits until clients have had more turns: nobody is stuck.
    #[track_caller]
    pub(crate) fn goes_on(&self) {
        let before = self.turns.load(Ordering::Relaxed);
        eventually("clients get their turns", TURNS_WITHIN, || {
            (self.turns.load(Ordering::Relaxed) >= before + 24).then_some(())
        });
    }

    pub(crate) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().for_each(|client| client.join().unwrap());
    }
}
