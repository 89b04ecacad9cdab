//! What a member measures: one struct of instruments, built from an OpenTelemetry meter, passed down to whoever records.
//!
//! Knows names, units and bounded attributes. Does not know where a figure comes from: instruments are recorded at the
//! event, gauges are read from a [`FiguresSource`] when somebody scrapes. Lock names, session ids and addresses never
//! become attributes.
//!
//! - [`lock`], [`session`], [`raft`], [`snapshot`], [`service`]: instruments by area, each with typed recording methods.
//! - [`figures`]: the plain snapshot that observable gauges are read from; [`gauges`] registers them.
//! - [`process`]: CPU, memory and descriptors of this process.
//! - [`exporter`]: the SDK and the Prometheus text behind `/metrics`.

mod buckets;
pub mod exporter;
pub mod figures;
mod gauges;
pub mod labels;
pub mod lock;
mod process;
pub mod raft;
pub mod service;
pub mod session;
pub mod snapshot;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use opentelemetry::metrics::Meter;

use self::{
    figures::{FiguresCell, FiguresSource},
    labels::PrefixLabels,
    lock::LockMetrics,
    raft::RaftMetrics,
    service::ServiceMetrics,
    session::SessionMetrics,
    snapshot::SnapshotMetrics,
};

/// Name of the meter that all instruments belong to.
pub const METER: &str = "holdfast";

/// What this build says of itself in `holdfast.build.info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Version of the program.
    pub version: String,
    /// The source revision it was built from; `unknown` where that is not known.
    pub revision: String,
}

/// All instruments of one member. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Instruments {
    /// Waits, holds and hand-overs.
    pub lock: LockMetrics,
    /// Sessions and keepalives.
    pub session: SessionMetrics,
    /// Elections, proposals, the log and apply.
    pub raft: RaftMetrics,
    /// Snapshots.
    pub snapshot: SnapshotMetrics,
    /// Requests, redirects and audit lines.
    pub service: ServiceMetrics,
    figures: Arc<FiguresCell>,
}

impl Instruments {
    /// Creates every instrument from a meter. Observable gauges report nothing until
    /// [`read_figures_from`](Self::read_figures_from) was called.
    pub fn new(meter: &Meter, build: &Build) -> Self {
        let figures = Arc::new(FiguresCell::default());
        let prefixes = Arc::new(PrefixLabels::default());
        gauges::register(meter, &figures, &prefixes);
        process::register(meter, build);
        Self {
            lock: LockMetrics::new(meter, Arc::clone(&prefixes)),
            session: SessionMetrics::new(meter),
            raft: RaftMetrics::new(meter),
            snapshot: SnapshotMetrics::new(meter),
            service: ServiceMetrics::new(meter),
            figures,
        }
    }

    /// Says where the observable gauges come from. The source is called once per scrape, on the scraping thread, so it
    /// returns quickly, never blocks on other members and creates no instruments. A second call replaces the source.
    pub fn read_figures_from(&self, source: FiguresSource) {
        self.figures.set_source(source);
    }

    /// Reads the figures anew; whoever collects calls it first, so that all gauges of one scrape show one moment.
    pub fn refresh_figures(&self) {
        self.figures.refresh();
    }
}
