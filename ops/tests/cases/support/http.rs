//! A recording client over HTTP. Nothing is renewed or repeated unless a test says so.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use holdfast_history::{Fact, ReleaseEnd, SessionEnd, Wait};
use serde_json::{Value, json};

use super::{
    Outcome, Record, SOON,
    record::nanos,
    wait::{eventually, nap},
    world::number,
};
use crate::harness::{Answer, delete, post};

/// A client that talks to one member.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    record: Arc<Record>,
    number: u32,
    base: String,
}

impl Client {
    pub(crate) fn new(record: Arc<Record>, base: String) -> Self {
        Self { number: record.client(), record, base }
    }

    /// Opens a session, however often it must be asked for.
    #[track_caller]
    pub(crate) fn open(&self, ttl: Duration) -> Session {
        eventually("a session is opened", SOON, || self.try_open(ttl))
    }

    fn try_open(&self, ttl: Duration) -> Option<Session> {
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap();
        let sent = self.record.now();
        let answer = post(&format!("{}/v1/sessions", self.base), &json!({"ttl_ms": ttl_ms}));
        if answer.status != 201 {
            return None;
        }
        let id = answer.body["session"].as_str().unwrap().to_owned();
        let fact = Fact::SessionOpened { session: number(&id), client: self.number, ttl: nanos(ttl), sent };
        self.record.note(fact);
        Some(Session { client: self.clone(), id, ttl })
    }
}

/// An open session. Clones are the same session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    client: Client,
    pub(crate) id: String,
    ttl: Duration,
}

impl Session {
    fn record(&self) -> &Record {
        &self.client.record
    }

    /// The same session, talking to another member.
    pub(crate) fn at(&self, base: String) -> Self {
        Self { client: Client { base, ..self.client.clone() }, ..self.clone() }
    }

    fn ask(&self, path: &str, body: &Value) -> Answer {
        post(&format!("{}/v1/{path}", self.client.base), body)
    }

    /// Takes a lock if it is free.
    pub(crate) fn try_lock(&self, lock: &str) -> Outcome {
        self.acquire(lock, Wait::Try)
    }

    /// Waits in line at most so long.
    pub(crate) fn wait(&self, lock: &str, limit: Duration) -> Outcome {
        self.acquire(lock, Wait::AtMost(nanos(limit)))
    }

    /// Waits in line without limit.
    pub(crate) fn wait_on(&self, lock: &str) -> Outcome {
        self.acquire(lock, Wait::Unlimited)
    }

    /// One call with a request id of its own.
    pub(crate) fn acquire(&self, lock: &str, wait: Wait) -> Outcome {
        let call = self.record().call();
        self.acquire_as(lock, wait, &format!("r{call}"))
    }

    /// One call with this request id.
    pub(crate) fn acquire_as(&self, lock: &str, wait: Wait, id: &str) -> Outcome {
        let body = self.body(lock, wait, id);
        self.recorded(lock, wait, || outcome(&self.ask("locks/acquire", &body)))
    }

    /// The same request, at one member after the other, until it is answered for good.
    #[track_caller]
    pub(crate) fn acquire_for_good(&self, lock: &str, wait: Wait, members: &[String]) -> Outcome {
        let body = self.body(lock, wait, &format!("r{}", self.record().call()));
        self.recorded(lock, wait, || self.for_good("locks/acquire", &body, members))
    }

    /// Stands for election, at one member after the other, until it is answered for good.
    #[track_caller]
    pub(crate) fn campaign(&self, election: &str, wait: Wait, members: &[String]) -> Outcome {
        let mut body = self.body(election, wait, &format!("r{}", self.record().call()));
        body["value"] = self.id.clone().into();
        // Elections are queues of their own.
        let lock = format!("election {election}");
        self.recorded(&lock, wait, || self.for_good("elections/campaign", &body, members))
    }

    #[track_caller]
    fn for_good(&self, path: &str, body: &Value, members: &[String]) -> Outcome {
        let mut member = members.iter().cycle();
        eventually(&format!("{path} is answered for good"), 3 * SOON, || {
            let answer = outcome(&self.at(member.next()?.clone()).ask(path, body));
            (!matches!(answer, Outcome::Unknown(_))).then_some(answer)
        })
    }

    fn body(&self, name: &str, wait: Wait, id: &str) -> Value {
        let mut body = json!({"name": name, "session": self.id, "request_id": id});
        match wait {
            Wait::Try => body["wait_ms"] = 0.into(),
            Wait::AtMost(limit) => body["wait_ms"] = (limit / 1_000_000).into(),
            Wait::Unlimited => {}
        }
        body
    }

