//! When each other member was last heard of.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::raft::types::MemberId;

/// When each other member was last heard of, by anything it sent. Clones are the same record.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    last: Arc<Mutex<BTreeMap<MemberId, Instant>>>,
}

impl Heard {
    /// A record in which nobody was heard of.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the member was heard of within the last `time`.
    #[must_use]
    pub fn within(&self, member: MemberId, time: Duration) -> bool {
        self.since(member).is_some_and(|since| since <= time)
    }

    /// How long ago the member was last heard of; `None` if it never was.
    #[must_use]
    pub fn since(&self, member: MemberId) -> Option<Duration> {
        self.last.lock().get(&member).map(Instant::elapsed)
    }

    /// Notes that something came from a member.
    pub fn note(&self, member: MemberId) {
        self.last.lock().insert(member, Instant::now());
    }
}
