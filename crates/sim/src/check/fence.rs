//! The fenced resource, and that it refuses nobody who rightly counts on the lock.
//!
//! The resource takes a write whose token is not lower than the highest it has taken for that lock (rule R22). That it
//! keeps to this is I3 of the history; here the other side is judged: tokens must not fall for those who hold.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use super::Findings;

/// A resource with one object per lock. Clones are the same resource.
#[derive(Clone, Debug, Default)]
pub struct Resource(Arc<Mutex<BTreeMap<String, u64>>>);

impl Resource {
    /// A write arrives. Answers whether it is taken.
    pub fn write(&self, lock: &str, token: u64) -> bool {
        let mut marks = self.0.lock();
        let mark = marks.entry(lock.to_owned()).or_default();
        if token < *mark {
            return false;
        }
        *mark = token;
        true
    }
}

/// Judges the answer to a write that was taken or refused at `now` by a client that counts on the lock until
/// `deadline_ms`.
pub fn judge(now: u64, taken: bool, (lock, token): (&str, u64), deadline_ms: u64, findings: &Findings) {
    if !taken && now < deadline_ms {
        let sentence = format!("{lock:?}: a write with token {token} was refused, its client counts on it");
        findings.add("fence", now, sentence);
    }
}