    fn recorded(&self, lock: &str, wait: Wait, ask: impl FnOnce() -> Outcome) -> Outcome {
        let (call, client, session) = (self.record().call(), self.client.number, number(&self.id));
        self.record().note(Fact::AcquireSent { call, client, session, lock: lock.into(), wait });
        let outcome = ask();
        let end = outcome.end();
        self.record().note(Fact::AcquireEnded { call, client, session, lock: lock.into(), end });
        if outcome == Outcome::SessionLost {
            self.record().lost(session);
        }
        outcome
    }

    /// Gives up the wait that has this request id, and answers how it was found.
    pub(crate) fn cancel(&self, lock: &str, id: &str) -> String {
        let body = json!({"name": lock, "session": self.id, "request_id": id});
        let answer = self.ask("locks/cancel", &body).expect(200);
        answer["outcome"].as_str().unwrap_or_default().to_owned()
    }

    /// Releases, once.
    pub(crate) fn release(&self, lock: &str, token: u64) -> Answer {
        let (client, session) = (self.client.number, number(&self.id));
        self.record().note(Fact::ReleaseSent { client, session, lock: lock.into(), token });
        let answer = self.ask("locks/release", &json!({"name": lock, "session": self.id, "token": token}));
        let end = match answer.status {
            200 => ReleaseEnd::Released,
            409 | 410 => ReleaseEnd::NotHolder,
            400 | 404 => ReleaseEnd::Error,
            _ => ReleaseEnd::Unknown,
        };
        self.record().note(Fact::ReleaseEnded { client, session, lock: lock.into(), token, end });
        answer
    }

    /// Releases at one member after the other until one says that the hold is over.
    #[track_caller]
    pub(crate) fn release_for_good(&self, lock: &str, token: u64, members: &[String]) {
        let mut member = members.iter().cycle();
        eventually("a release is answered for good", 3 * SOON, || {
            let answer = self.at(member.next()?.clone()).release(lock, token);
            assert!(!matches!(answer.status, 409 | 410), "{}", answer.body);
            (answer.status == 200).then_some(())
        });
    }

    /// Sends one keepalive and answers its status.
    pub(crate) fn keepalive(&self) -> u16 {
        let sent = self.record().now();
        let answer = self.ask("sessions/keepalive", &json!({"session": self.id}));
        match answer.status {
            200 if renewed_everywhere(&answer.body) => {
                self.record().note(Fact::KeepaliveAcknowledged { session: number(&self.id), sent });
            }
            410 => self.record().lost(number(&self.id)),
            _ => {}
        }
        answer.status
    }

    /// Keeps it alive from now on, at one of these members after the other, until the keeper is dropped.
    pub(crate) fn keep(&self, members: Vec<String>) -> Keeper {
        let stop = Arc::new(AtomicBool::new(false));
        let (session, told) = (self.clone(), stop.clone());
        let pause = self.ttl / 6;
        let keep = move || {
            for member in members.iter().cycle() {
                if told.load(Ordering::Relaxed) || session.at(member.clone()).keepalive() == 410 {
                    return;
                }
                nap(pause);
            }
        };
        Keeper { session: self.clone(), stop, thread: Some(std::thread::spawn(keep)) }
    }

    /// The client is gone from here on.
    pub(crate) fn falls_silent(&self) {
        self.record().silent(number(&self.id));
    }

    /// Closes it.
    pub(crate) fn close(&self) {
        let fact = Fact::SessionEnded { session: number(&self.id), end: SessionEnd::Closed };
        self.record().note(fact);
        let closed = delete(&format!("{}/v1/sessions?session={}", self.client.base, self.id));
        assert!(matches!(closed.status, 204 | 410), "{}", closed.body);
    }
}

/// Keeps a session alive. Dropping it stops that: nothing is sent afterwards.
#[derive(Debug)]
pub(crate) struct Keeper {
    session: Session,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Stops, and notes that the client is gone.
    pub(crate) fn die(self) {
        let session = self.session.clone();
        drop(self);
        session.falls_silent();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Whether every group that knows the session has renewed it: a lock's deadline counts only its own group's word.
fn renewed_everywhere(answer: &Value) -> bool {
    let groups = answer["groups"].as_array().unwrap();
    groups.iter().all(|group| group["state"] == "renewed" || group["state"] == "unknown")
}

fn outcome(answer: &Answer) -> Outcome {
    let code = answer.body["code"].as_str().unwrap_or_default();
    match (answer.status, code) {
        (200, _) => Outcome::Granted(answer.body["token"].as_u64().unwrap()),
        (409, "busy") => Outcome::Busy,
        (409, "cancelled") => Outcome::Cancelled,
        (408, _) => Outcome::TimedOut,
        (410, "session_lost") => Outcome::SessionLost,
        (400..500, code) => Outcome::Refused(code.to_owned()),
        (status, code) => Outcome::Unknown(format!("{status} {code} {}", answer.body)),
    }
}
