//! Registers the observable gauges. A series is gone as soon as the figures no longer contain it, so a member that
//! stops leading stops reporting what only leaders may report.

use std::sync::Arc;

use opentelemetry::{
    KeyValue,
    metrics::{AsyncInstrument, Meter},
};

use super::{
    figures::{FiguresCell, GroupFigures, LeaderFigures, PrefixFigures, ReplicaRole},
    labels::{self, PrefixLabels},
};
use crate::log::stats::LogSpace;

type Cell = Arc<FiguresCell>;

/// Creates every gauge that is read from the figures.
pub(super) fn register(meter: &Meter, cell: &Cell, prefixes: &Arc<PrefixLabels>) {
    locks(meter, cell, prefixes);
    leaders(meter, cell);
    replicas(meter, cell);
    replication(meter, cell);
    snapshots(meter, cell);
    disk(meter, cell);
}

fn locks(meter: &Meter, cell: &Cell, prefixes: &Arc<PrefixLabels>) {
    per_prefix(meter, cell, prefixes, "holdfast.lock.held", "{lock}", "Locks held", |p| Some(p.held as f64));
    per_prefix(meter, cell, prefixes, "holdfast.lock.waiting", "{waiter}", "Waiters in line", |p| {
        Some(p.waiting as f64)
    });
    per_prefix(meter, cell, prefixes, "holdfast.lock.wait.oldest", "s", "Age of the oldest wait", |p| {
        p.oldest_wait.map(|age| age.as_secs_f64())
    });
    per_prefix(meter, cell, prefixes, "holdfast.lock.hold.oldest", "s", "Age of the oldest hold", |p| {
        p.oldest_hold.map(|age| age.as_secs_f64())
    });
}

fn leaders(meter: &Meter, cell: &Cell) {
    per_leader(meter, cell, "holdfast.lock.contended", "{lock}", "Locks with at least one waiter", |l| {
        l.contended as f64
    });
    per_leader(meter, cell, "holdfast.lock.queue.longest", "{waiter}", "Waiters of the longest queue", |l| {
        l.longest_queue as f64
    });
    per_leader(meter, cell, "holdfast.session.active", "{session}", "Sessions at their home group", |l| {
        l.sessions as f64
    });
    per_leader(
        meter,
        cell,
        "holdfast.raft.quorum_ack.age",
        "s",
        "Time since a quorum last acknowledged this leader",
        |l| l.quorum_ack_age.as_secs_f64(),
    );
}

fn replicas(meter: &Meter, cell: &Cell) {
    per_group(
        meter,
        cell,
        "holdfast.raft.has_leader",
        "",
        "1 where the member knows a leader of the group",
        |g| f64::from(u8::from(g.has_leader)),
    );
    per_group(meter, cell, "holdfast.raft.is_leader", "", "1 where the member leads the group", |g| {
        f64::from(u8::from(g.role == ReplicaRole::Leader))
    });
    per_group(meter, cell, "holdfast.raft.term", "{term}", "Term of the group", |g| g.term as f64);
    per_group(
        meter,
        cell,
        "holdfast.raft.apply.lag",
        "{entry}",
        "Committed entries that are not applied yet",
        |g| g.apply_lag as f64,
    );
    per_group(
        meter,
        cell,
        "holdfast.raft.proposal.pending",
        "{proposal}",
        "Proposals that wait for their commit",
        |g| g.proposals_pending as f64,
    );
    let figures = Arc::clone(cell);
    meter
        .f64_observable_gauge("holdfast.group.replica")
        .with_description("1 for what the member is in the group: leader, follower, learner")
        .with_callback(move |observer| {
            for group in &figures.latest().groups {
                let role = match group.role {
                    ReplicaRole::Leader => "leader",
                    ReplicaRole::Follower => "follower",
                    ReplicaRole::Learner => "learner",
                };
                observer.observe(1.0, &[labels::group(group.group), KeyValue::new("role", role)]);
            }
        })
        .build();
}

