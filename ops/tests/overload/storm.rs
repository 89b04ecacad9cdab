//! Clients that ask without pause over HTTP, and the record of what they were told.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use holdfast_faults::Cluster;
use holdfast_history::{Checker, End, Event, Fact, Limits, ReleaseEnd, SessionId, Wait};
use serde_json::{Value, json};

use crate::harness::encoded;

/// Locks that all of them want, in all groups.
const LOCKS: usize = 100;
/// How long a waiting one waits.
const WAIT: Duration = Duration::from_millis(200);
/// Longer than any single answer takes.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Sessions outlive the test.
const TTL: Duration = Duration::from_secs(7_200);

/// What all clients share.
#[derive(Debug)]
pub(crate) struct Storm {
    http: reqwest::Client,
    members: Vec<String>,
    began: Instant,
    ends: Mutex<Instant>,
    events: Mutex<Vec<Event>>,
    calls: AtomicU64,
    answers: Mutex<BTreeMap<String, u64>>,
}

/// One client.
#[derive(Clone, Debug)]
pub(crate) struct Stormer {
    storm: Arc<Storm>,
    number: usize,
    session: String,
}

impl Storm {
    pub(crate) fn at(cluster: &Cluster) -> Self {
        Self {
            http: reqwest::Client::builder().timeout(ANSWER_WITHIN).build().unwrap(),
            members: cluster.numbers().map(|member| cluster.http(member)).collect(),
            began: Instant::now(),
            ends: Mutex::new(Instant::now()),
            events: Mutex::default(),
            calls: AtomicU64::new(0),
            answers: Mutex::default(),
        }
    }

    /// The storm lasts so long from now on.
    pub(crate) fn begin(&self, length: Duration) {
        *self.ends.lock().unwrap() = Instant::now() + length;
    }

    fn rages(&self) -> bool {
        Instant::now() < *self.ends.lock().unwrap()
    }

    fn now(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    fn note(&self, fact: Fact) {
        let mut events = self.events.lock().unwrap();
        // The moment is taken under the lock: the list is in the order of times.
        events.push(Event::new(self.now(), fact));
    }

    /// Status and body; status 0 without an answer. Counts it, and checks that a refusal says when to come back.
    async fn post(&self, member: usize, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}/v1/{path}", self.members[member % self.members.len()]);
        let (status, body) = match self.http.post(url).json(body).send().await {
            Ok(answer) => {
                let (status, retry) =
                    (answer.status().as_u16(), answer.headers().contains_key("retry-after"));
                let body: Value = answer.json().await.unwrap_or(Value::Null);
                assert!(status != 503 || retry, "a refusal without Retry-After: {body}");
                (status, body)
            }
            Err(_) => (0, Value::Null),
        };
        let code = body["code"].as_str().unwrap_or_default();
        *self.answers.lock().unwrap().entry(format!("{path} {status} {code}")).or_default() += 1;
        (status, body)
    }

    async fn get(&self, path: &str) -> Value {
        let asked = Instant::now();
        for member in self.members.iter().cycle() {
            if let Ok(answer) = self.http.get(format!("{member}{path}")).send().await {
                let status = answer.status().as_u16();
                if status == 200 || status == 404 {
                    return answer.json().await.unwrap_or(Value::Null);
                }
            }
            assert!(asked.elapsed() < ANSWER_WITHIN, "nobody answers {path}");
        }
        Value::Null
    }

    /// Who holds a lock: session and token.
    pub(crate) async fn holder(&self, name: &str) -> Option<(String, u64)> {
        let shown = self.get(&format!("/v1/locks?name={}", encoded(name))).await;
        let holder = &shown["holder"];
        Some((holder["session"].as_str()?.to_owned(), holder["token"].as_u64()?))
    }

    /// Answers by kind.
    pub(crate) fn summary(&self) -> String {
        let answers = self.answers.lock().unwrap();
        answers.iter().map(|(kind, count)| format!("{kind}: {count}")).collect::<Vec<_>>().join(", ")
    }

    /// Judges what all clients were told; every acquire ended once.
    #[track_caller]
    pub(crate) fn judge(&self) {
        let events = self.events.lock().unwrap();
        let mut open = BTreeMap::new();
        let mut checker = Checker::new(Limits { order: false, ..Limits::default() });
        for event in events.iter() {
            match &event.fact {
                Fact::AcquireSent { call, .. } => assert!(open.insert(*call, ()).is_none()),
                Fact::AcquireEnded { call, .. } => assert!(open.remove(call).is_some(), "{call} ended twice"),
                _ => {}
            }
            checker.observe(event);
        }
        checker.finish(self.now());
        assert!(open.is_empty(), "{} acquires never ended", open.len());
        let found: Vec<String> = checker.violations().iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "BROKEN PROMISE:\n{}", found.join("\n"));
        println!("overload: {} events judged", events.len());
    }
}

