//! The OpenTelemetry SDK of a member and the Prometheus text behind `/metrics`. Nothing else names the SDK.

use opentelemetry::{
    KeyValue,
    metrics::{Meter, MeterProvider},
};
use opentelemetry_sdk::{
    Resource,
    metrics::{Instrument, InstrumentKind, SdkMeterProvider, Stream},
};
use prometheus::{Registry, TextEncoder};

use super::{Build, Instruments, METER};
use crate::raft::types::MemberId;

/// Most attribute sets of one histogram; what comes beyond goes into the SDK's overflow series.
pub const MAX_HISTOGRAM_SETS: usize = 500;

/// Content type of [`Metrics::render`].
pub const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whose metrics these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's name.
    pub cluster: String,
    /// The member.
    pub member: MemberId,
    /// Its build.
    pub build: Build,
}

/// Why metrics cannot be set up or rendered.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The exporter did not start.
    #[error("cannot start the metrics exporter: {0}")]
    Start(#[from] opentelemetry_sdk::error::OTelSdkError),
    /// The text did not come out.
    #[error("cannot render the metrics: {0}")]
    Render(#[from] prometheus::Error),
}

/// A member's instruments with what exports them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// What to record with.
    pub instruments: Instruments,
    registry: Registry,
    provider: SdkMeterProvider,
}

impl Metrics {
    /// Starts the SDK with a registry of its own, so that several members can live in one process.
    pub fn start(identity: &Identity) -> Result<Self, MetricsError> {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()?;
        let provider = SdkMeterProvider::builder()
            .with_resource(resource(identity))
            .with_reader(exporter)
            .with_view(bounded_histograms)
            .build();
        let meter: Meter = provider.meter(METER);
        let instruments = Instruments::new(&meter, &identity.build);
        Ok(Self { instruments, registry, provider })
    }

    /// All metrics in the text format of Prometheus, at this moment.
    pub fn render(&self) -> Result<String, MetricsError> {
        self.instruments.refresh_figures();
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }

    /// Stops the SDK; what is recorded afterwards is lost.
    pub fn stop(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::debug!(%error, "the metrics exporter was stopped before");
        }
    }
}

fn resource(identity: &Identity) -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", "holdfast"),
            KeyValue::new("service.namespace", identity.cluster.clone()),
            KeyValue::new("service.instance.id", identity.member.to_string()),
            KeyValue::new("service.version", identity.build.version.clone()),
        ])
        .build()
}

fn bounded_histograms(instrument: &Instrument) -> Option<Stream> {
    match instrument.kind() {
        InstrumentKind::Histogram => {
            Stream::builder().with_cardinality_limit(MAX_HISTOGRAM_SETS).build().ok()
        }
        InstrumentKind::Counter
        | InstrumentKind::UpDownCounter
        | InstrumentKind::ObservableCounter
        | InstrumentKind::ObservableUpDownCounter
        | InstrumentKind::Gauge
        | InstrumentKind::ObservableGauge => None,
    }
}
