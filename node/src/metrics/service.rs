//! Requests at the listeners, redirects between members, lines of the audit log.

use std::time::Duration;

use opentelemetry::{
    KeyValue, StringValue,
    metrics::{Counter, Histogram, Meter},
};

use super::buckets;

/// Why a request went to another member or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// This member does not lead the group.
    NotLeader,
    /// The range was moved to another group.
    Moved,
    /// The sender's partition map was old.
    StaleMap,
}

impl Redirect {
    const ALL: [Self; 3] = [Self::NotLeader, Self::Moved, Self::StaleMap];

    const fn as_str(self) -> &'static str {
        match self {
            Self::NotLeader => "not_leader",
            Self::Moved => "moved",
            Self::StaleMap => "stale_map",
        }
    }
}

/// Why work was refused before it was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A queue had no room.
    QueueFull,
    /// What was taken before waits for too long.
    Overload,
}

impl Refusal {
    const ALL: [Self; 2] = [Self::QueueFull, Self::Overload];

    const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Overload => "overload",
        }
    }
}

/// How an HTTP request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEnd {
    /// With an answer of this status.
    Status(u16),
    /// Its client closed the connection before there was an answer.
    Disconnected,
}

/// Instruments of the listeners.
#[derive(Clone, Debug)]
pub struct ServiceMetrics {
    http: Histogram<f64>,
    redirects: Counter<u64>,
    refusals: Counter<u64>,
    audit: Counter<u64>,
}

impl ServiceMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        let metrics = Self {
            http: meter
                .f64_histogram("http.server.request.duration")
                .with_unit("s")
                .with_description("Time from the head of an HTTP request to the head of its answer")
                .with_boundaries(buckets::WAIT.to_vec())
                .build(),
            redirects: meter
                .u64_counter("holdfast.routing.redirects")
                .with_unit("{redirect}")
                .with_description("Requests sent on, by reason: not_leader, moved, stale_map")
                .build(),
            refusals: meter
                .u64_counter("holdfast.admission.rejections")
                .with_unit("{request}")
                .with_description(
                    "Requests refused before anything was done, by reason: queue_full, overload",
                )
                .build(),
            audit: meter
                .u64_counter("holdfast.audit.events")
                .with_unit("{event}")
                .with_description("Lines written to the audit log, by action and outcome")
                .build(),
        };
        // From zero, so that a query tells "none yet" from "not measured".
        for reason in Redirect::ALL {
            metrics.redirects.add(0, &[KeyValue::new("reason", reason.as_str())]);
        }
        for reason in Refusal::ALL {
            metrics.refusals.add(0, &[KeyValue::new("reason", reason.as_str())]);
        }
        metrics
    }

    /// An HTTP request ended. `route` is the template of the route; absent where no route matched.
    pub fn http_ended(&self, method: &'static str, route: Option<String>, end: HttpEnd, took: Duration) {
        let mut attributes = Vec::with_capacity(4);
        attributes.push(KeyValue::new("http.request.method", method));
        attributes.push(KeyValue::new("url.scheme", "http"));
        if let Some(route) = route {
            attributes.push(KeyValue::new("http.route", StringValue::from(route)));
        }
        match end {
            HttpEnd::Status(status) => {
                attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
            }
            HttpEnd::Disconnected => attributes.push(KeyValue::new("error.type", "client_disconnected")),
        }
        self.http.record(took.as_secs_f64(), &attributes);
    }

    /// A request was sent on.
    pub fn redirected(&self, reason: Redirect) {
        self.redirects.add(1, &[KeyValue::new("reason", reason.as_str())]);
    }

    /// A request was refused because there is too much to do.
    pub fn refused(&self, reason: Refusal) {
        self.refusals.add(1, &[KeyValue::new("reason", reason.as_str())]);
    }

    /// A line went into the audit log. `action` and `outcome` are the fixed words of such lines.
    pub fn audited(&self, action: &'static str, outcome: &'static str) {
        self.audit.add(1, &[KeyValue::new("action", action), KeyValue::new("outcome", outcome)]);
    }
}
