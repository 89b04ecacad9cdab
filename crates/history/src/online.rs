//! A checker for many threads at once: locks are dealt out to shards, so that clients of different locks do not wait for
//! each other. Starts no thread.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};

use crate::{
    checker::{Judge, Limits},
    event::{Event, Fact},
    sessions::Sessions,
    violation::Violation,
};

/// Enough that a few dozen threads seldom meet.
const SHARDS: usize = 64;

/// A [`Checker`](crate::Checker) that many threads feed. Events of one lock must be fed in an order in which they can have
/// happened: a client feeds what it sends before it sends it, and what it was told after it was told.
#[derive(Debug)]
pub struct Online {
    /// Locked before a shard. All events of locks read it, few events write it.
    sessions: RwLock<Sessions>,
    shards: Box<[Mutex<Judge>]>,
    hasher: BuildHasherDefault<DefaultHasher>,
}

impl Online {
    /// A checker of an empty history.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(Judge::new(limits))).collect();
        Self { sessions: RwLock::default(), shards, hasher: BuildHasherDefault::default() }
    }

    fn shard(&self, name: Option<&Arc<str>>) -> Option<&Mutex<Judge>> {
        let number = name.map_or(0, |name| self.hasher.hash_one(name) % SHARDS as u64);
        self.shards.get(usize::try_from(number).unwrap_or(0))
    }

    /// Takes in one event.
    pub fn observe(&self, event: &Event) {
        let name = match &event.fact {
            Fact::FencedWrite { object, .. } => Some(object),
            _ => event.lock(),
        };
        let Some(shard) = self.shard(name) else { return };
        if event.is_of_session() {
            let mut sessions = self.sessions.write();
            shard.lock().session(event, &mut sessions);
        } else {
            let sessions = self.sessions.read();
            shard.lock().observe(event, &sessions);
        }
    }

    /// The run is over and drained: what has not ended by now never will.
    pub fn finish(&self, at: u64) {
        let sessions = self.sessions.read();
        for shard in &self.shards {
            shard.lock().finish(at, &sessions);
        }
    }

    /// How many violations were found so far.
    #[must_use]
    pub fn violation_count(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().violation_count()).sum()
    }

    /// What was found so far, at most a thousand of each shard, in the order of time.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let mut all: Vec<Violation> =
            self.shards.iter().flat_map(|shard| shard.lock().violations().to_vec()).collect();
        all.sort_by_key(|violation| violation.second.at);
        all
    }
}
