//! What a finding can do without: leaves faults and clients out as long as the same property is broken.
//!
//! A run without a fault, or without a client, is another run from there on: one packet that comes a millisecond later changes
//! all that follows. So the rest is not what is left of the first run, but a smaller one that breaks the same promise, and
//! each is looked at with a few networks of the same kind, under which the faults stay the same.

use std::io;

use crate::{
    nemesis::Spared,
    plan::{Plan, Report},
    run::run,
};

/// So many networks each smaller run is tried with.
const NETWORKS: u32 = 4;

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
                    if plan == best.plan {
                        continue;
                    }
                    let limit = most.min(runs + NETWORKS);
                    if let Some(report) = with_some_network(plan, &property, &mut runs, limit)? {
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

/// A run of the plan that breaks the property, with its own network or, until there were so many runs, with others.
fn with_some_network(plan: Plan, property: &str, runs: &mut u32, most: u32) -> io::Result<Option<Report>> {
    let mut networks = plan.network..;
    while *runs < most {
        let Some(network) = networks.next() else { break };
        *runs += 1;
        let report = run(Plan { network, ..plan })?;
        if broken(&report) == Some(property) {
            return Ok(Some(report));
        }
    }
    Ok(None)
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
