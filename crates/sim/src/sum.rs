//! What many runs came to, in this process and in others.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{coverage::Coverage, nemesis::aim, plan::Report};

/// What many runs came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    runs: u64,
    virtual_ms: u64,
    acquires: u64,
    native_grants: u64,
    requests: u64,
    watched: usize,
    answers: usize,
    missed: u64,
    coverage: Coverage,
    /// How often each fault that was aimed at moves has hit.
    hits: BTreeMap<String, u64>,
}

impl Sum {
    /// What one run came to.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        Self {
            runs: 1,
            virtual_ms: report.virtual_ms,
            acquires: report.acquires,
            native_grants: report.native_grants,
            requests: report.requests,
            watched: report.watched,
            answers: report.answers,
            missed: report.missed,
            coverage: report.coverage.clone(),
            hits: report.hits.iter().map(|(target, hits)| (aim::name(*target), *hits)).collect(),
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.virtual_ms += other.virtual_ms;
        self.acquires += other.acquires;
        self.native_grants += other.native_grants;
        self.requests += other.requests;
        self.watched += other.watched;
        self.answers += other.answers;
        self.missed += other.missed;
        self.coverage.add(&other.coverage);
        for (target, hits) in &other.hits {
            *self.hits.entry(target.clone()).or_default() += hits;
        }
    }

    /// How many runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// What was covered, and how fast, in lines.
    #[must_use]
    pub fn lines(&self, took: Duration) -> Vec<String> {
        let (real, passed) = (took.as_secs_f64(), self.virtual_ms as f64 / 1_000.0);
        let mut lines: Vec<String> = self.coverage.lines().iter().map(|line| format!("  {line}")).collect();
        lines.push(format!(
            "{} pairs of command and answer; {} answers compared with the log; {} changes watched; {} native grants; {} \
             entries missed",
            self.coverage.pairs(),
            self.answers,
            self.watched,
            self.native_grants,
            self.missed
        ));
        lines.push(self.aimed());
        lines.push(format!(
            "{} seeds in {real:.1} s: {passed:.0} virtual seconds ({:.1} per second), {} acquires ({:.0} per second), {} \
             requests ({:.0} per second)",
            self.runs,
            passed / real,
            self.acquires,
            self.acquires as f64 / real,
            self.requests,
            self.requests as f64 / real
        ));
        lines
    }

    /// What of a move was hit, and what never.
    fn aimed(&self) -> String {
        let all: Vec<String> = aim::targets().map(aim::name).collect();
        let never: Vec<&str> =
            all.iter().map(String::as_str).filter(|name| !self.hits.contains_key(*name)).collect();
        let missing = if never.is_empty() { String::new() } else { format!("; never: {}", never.join(", ")) };
        let hits: u64 = self.hits.values().sum();
        format!(
            "{hits} faults aimed at moves, at {} of {} combinations of step, role and blow{missing}",
            all.len() - never.len(),
            all.len()
        )
    }
}
