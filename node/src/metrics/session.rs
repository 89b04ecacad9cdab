//! Sessions and their keepalives. Recorded by the home group's leader, keepalives by whichever leader answers.

use std::time::Duration;

use holdfast_locktable::command::SessionEndReason;
use holdfast_partitioner::GroupId;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};

use super::{buckets, labels};

/// Instruments of sessions.
#[derive(Clone, Debug)]
pub struct SessionMetrics {
    opened: Counter<u64>,
    closed: Counter<u64>,
    keepalive: Histogram<f64>,
    expiry_delay: Histogram<f64>,
}

impl SessionMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            opened: meter
                .u64_counter("holdfast.session.opened")
                .with_unit("{session}")
                .with_description("Sessions opened")
                .build(),
            closed: meter
                .u64_counter("holdfast.session.closed")
                .with_unit("{session}")
                .with_description("Sessions ended, by reason: client, expired, admin")
                .build(),
            keepalive: meter
                .f64_histogram("holdfast.session.keepalive.duration")
                .with_unit("s")
                .with_description("Time from the arrival of a keepalive at a leader to its answer")
                .with_boundaries(buckets::COMMIT.to_vec())
                .build(),
            expiry_delay: meter
                .f64_histogram("holdfast.session.expiry.delay")
                .with_unit("s")
                .with_description("Time from a session's deadline to the commit of its expiry")
                .with_boundaries(buckets::MINUTES.to_vec())
                .build(),
        }
    }

    /// A session was opened at its home group.
    pub fn opened(&self, group: GroupId) {
        self.opened.add(1, &[labels::group(group)]);
    }

    /// A session ended at its home group.
    pub fn ended(&self, group: GroupId, reason: SessionEndReason) {
        let reason = match reason {
            SessionEndReason::Closed => "client",
            SessionEndReason::Expired => "expired",
            SessionEndReason::Forced => "admin",
        };
        self.closed.add(1, &[labels::group(group), KeyValue::new("reason", reason)]);
    }

    /// A leader answered a keepalive; `renewed` is false where the session was lost or the leader could not say.
    pub fn keepalive_answered(&self, group: GroupId, renewed: bool, took: Duration) {
        self.keepalive.record(took.as_secs_f64(), &[labels::group(group), labels::outcome(renewed)]);
    }

    /// An expiry was committed so long after the session's deadline.
    pub fn expired_late(&self, group: GroupId, delay: Duration) {
        self.expiry_delay.record(delay.as_secs_f64(), &[labels::group(group)]);
    }
}
