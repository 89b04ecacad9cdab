//! Workers: `holdfast claims join` as processes of their own, what they said, and what was done to them.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use super::harness::{Cluster, eventually};

/// How a worker ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// By SIGKILL.
    Killed,
    /// By SIGSTOP, for longer than its session lives.
    Paused,
    /// By a signal that it hears.
    Told(Signal),
    /// By an operator.
    Drained,
}

/// What became of one worker.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) session: String,
    /// What it said, as it said it.
    pub(crate) said: Vec<Value>,
    /// What was done to it, and when, in milliseconds since 1970.
    pub(crate) struck: Option<(Fate, u64)>,
}

#[derive(Debug)]
struct Worker {
    child: Child,
    session: String,
    said: Arc<Mutex<Vec<Value>>>,
    struck: Option<(Fate, u64)>,
}

/// All workers that ever were.
#[derive(Debug, Default)]
pub(crate) struct Crew {
    workers: Vec<Worker>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

impl Worker {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// The partitions it believes that it has.
    fn has(&self) -> Vec<u64> {
        let mut has = BTreeMap::new();
        for line in self.said.lock().unwrap().iter() {
            match (line["event"].as_str().unwrap(), line["partition"].as_u64()) {
                ("assigned", Some(partition)) => {
                    has.insert(partition, ());
                }
                ("revoked", Some(partition)) => {
                    has.remove(&partition);
                }
                ("ended", _) => has.clear(),
                _ => {}
            }
        }
        has.into_keys().collect()
    }
}

impl Crew {
    /// A new worker takes part.
    pub(crate) fn join(&mut self, cluster: &Cluster, claim: &str, partitions: u32, ttl: Duration) {
        let (partitions, ttl) = (partitions.to_string(), format!("{}ms", ttl.as_millis()));
        let arguments = ["claims", "join", claim, "--partitions", &partitions, "--ttl", &ttl, "-o", "json"];
        let mut command = cluster.holdfast(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let said = Arc::<Mutex<Vec<Value>>>::default();
        let (lines, heard) = (BufReader::new(child.stdout.take().unwrap()).lines(), said.clone());
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                heard.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let session = eventually("a worker takes part", Duration::from_secs(20), || {
            said.lock().unwrap().first().map(|line| line["session"].as_str().unwrap().to_owned())
        });
        self.workers.push(Worker { child, session, said, struck: None });
    }

    /// The oldest worker that nothing was done to yet.
    fn victim(&mut self) -> &mut Worker {
        self.workers.iter_mut().find(|worker| worker.struck.is_none()).expect("somebody is left")
    }

    /// Something is done to a worker.
    pub(crate) fn strike(&mut self, fate: Fate) {
        let worker = self.victim();
        worker.struck = Some((fate, now_ms()));
        match fate {
            Fate::Killed => worker.signal(Signal::SIGKILL),
            Fate::Paused => worker.signal(Signal::SIGSTOP),
            Fate::Told(signal) => worker.signal(signal),
            Fate::Drained => {}
        }
    }

    /// A worker is about to be drained. Answers its session.
    pub(crate) fn strike_one_drained(&mut self) -> String {
        let worker = self.victim();
        worker.struck = Some((Fate::Drained, now_ms()));
        worker.session.clone()
    }

    /// Paused workers go on: they find out what they have lost, and end.
    pub(crate) fn wake(&mut self) {
        for worker in &mut self.workers {
            if matches!(worker.struck, Some((Fate::Paused, _))) && worker.child.try_wait().unwrap().is_none()
            {
                worker.signal(Signal::SIGCONT);
                let ended = eventually("a paused worker finds out", Duration::from_secs(20), || {
                    worker.child.try_wait().unwrap()
                });
                assert_eq!(ended.code(), Some(70), "it has lost what it had");
            }
        }
    }

    /// The sessions of those that nothing was done to.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let live = self.workers.iter().filter(|worker| worker.struck.is_none());
        live.map(|worker| worker.session.clone()).collect()
    }

    /// Who has which partition, as the workers themselves say.
    pub(crate) fn has(&self) -> Vec<String> {
        let live = self.workers.iter().filter(|worker| worker.struck.is_none());
        let mut owners = BTreeMap::new();
        for worker in live {
            for partition in worker.has() {
                owners.insert(partition, worker.session.clone());
            }
        }
        owners.into_values().collect()
    }

    /// Everybody leaves. Answers what became of each.
    pub(crate) fn disband(&mut self) -> Vec<Story> {
        while !self.sessions().is_empty() {
            self.strike(Fate::Told(Signal::SIGTERM));
        }
        let mut stories = Vec::new();
        for mut worker in std::mem::take(&mut self.workers) {
            let ended =
                eventually("a worker ends", Duration::from_secs(20), || worker.child.try_wait().unwrap());
            match worker.struck {
                Some((Fate::Told(_) | Fate::Drained, _)) => {
                    assert!(ended.success(), "{:?} ended with {ended}", worker.struck);
                    let said = || worker.said.lock().unwrap().last().map(|line| line["event"].clone());
                    eventually("its last word", Duration::from_secs(5), || {
                        (said()? == "ended").then_some(())
                    });
                }
                Some((Fate::Killed | Fate::Paused, _)) | None => {}
            }
            let said = std::mem::take(&mut *worker.said.lock().unwrap());
            stories.push(Story { session: worker.session.clone(), said, struck: worker.struck });
        }
        stories
    }
}

/// By the clock that workers also read.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}
