//! Medians, ratios, and whether they are as good as they have to be. Pure.

use std::{collections::BTreeMap, time::Duration};

use comfy_table::{Table, presets};
use serde::Serialize;

use super::{machine::Machine, plan::Measure, service::Service};
use crate::run::RunResult;

/// The commits that one cycle of a lone client takes: the acquire and the release.
const COMMITS_PER_CYCLE: f64 = 2.0;

/// With others taking more CPUs than this, figures are theirs.
const BUSY: f64 = 0.1;

/// What one measurement came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) cycles_per_s: f64,
    /// Acquire; where all want one lock, hand-over.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) errors: u64,
    pub(crate) violations: u64,
    /// CPUs that were busy with something else meanwhile.
    pub(crate) others_cpus: f64,
}

impl Sample {
    pub(crate) fn new(result: &RunResult, others_cpus: f64) -> Self {
        let times = result.handover_us.unwrap_or(result.acquire_us);
        Self {
            cycles_per_s: result.cycles_per_s,
            p50_us: times.p50 as f64,
            p99_us: times.p99 as f64,
            errors: result.errors,
            violations: result.violations,
            others_cpus,
        }
    }
}

/// All samples of one thing, and their medians.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) service: String,
    pub(crate) measure: String,
    pub(crate) cycles_per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) errors: u64,
    pub(crate) samples: Vec<Sample>,
}

/// A figure with what it has to be.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ratio {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// At least this, or less than this.
    pub(crate) target: f64,
    pub(crate) at_least: bool,
    pub(crate) met: bool,
}

/// The result of a bench.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bench {
    pub(crate) machine: Machine,
    pub(crate) rounds: u32,
    pub(crate) seconds_each: f64,
    pub(crate) rows: Vec<Row>,
    /// Commits per second of one client that proposes one at a time.
    pub(crate) single_commits_per_s: Option<f64>,
    pub(crate) ratios: Vec<Ratio>,
    pub(crate) violations: u64,
    /// CPUs that were busy with something else, on average.
    pub(crate) others_cpus: f64,
}

impl Bench {
    pub(crate) fn new(
        machine: Machine,
        rounds: u32,
        seconds: Duration,
        samples: &BTreeMap<(Service, Measure), Vec<Sample>>,
    ) -> Self {
        let rows =
            samples.iter().map(|((service, measure), samples)| row(*service, *measure, samples)).collect();
        let medians = Medians(samples);
        Self {
            machine,
            rounds,
            seconds_each: seconds.as_secs_f64(),
            rows,
            single_commits_per_s: medians
                .rate(Service::Holdfast(4), Measure::Single)
                .map(|cycles| cycles * COMMITS_PER_CYCLE),
            ratios: medians.ratios(),
            violations: samples.values().flatten().map(|sample| sample.violations).sum(),
            others_cpus: mean(samples.values().flatten().map(|sample| sample.others_cpus)),
        }
    }

    /// How many targets are missed.
    pub(crate) fn missed(&self) -> usize {
        self.ratios.iter().filter(|ratio| !ratio.met).count()
    }

    /// For people.
    pub(crate) fn table(&self) -> String {
        let mut rows = Table::new();
        rows.load_preset(presets::NOTHING);
        rows.set_header(["service", "load", "cycles/s", "p50 µs", "p99 µs", "errors"]);
        for row in &self.rows {
            rows.add_row([
                row.service.clone(),
                row.measure.clone(),
                format!("{:.0}", row.cycles_per_s),
                format!("{:.0}", row.p50_us),
                format!("{:.0}", row.p99_us),
                row.errors.to_string(),
            ]);
        }
        let mut ratios = Table::new();
        ratios.load_preset(presets::NOTHING);
        ratios.set_header(["ratio", "value", "target", ""]);
        for ratio in &self.ratios {
            let sign = if ratio.at_least { "≥" } else { "<" };
            ratios.add_row([
                ratio.name.clone(),
                format!("{:.2}", ratio.value),
                format!("{sign} {}", ratio.target),
                if ratio.met { "met" } else { "MISSED" }.to_owned(),
            ]);
        }
        let machine = &self.machine;
        let commits = self.single_commits_per_s.map_or_else(String::new, |commits| {
            format!("\nCommits/s of one client that proposes one at a time: {commits:.0}\n")
        });
        let busy = if self.others_cpus > BUSY {
            format!(
                "\nTHE MACHINE WAS BUSY: something else took {:.2} CPUs on average. Measure again.",
                self.others_cpus
            )
        } else {
            String::new()
        };
        format!(
            "{rows}\n{commits}\n{ratios}\n\n{} × {}, Linux {}, fsync p50 {} µs p99 {} µs\n{} | {} | {}\n\
             Medians of {} rounds of {} s. p50 and p99 are of the acquire, for hot of the hand-over (release sent to next \
             grant).\nRedis has no queue: while a lock is held, clients retry after 1 to 10 ms. Services and load share this \
             machine: only ratios say something.{busy}",
            machine.cpus,
            machine.cpu,
            machine.kernel,
            machine.fsync_us.p50,
            machine.fsync_us.p99,
            machine.holdfast,
            machine.etcd,
            machine.redis,
            self.rounds,
            self.seconds_each,
        )
    }
}