impl Stormer {
    /// Opens a session, however often it must be asked for.
    pub(crate) async fn join(storm: Arc<Storm>, number: usize) -> Self {
        let began = Instant::now();
        loop {
            let sent = storm.now();
            let body = json!({"ttl_ms": u64::try_from(TTL.as_millis()).unwrap()});
            let (_, body) = storm.post(number, "sessions", &body).await;
            if let Some(session) = body["session"].as_str() {
                let stormer = Self { storm: storm.clone(), number, session: session.to_owned() };
                storm.note(Fact::SessionOpened {
                    session: stormer.id(),
                    client: stormer.client(),
                    ttl: nanos(TTL),
                    sent,
                });
                return stormer;
            }
            assert!(began.elapsed() < ANSWER_WITHIN, "no session: {body}");
        }
    }

    fn id(&self) -> SessionId {
        SessionId(u64::from_str_radix(&self.session, 16).unwrap())
    }

    fn client(&self) -> u32 {
        u32::try_from(self.number).unwrap()
    }

    /// Acquires and releases until the storm is over; then takes a lock of its own and answers it.
    pub(crate) async fn rage(self) -> (String, String, u64) {
        let mut round = 0;
        while self.storm.rages() {
            let lock = format!("s{}/lock", (self.number * 31 + round * 7) % LOCKS);
            let wait =
                if (self.number + round).is_multiple_of(4) { Wait::AtMost(nanos(WAIT)) } else { Wait::Try };
            round += 1;
            if let End::Granted(token) = self.acquire(&lock, wait).await {
                self.release(&lock, token).await;
            }
        }
        let own = format!("own{}/lock", self.number);
        let body = json!({"name": own, "session": self.session, "request_id": "own", "wait_ms": 0});
        let began = Instant::now();
        for member in self.number.. {
            let (status, body) = self.storm.post(member, "locks/acquire", &body).await;
            if status == 200 {
                return (own, self.session, body["token"].as_u64().unwrap());
            }
            assert!(began.elapsed() < 2 * ANSWER_WITHIN, "{own} is not granted: {status} {body}");
        }
        unreachable!("members are counted without end")
    }

    async fn acquire(&self, lock: &str, wait: Wait) -> End {
        let wait_ms = match wait {
            Wait::Try => 0,
            Wait::AtMost(nanos) => nanos / 1_000_000,
            Wait::Unlimited => u64::MAX,
        };
        let (call, lock): (u64, Arc<str>) = (self.storm.calls.fetch_add(1, Ordering::Relaxed), lock.into());
        let mut body = json!({"name": lock, "session": self.session, "request_id": format!("r{call}")});
        body["wait_ms"] = wait_ms.into();
        let (client, session) = (self.client(), self.id());
        self.storm.note(Fact::AcquireSent { call, client, session, lock: lock.clone(), wait });
        let (status, answer) = self.storm.post(self.number, "locks/acquire", &body).await;
        let end = match (status, answer["code"].as_str().unwrap_or_default()) {
            (200, _) => End::Granted(answer["token"].as_u64().unwrap()),
            (409, "busy") => End::Busy,
            (408, _) => End::TimedOut,
            (503, "no_leader" | "overloaded") => End::Error,
            // It holds the lock, or waits, after an answer that was lost.
            (409, "already_held" | "already_waiting") => End::Error,
            (0, _) | (503, _) => End::Unknown,
            _ => panic!("{lock}: {status} {answer}"),
        };
        self.storm.note(Fact::AcquireEnded { call, client, session, lock, end });
        end
    }

    /// Releases, however often it must be asked for.
    async fn release(&self, lock: &str, token: u64) {
        let (client, session, lock): (_, _, Arc<str>) = (self.client(), self.id(), lock.into());
        self.storm.note(Fact::ReleaseSent { client, session, lock: lock.clone(), token });
        let body = json!({"name": lock, "session": self.session, "token": token});
        let began = Instant::now();
        loop {
            let (status, answer) = self.storm.post(self.number, "locks/release", &body).await;
            let end = match status {
                200 => ReleaseEnd::Released,
                0 | 503 if began.elapsed() < ANSWER_WITHIN => continue,
                _ => panic!("{lock} is not released: {status} {answer}"),
            };
            self.storm.note(Fact::ReleaseEnded { client, session, lock, token, end });
            return;
        }
    }
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap()
}
