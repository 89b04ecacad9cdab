//! Snapshots: how long they take and at which stage they fail.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use holdfast_partitioner::GroupId;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};
use parking_lot::RwLock;

use super::{buckets, figures::SnapshotFigures, labels};
use crate::snapshot::store::StoreCause;

/// Outcome of an upload that ended well.
const OK: &str = "ok";

/// What was done with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotKind {
    /// Its data was made from the group's state.
    Build,
    /// It was put into the snapshot store.
    Upload,
    /// A lagging member took it over.
    Install,
    /// A cluster was restored from it.
    Restore,
}

/// Where a snapshot failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotStage {
    /// Making its data.
    Build,
    /// Putting it into the snapshot store.
    Upload,
    /// Reading it back and comparing its checksum.
    Verify,
    /// Restoring from it.
    Restore,
}

impl SnapshotStage {
    const ALL: [Self; 4] = [Self::Build, Self::Upload, Self::Verify, Self::Restore];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Upload => "upload",
            Self::Verify => "verify",
            Self::Restore => "restore",
        }
    }
}

/// Instruments of snapshots.
#[derive(Clone, Debug)]
pub struct SnapshotMetrics {
    duration: Histogram<f64>,
    failures: Counter<u64>,
    uploads: Counter<u64>,
    upload_bytes: Counter<u64>,
    newest: Arc<RwLock<BTreeMap<GroupId, SnapshotFigures>>>,
}

impl SnapshotMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        let metrics = Self {
            duration: meter
                .f64_histogram("holdfast.snapshot.duration")
                .with_unit("s")
                .with_description(
                    "Time of one step with a snapshot, by kind: build, upload, install, restore",
                )
                .with_boundaries(buckets::MINUTES.to_vec())
                .build(),
            failures: meter
                .u64_counter("holdfast.snapshot.failures")
                .with_unit("{failure}")
                .with_description("Snapshots that failed, by stage: build, upload, verify, restore")
                .build(),
            uploads: meter
                .u64_counter("holdfast.snapshot.uploads")
                .with_unit("{upload}")
                .with_description(
                    "Snapshots that were to be put into the snapshot store, by outcome: ok, or what kept them out",
                )
                .build(),
            upload_bytes: meter
                .u64_counter("holdfast.snapshot.upload")
                .with_unit("By")
                .with_description("Bytes of snapshots that were put into the snapshot store, as they stand there")
                .build(),
            newest: Arc::default(),
        };
        // From zero, so that a query tells "none yet" from "not measured".
        for stage in SnapshotStage::ALL {
            metrics.failures.add(0, &[KeyValue::new("stage", stage.as_str())]);
        }
        metrics.uploads.add(0, &[KeyValue::new("outcome", OK)]);
        for cause in StoreCause::ALL {
            metrics.uploads.add(0, &[KeyValue::new("outcome", cause.as_str())]);
        }
        metrics.upload_bytes.add(0, &[]);
        metrics
    }

    /// A snapshot is in the store, as so many bytes.
    pub fn uploaded(&self, stored_bytes: u64) {
        self.uploads.add(1, &[KeyValue::new("outcome", OK)]);
        self.upload_bytes.add(stored_bytes, &[]);
    }

    /// A snapshot did not get into the store, or is not whole there.
    pub fn upload_failed(&self, cause: StoreCause) {
        self.uploads.add(1, &[KeyValue::new("outcome", cause.as_str())]);
    }

    /// A step ended.
    pub fn step_ended(&self, kind: SnapshotKind, ok: bool, took: Duration) {
        let kind = match kind {
            SnapshotKind::Build => "build",
            SnapshotKind::Upload => "upload",
            SnapshotKind::Install => "install",
            SnapshotKind::Restore => "restore",
        };
        self.duration.record(took.as_secs_f64(), &[KeyValue::new("kind", kind), labels::outcome(ok)]);
    }

    /// A snapshot failed.
    pub fn failed(&self, stage: SnapshotStage) {
        self.failures.add(1, &[KeyValue::new("stage", stage.as_str())]);
    }

    /// The newest snapshot of a group in the store that this member took or found.
    pub fn stored(&self, group: GroupId, snapshot: SnapshotFigures) {
        let mut newest = self.newest.write();
        let known = newest.entry(group).or_insert(snapshot);
        if known.taken_at_ms < snapshot.taken_at_ms {
            *known = snapshot;
        }
    }

    /// What [`stored`](Self::stored) was told last.
    pub fn newest(&self, group: GroupId) -> Option<SnapshotFigures> {
        self.newest.read().get(&group).copied()
    }
}