fn row(service: Service, measure: Measure, samples: &[Sample]) -> Row {
    Row {
        service: service.name(),
        measure: measure.name(),
        cycles_per_s: median(samples, |sample| sample.cycles_per_s),
        p50_us: median(samples, |sample| sample.p50_us),
        p99_us: median(samples, |sample| sample.p99_us),
        errors: samples.iter().map(|sample| sample.errors).sum(),
        samples: samples.to_vec(),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    if values.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.saturating_sub(1)), at(middle)) }
}

struct Medians<'a>(&'a BTreeMap<(Service, Measure), Vec<Sample>>);

impl Medians<'_> {
    fn of(&self, service: Service, measure: Measure, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        self.0.get(&(service, measure)).map(|samples| median(samples, of))
    }

    fn rate(&self, service: Service, measure: Measure) -> Option<f64> {
        self.of(service, measure, |sample| sample.cycles_per_s)
    }

    fn ratios(&self) -> Vec<Ratio> {
        let ours = Service::Holdfast(4);
        let rate = |service, measure| self.rate(service, measure);
        let commits = rate(ours, Measure::Single).map(|cycles| cycles * COMMITS_PER_CYCLE);
        let mut ratios = Vec::new();
        let mut at_least = |name: &str, ours: Option<f64>, theirs: Option<f64>, target: f64| {
            if let Some((ours, theirs)) = ours.zip(theirs) {
                let value = ours / theirs;
                ratios.push(Ratio {
                    name: name.to_owned(),
                    value,
                    target,
                    at_least: true,
                    met: value >= target,
                });
            }
        };
        use Measure::{Crowd, Hot, Single, Spread};
        at_least("cycles/s spread(256), of etcd's", rate(ours, Spread), rate(Service::Etcd, Spread), 8.0);
        at_least("cycles/s single(1), of etcd's", rate(ours, Single), rate(Service::Etcd, Single), 2.0);
        at_least("hand-overs/s hot(32), of etcd's", rate(ours, Hot), rate(Service::Etcd, Hot), 6.0);
        at_least("hand-overs/s hot(32), of a single client's commits/s", rate(ours, Hot), commits, 0.8);
        at_least(
            "cycles/s spread(256), of Redis's with fsync always",
            rate(ours, Spread),
            rate(Service::RedisAlways, Spread),
            0.5,
        );
        at_least(
            "spread(256) with 4 groups, of 1 group",
            rate(ours, Spread),
            rate(Service::Holdfast(1), Spread),
            0.7,
        );
        at_least(
            "spread(256) with 16 groups, of 1 group",
            rate(Service::Holdfast(16), Spread),
            rate(Service::Holdfast(1), Spread),
            0.7,
        );
        at_least("hand-overs/s hot(1000), of hot(32)", rate(ours, Crowd), rate(ours, Hot), 0.8);
        for measure in [Spread, Single, Hot] {
            for (name, of) in [("p50", p50 as fn(&Sample) -> f64), ("p99", p99)] {
                let pair = self.of(ours, measure, of).zip(self.of(Service::Etcd, measure, of));
                if let Some((ours, theirs)) = pair {
                    let value = ours / theirs;
                    let name = format!("{name} of {}, of etcd's", measure.name());
                    ratios.push(Ratio { name, value, target: 1.0, at_least: false, met: value < 1.0 });
                }
            }
        }
        ratios
    }
}

fn p50(sample: &Sample) -> f64 {
    sample.p50_us
}

fn p99(sample: &Sample) -> f64 {
    sample.p99_us
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rates: &[f64]) -> Vec<Sample> {
        let sample = |rate: &f64| Sample {
            cycles_per_s: *rate,
            p50_us: 1e6 / rate,
            p99_us: 2e6 / rate,
            errors: 0,
            violations: 0,
            others_cpus: 0.0,
        };
        rates.iter().map(sample).collect()
    }

    #[test]
    fn medians_do_not_care_for_outliers() {
        let of = |rates: &[f64]| median(&samples(rates), |sample| sample.cycles_per_s);
        assert_eq!(of(&[3.0, 1.0, 1000.0]), 3.0);
        assert_eq!(of(&[4.0, 2.0]), 3.0);
        assert_eq!(of(&[]), 0.0);
    }

    #[test]
    fn ratios_compare_medians_and_know_their_targets() {
        let ours = Service::Holdfast(4);
        let measured = BTreeMap::from([
            ((ours, Measure::Spread), samples(&[790.0, 800.0, 100.0])),
            ((Service::Etcd, Measure::Spread), samples(&[100.0])),
            ((ours, Measure::Single), samples(&[100.0])),
            ((ours, Measure::Hot), samples(&[159.0])),
        ]);
        let ratios = Medians(&measured).ratios();
        let told: Vec<(&str, bool)> = ratios.iter().map(|ratio| (ratio.name.as_str(), ratio.met)).collect();
        assert_eq!(
            told,
            [
                ("cycles/s spread(256), of etcd's", false),
                ("hand-overs/s hot(32), of a single client's commits/s", false),
                ("p50 of spread(256), of etcd's", true),
                ("p99 of spread(256), of etcd's", true),
            ]
        );
        assert_eq!(ratios[0].value, 7.9);
        assert_eq!(ratios[1].value, 0.795);
    }
}
