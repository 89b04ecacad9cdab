//! What a finding can do without: leaves faults and clients out as long as the same property is broken.
//!
//! A run without a fault is another run from there on. So the rest is not what is left of the first run, but a smaller one
//! that breaks the same promise.

use std::io;

use crate::{
    nemesis::Spared,
    plan::{Plan, Report},
    run::run,
};

/// The property that a run has broken first.
fn broken(report: &Report) -> Option<&str> {
    report.findings.first().map(|finding| finding.property.as_str())
}

/// The smallest run found that breaks the property which this one breaks, and how many runs that took; at most so many.
///
/// # Errors
/// As [`run`].
pub fn shrink(first: Report, most: u32, mut tell: impl FnMut(&Report)) -> io::Result<(Report, u32)> {
    let Some(property) = broken(&first).map(str::to_owned) else { return Ok((first, 0)) };
    let (mut best, mut runs) = (first, 0);
    loop {
        let before = best.plan;
        for part in [Part::Clients, Part::Faults] {
            let all = part.all(&best);
            // Half of them first, then a quarter, at last one by one.
            let mut size = all.len().div_ceil(2);
            while size > 0 && runs < most {
                for chunk in all.chunks(size) {
                    let plan = part.without(best.plan, chunk);
                    if plan == best.plan || runs >= most {
                        continue;
                    }
                    runs += 1;
                    let report = run(plan)?;
                    if broken(&report) == Some(&property) {
                        tell(&report);
                        best = report;
                    }
                }
                size = if size == 1 { 0 } else { size.div_ceil(2) };
            }
        }
        if best.plan == before || runs >= most {
            return Ok((best, runs));
        }
    }
}

/// What can be left out.
#[derive(Clone, Copy)]
enum Part {
    Clients,
    Faults,
}

impl Part {
    /// What is left of it.
    fn all(self, report: &Report) -> Vec<u64> {
        let (most, spared) = match self {
            Self::Clients => (u64::from(report.plan.numbers()), report.plan.spared_clients),
            Self::Faults => (report.faults, report.plan.spared_faults),
        };
        (0..most).filter(|number| !spared.contains(*number)).collect()
    }

    fn without(self, mut plan: Plan, numbers: &[u64]) -> Plan {
        let spared = match self {
            Self::Clients => &mut plan.spared_clients,
            Self::Faults => &mut plan.spared_faults,
        };
        *spared = numbers.iter().fold(*spared, |spared: Spared, number| spared.with(*number));
        plan
    }
}
