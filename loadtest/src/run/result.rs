//! The result of a run, for programs and for people.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use comfy_table::{Table, presets};
use holdfast_history::Check;
use serde::Serialize;

use super::{Course, Scenario, Setting};
use crate::{
    driver::Target,
    figures::{Figures, Quantiles},
    recorder::Recorder,
};

/// So many violations are told in full.
const TOLD: usize = 20;

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunResult {
    /// The service.
    pub(crate) target: Target,
    /// The shape of the load.
    pub(crate) scenario: Scenario,
    /// How many clients there were.
    pub(crate) clients: u32,
    /// Over how many TCP connections.
    pub(crate) connections: u32,
    /// How long was measured; less than asked for where the run was interrupted.
    pub(crate) seconds: f64,
    /// How long each lock was held.
    pub(crate) hold_ms: u64,
    /// Time to live.
    pub(crate) ttl_s: u64,
    /// Acquires with their releases.
    pub(crate) cycles: u64,
    /// The same per second.
    pub(crate) cycles_per_s: f64,
    /// How many acquires were timed.
    pub(crate) grants: u64,
    /// From call to grant; waiting in line included.
    pub(crate) acquire_us: Quantiles,
    /// From call to answer.
    pub(crate) release_us: Quantiles,
    /// From sending the release to the next client's grant; only where all want one lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handover_us: Option<Quantiles>,
    /// What went wrong, and how often, warm-up included.
    pub(crate) errors: u64,
    /// The first few kinds of it.
    pub(crate) error_texts: BTreeMap<String, u64>,
    /// Whether the checks ran.
    pub(crate) judged: bool,
    /// Broken promises.
    pub(crate) violations: u64,
    /// The same by check.
    pub(crate) violations_by_check: BTreeMap<Check, u64>,
    /// The first of them, as sentences.
    pub(crate) violation_texts: Vec<String>,
    /// CPU time that this process used over the whole run, as a share of one CPU.
    pub(crate) generator_cpu: f64,
}

impl RunResult {
    pub(crate) fn new(
        setting: &Setting<'_>,
        course: &Course,
        recorder: Option<&Recorder>,
        stuck: u64,
        generator_cpu: f64,
    ) -> Self {
        let mut figures: Figures = course.tally.total();
        for _ in 0..stuck {
            figures.error("the client did not end within the time to drain".into());
        }
        let (from, until) = (course.from.load(Ordering::Relaxed), course.until.load(Ordering::Relaxed));
        let seconds = until.saturating_sub(from) as f64 / 1e9;
        let texts = recorder.map_or_else(Vec::new, |recorder| {
            recorder.violations().iter().take(TOLD).map(ToString::to_string).collect()
        });
        Self {
            target: setting.args.target,
            scenario: setting.scenario,
            clients: setting.clients,
            connections: setting.connections,
            seconds,
            hold_ms: setting.args.hold,
            ttl_s: setting.args.ttl,
            cycles: figures.cycles,
            cycles_per_s: if seconds > 0.0 { figures.cycles as f64 / seconds } else { 0.0 },
            grants: figures.acquire.count(),
            acquire_us: figures.acquire.quantiles(),
            release_us: figures.release.quantiles(),
            handover_us: course.handovers.then(|| figures.handover.quantiles()),
            errors: figures.errors,
            error_texts: figures.error_texts,
            judged: recorder.is_some(),
            violations: recorder.map_or(0, Recorder::violation_count),
            violations_by_check: recorder.map_or_else(BTreeMap::new, Recorder::by_check),
            violation_texts: texts,
            generator_cpu,
        }
    }

    /// For people.
    pub(crate) fn table(&self) -> String {
        let mut times = Table::new();
        times.load_preset(presets::NOTHING);
        times.set_header(["µs", "p50", "p99", "p99.9", "max"]);
        let rows = [
            ("acquire", Some(self.acquire_us)),
            ("release", Some(self.release_us)),
            ("hand-over", self.handover_us),
        ];
        for (name, told) in rows {
            if let Some(Quantiles { p50, p99, p999, max }) = told {
                times.add_row([
                    name.to_owned(),
                    p50.to_string(),
                    p99.to_string(),
                    p999.to_string(),
                    max.to_string(),
                ]);
            }
        }
        let mut text = format!(
            "{:?} {}: {} clients over {} connections, {:.1} s measured ({})\n{:.0} cycles/s\n{times}\n",
            self.target,
            self.scenario.name(),
            self.clients,
            self.connections,
            self.seconds,
            self.target.remark(),
            self.cycles_per_s,
        );
        text += &format!("errors {}", self.errors);
        for (error, count) in &self.error_texts {
            text += &format!("\n  {count} × {error}");
        }
        text += &match (self.judged, self.violations) {
            (false, _) => "\nnot judged".to_owned(),
            (true, 0) => "\nno violations".to_owned(),
            (true, violations) => format!("\n{violations} VIOLATIONS {:?}", self.violations_by_check),
        };
        text + "\nWith servers and load on one machine, only figures of the same machine compare."
    }
}
