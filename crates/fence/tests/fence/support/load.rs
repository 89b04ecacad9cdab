//! Many writers with tokens in random order, and the judge of what was accepted.
//!
//! The judge takes the database's own order: a log table written in the transaction of each accepted write.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use rand::{Rng, SeedableRng, rngs::StdRng};

/// Locks written under, each with a mark of its own.
pub(crate) const LOCKS: usize = 4;

/// Writers at the same time.
pub(crate) const WRITERS: usize = 32;

/// One write to be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) id: i64,
    pub(crate) lock: usize,
    pub(crate) token: u64,
}

impl Attempt {
    pub(crate) fn lock_name(&self) -> String {
        format!("load/{}", self.lock)
    }
}

/// Writes whose tokens rise slowly and jump about on the way, so that a good part is accepted, a good part is stale, and
/// many are equal. One in twenty comes from far back.
pub(crate) fn attempts(seed: u64, count: i64) -> Vec<Attempt> {
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    (0..count)
        .map(|id| {
            let base = 1 + id.unsigned_abs() / 8;
            let token = if random.random_ratio(1, 20) {
                random.random_range(1..=base)
            } else {
                base + random.random_range(0..16)
            };
            Attempt { id, lock: random.random_range(0..LOCKS), token }
        })
        .collect()
}

/// What the writers were told.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accepted: Mutex<BTreeSet<i64>>,
    refused: AtomicU64,
    committed: [AtomicU64; LOCKS],
    wrong: Mutex<Vec<String>>,
}

impl Ledger {
    /// The highest token known to be committed now, before an attempt is sent.
    pub(crate) fn floor(&self, attempt: &Attempt) -> u64 {
        self.committed[attempt.lock].load(Ordering::SeqCst)
    }

    /// The attempt was accepted; `floor` was known before it was sent.
    pub(crate) fn accepted(&self, attempt: &Attempt, floor: u64) {
        if attempt.token < floor {
            self.wrong.lock().unwrap().push(format!("{attempt:?} accepted after {floor} was committed"));
        }
        self.committed[attempt.lock].fetch_max(attempt.token, Ordering::SeqCst);
        self.accepted.lock().unwrap().insert(attempt.id);
    }

    /// The attempt was refused as stale.
    pub(crate) fn refused(&self, attempt: &Attempt, highest: u64) {
        if highest <= attempt.token {
            self.wrong.lock().unwrap().push(format!("{attempt:?} refused although the mark is {highest}"));
        }
        self.refused.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes over what another process was told.
    pub(crate) fn accepted_elsewhere(&self, id: i64) {
        self.accepted.lock().unwrap().insert(id);
    }

    pub(crate) fn accepted_ids(&self) -> BTreeSet<i64> {
        self.accepted.lock().unwrap().clone()
    }
}

/// Everything wrong with what happened: the log in the database's order as (attempt, lock, token), what the writers were
/// told, and the final marks.
pub(crate) fn faults(
    log: &[(i64, String, u64)],
    ledger: &Ledger,
    marks: &BTreeMap<String, u64>,
) -> Vec<String> {
    let mut faults = ledger.wrong.lock().unwrap().clone();
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    for (id, lock, token) in log {
        let seen = highest.entry(lock).or_default();
        if token < seen {
            faults.push(format!("attempt {id}: token {token} of {lock} logged after {seen}"));
        }
        *seen = (*seen).max(*token);
    }
    let logged: BTreeSet<i64> = log.iter().map(|(id, ..)| *id).collect();
    let accepted = ledger.accepted_ids();
    if logged.len() != log.len() {
        faults.push("an attempt was logged twice".to_owned());
    }
    for id in accepted.difference(&logged) {
        faults.push(format!("attempt {id}: accepted, but lost"));
    }
    for id in logged.difference(&accepted) {
        faults.push(format!("attempt {id}: stored, but refused"));
    }
    for (lock, seen) in highest {
        if marks.get(lock) != Some(&seen) {
            faults.push(format!("the mark of {lock} is {:?}, accepted was {seen}", marks.get(lock)));
        }
    }
    faults
}

/// Fails the test on any fault, and if the load was too one-sided to prove anything.
pub(crate) fn judge(log: &[(i64, String, u64)], ledger: &Ledger, marks: &BTreeMap<String, u64>) {
    let refused = ledger.refused.load(Ordering::SeqCst);
    println!("{} accepted, {refused} refused as stale", log.len());
    let faults = faults(log, ledger, marks);
    assert!(faults.is_empty(), "BROKEN PROMISE: {} faults, the first: {:?}", faults.len(), faults.first());
    assert!(log.len() >= 200 && refused >= 200, "{} accepted and {refused} refused prove little", log.len());
}
