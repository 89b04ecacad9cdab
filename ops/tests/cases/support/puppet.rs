//! The Rust client in a process of its own: it can be paused with its keepalive, and killed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

use holdfast_history::{End, Fact, SessionId, Wait};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use super::{Record, SOON, World, record::nanos, world::number};
use crate::harness::holdfast;

/// A client process that does what it is told.
#[derive(Debug)]
pub(crate) struct Puppet {
    record: Arc<Record>,
    number: u32,
    child: Child,
    orders: ChildStdin,
    told: mpsc::Receiver<Value>,
    pub(crate) session: String,
    asking: Option<(u64, String)>,
}

impl Puppet {
    /// Starts it with a session. Must be called from the test's own thread, which it dies with.
    #[track_caller]
    pub(crate) fn start(world: &World, ttl: Duration, storage: &str) -> Self {
        let mut command = holdfast();
        let sent = world.record.now();
        let mut child = command
            .env("HOLDFAST_ENDPOINTS", world.endpoints().join(","))
            .args(["internal-demo-worker", "--label", "puppet", "--storage", storage])
            .args(["--parent", &std::process::id().to_string()])
            .args(["--ttl-ms", &ttl.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, told) = mpsc::channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if tell.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let orders = child.stdin.take().unwrap();
        let (record, client) = (world.record.clone(), world.record.client());
        let mut puppet =
            Self { record, number: client, child, orders, told, session: String::new(), asking: None };
        puppet.session = puppet.next("session", SOON)["session"].as_str().unwrap().to_owned();
        let session = puppet.id();
        puppet.record.note(Fact::SessionOpened { session, client, ttl: nanos(ttl), sent });
        puppet
    }

    fn id(&self) -> SessionId {
        number(&self.session)
    }

    fn order(&mut self, words: &str) {
        writeln!(self.orders, "{words}").unwrap();
        self.orders.flush().unwrap();
    }

    /// The next event of this kind; others are passed over.
    #[track_caller]
    fn next(&self, event: &str, within: Duration) -> Value {
        self.wait(event, within)
            .unwrap_or_else(|| panic!("the puppet does not tell {event:?} within {within:?}"))
    }

    fn wait(&self, event: &str, within: Duration) -> Option<Value> {
        let until = std::time::Instant::now() + within;
        loop {
            let told =
                self.told.recv_timeout(until.saturating_duration_since(std::time::Instant::now())).ok()?;
            if told["event"] == event {
                return Some(told);
            }
            assert_ne!(told["event"], "error", "{told}");
        }
    }

    /// Asks for a lock without limit, and goes on.
    #[track_caller]
    pub(crate) fn ask(&mut self, lock: &str) {
        let (call, client, session) = (self.record.call(), self.number, self.id());
        let sent = Fact::AcquireSent { call, client, session, lock: lock.into(), wait: Wait::Unlimited };
        self.record.note(sent);
        self.order(&format!("acquire {lock}"));
        self.asking = Some((call, lock.to_owned()));
        self.next("asking", SOON);
    }

    /// Waits for the grant of what it has asked for.
    #[track_caller]
    pub(crate) fn granted(&mut self) -> u64 {
        let told = self.next("granted", SOON);
        let token = told["token"].as_u64().unwrap();
        self.ended(End::Granted(token));
        token
    }

    /// Acquires a lock.
    #[track_caller]
    pub(crate) fn acquire(&mut self, lock: &str) -> u64 {
        self.ask(lock);
        self.granted()
    }

    fn ended(&mut self, end: End) {
        if let Some((call, lock)) = self.asking.take() {
            let (client, session) = (self.number, self.id());
            self.record.note(Fact::AcquireEnded { call, client, session, lock: lock.into(), end });
        }
    }

    /// Has it give its lock back, and answers what it said: `released` or `error`.
    pub(crate) fn release(&mut self) -> Value {
        self.order("release");
        self.told.recv_timeout(SOON).unwrap()
    }

    /// Has it write to an object, and goes on.
    pub(crate) fn order_write(&mut self, object: &str, lock: &str, token: u64, data: &str) {
        self.order(&format!("write {object} {lock} {token} {data}"));
    }

    /// The answer to the next write: status and body.
    #[track_caller]
    pub(crate) fn written(&mut self, object: &str, lock: &str, token: u64, sent: u64) -> (u64, Value) {
        let told = self.next("written", SOON);
        let status = told["status"].as_u64().unwrap();
        self.record.note(Fact::FencedWrite {
            object: object.into(),
            lock: lock.into(),
            token,
            sent,
            accepted: status == 200,
        });
        (status, told["answer"].clone())
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Freezes it, keepalive and all.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        self.record.silent(self.id());
    }

    /// Thaws it.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it. What it had asked for ends unknown.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.record.silent(self.id());
        self.ended(End::Unknown);
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
