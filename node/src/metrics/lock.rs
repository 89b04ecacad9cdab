//! Waits, holds and hand-overs. Recorded by a group's leader only, or everything would count once per member.

use std::{sync::Arc, time::Duration};

use holdfast_locktable::{
    command::SessionEndReason,
    event::{Removal, WaitEnd},
};
use holdfast_partitioner::GroupId;
use opentelemetry::{
    KeyValue,
    metrics::{Histogram, Meter},
};

use super::{
    buckets,
    labels::{self, PrefixLabels},
};

/// How an acquire ended, as `outcome` of `holdfast.lock.wait.duration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It holds.
    Acquired,
    /// Its wait limit passed.
    Timeout,
    /// Its client cancelled it or went away.
    Cancelled,
    /// Its session ended.
    SessionLost,
    /// A try found the lock held, or the key was deleted by somebody else.
    Refused,
}

impl WaitOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::SessionLost => "session_lost",
            Self::Refused => "refused",
        }
    }
}

impl From<WaitEnd> for WaitOutcome {
    fn from(end: WaitEnd) -> Self {
        match end {
            WaitEnd::Granted { .. } => Self::Acquired,
            WaitEnd::Removed(Removal::TimedOut) => Self::Timeout,
            WaitEnd::Removed(Removal::Cancelled | Removal::Abandoned) => Self::Cancelled,
            WaitEnd::Removed(Removal::SessionEnded(_)) => Self::SessionLost,
            WaitEnd::Removed(Removal::Released | Removal::ForceReleased | Removal::Deleted) => Self::Refused,
        }
    }
}

/// How a hold ended, as `end` of `holdfast.lock.hold.duration`.
fn hold_end(reason: Removal) -> &'static str {
    match reason {
        Removal::Released | Removal::TimedOut | Removal::Cancelled | Removal::Abandoned => "released",
        Removal::SessionEnded(SessionEndReason::Expired) => "expired",
        Removal::SessionEnded(SessionEndReason::Closed | SessionEndReason::Forced) | Removal::Deleted => {
            "revoked"
        }
        Removal::ForceReleased => "forced",
    }
}

/// Instruments of locks. `prefix` is always the prefix of the partition map's rule for the name.
#[derive(Clone, Debug)]
pub struct LockMetrics {
    wait: Histogram<f64>,
    hold: Histogram<f64>,
    handoff: Histogram<f64>,
    queue: Histogram<u64>,
    prefixes: Arc<PrefixLabels>,
}

impl LockMetrics {
    pub(super) fn new(meter: &Meter, prefixes: Arc<PrefixLabels>) -> Self {
        Self {
            wait: meter
                .f64_histogram("holdfast.lock.wait.duration")
                .with_unit("s")
                .with_description("Time from an acquire's arrival at the leader to its end, by outcome")
                .with_boundaries(buckets::WAIT.to_vec())
                .build(),
            hold: meter
                .f64_histogram("holdfast.lock.hold.duration")
                .with_unit("s")
                .with_description("Time from a grant to the end of the hold, by how it ended")
                .with_boundaries(buckets::HOLD.to_vec())
                .build(),
            handoff: meter
                .f64_histogram("holdfast.lock.handoff.duration")
                .with_unit("s")
                .with_description("Time from the proposal of what ended a hold, by the leader's wall clock, to the grant of the next waiter")
                .with_boundaries(buckets::COMMIT.to_vec())
                .build(),
            queue: meter
                .u64_histogram("holdfast.lock.queue.length")
                .with_unit("{waiter}")
                .with_description("How many stood in the queue, holder included, when a waiter came")
                .with_boundaries(vec![
                    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0,
                ])
                .build(),
            prefixes,
        }
    }

    /// An acquire ended, waited for or not.
    pub fn wait_ended(&self, group: GroupId, prefix: &str, outcome: WaitOutcome, took: Duration) {
        let attributes =
            [labels::group(group), self.prefixes.of(prefix), KeyValue::new("outcome", outcome.as_str())];
        self.wait.record(took.as_secs_f64(), &attributes);
    }

    /// A hold ended.
    pub fn hold_ended(&self, group: GroupId, prefix: &str, reason: Removal, took: Duration) {
        let attributes =
            [labels::group(group), self.prefixes.of(prefix), KeyValue::new("end", hold_end(reason))];
        self.hold.record(took.as_secs_f64(), &attributes);
    }

    /// An acquire came into a queue behind so many.
    pub fn queued(&self, group: GroupId, ahead: u32) {
        self.queue.record(u64::from(ahead), &[labels::group(group)]);
    }

    /// The end of a hold granted the lock to the next waiter.
    pub fn handed_over(&self, group: GroupId, took: Duration) {
        self.handoff.record(took.as_secs_f64(), &[labels::group(group)]);
    }
}