fn replication(meter: &Meter, cell: &Cell) {
    let figures = Arc::clone(cell);
    meter
        .f64_observable_gauge("holdfast.raft.replication.lag")
        .with_unit("{entry}")
        .with_description("Entries that another member of the group has not stored yet, as the leader knows")
        .with_callback(move |observer| {
            for group in &figures.latest().groups {
                for (member, lag) in group.leader.iter().flat_map(|leader| &leader.replication_lag) {
                    let peer = KeyValue::new("peer", i64::try_from(*member).unwrap_or(i64::MAX));
                    observer.observe(*lag as f64, &[labels::group(group.group), peer]);
                }
            }
        })
        .build();
}

fn snapshots(meter: &Meter, cell: &Cell) {
    maybe_per_group(
        meter,
        cell,
        "holdfast.snapshot.size",
        "By",
        "Size of the newest snapshot in the store",
        |g| g.snapshot.map(|s| s.size_bytes as f64),
    );
    maybe_per_group(
        meter,
        cell,
        "holdfast.snapshot.last_success.timestamp",
        "s",
        "When the newest snapshot in the store was taken, in seconds since 1970",
        |g| g.snapshot.map(|s| s.taken_at_ms as f64 / 1_000.0),
    );
}

fn disk(meter: &Meter, cell: &Cell) {
    let what: [(What, What, Space); 3] = [
        ("holdfast.log.file.size", "Size of the file with the log of all groups", |log| log.file_bytes),
        (
            "holdfast.log.file.free",
            "How much of the log's file holds nothing and waits for the next entries",
            |log| log.free_bytes,
        ),
        ("holdfast.log.wal.size", "Size of the write-ahead log of the log's file", |log| log.wal_bytes),
    ];
    for (name, what, value) in what {
        let figures = Arc::clone(cell);
        meter
            .u64_observable_gauge(name)
            .with_unit("By")
            .with_description(what)
            .with_callback(move |observer| {
                if let Some(log) = &figures.latest().log {
                    observer.observe(value(log), &[]);
                }
            })
            .build();
    }
}

type What = &'static str;
/// One figure of the log's space, bytes.
type Space = fn(&LogSpace) -> u64;

fn per_group(
    meter: &Meter,
    cell: &Cell,
    name: What,
    unit: What,
    what: What,
    value: fn(&GroupFigures) -> f64,
) {
    gauge(meter, cell, name, unit, what, move |g, o| o.observe(value(g), &[labels::group(g.group)]));
}

fn maybe_per_group(
    meter: &Meter,
    cell: &Cell,
    name: What,
    unit: What,
    what: What,
    value: fn(&GroupFigures) -> Option<f64>,
) {
    gauge(meter, cell, name, unit, what, move |g, o| {
        if let Some(value) = value(g) {
            o.observe(value, &[labels::group(g.group)]);
        }
    });
}

fn per_leader(
    meter: &Meter,
    cell: &Cell,
    name: What,
    unit: What,
    what: What,
    value: fn(&LeaderFigures) -> f64,
) {
    gauge(meter, cell, name, unit, what, move |g, o| {
        if let Some(leader) = &g.leader {
            o.observe(value(leader), &[labels::group(g.group)]);
        }
    });
}

fn per_prefix(
    meter: &Meter,
    cell: &Cell,
    prefixes: &Arc<PrefixLabels>,
    name: What,
    unit: What,
    what: What,
    value: fn(&PrefixFigures) -> Option<f64>,
) {
    let prefixes = Arc::clone(prefixes);
    gauge(meter, cell, name, unit, what, move |g, o| {
        for line in g.leader.iter().flat_map(|leader| &leader.prefixes) {
            if let Some(value) = value(line) {
                o.observe(value, &[labels::group(g.group), prefixes.of(&line.prefix)]);
            }
        }
    });
}

fn gauge<F>(meter: &Meter, cell: &Cell, name: What, unit: What, what: What, observe: F)
where
    F: Fn(&GroupFigures, &dyn AsyncInstrument<f64>) + Send + Sync + 'static,
{
    let figures = Arc::clone(cell);
    meter
        .f64_observable_gauge(name)
        .with_unit(unit)
        .with_description(what)
        .with_callback(move |observer| {
            for group in &figures.latest().groups {
                observe(group, observer);
            }
        })
        .build();
}
