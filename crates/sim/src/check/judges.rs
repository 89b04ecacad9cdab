//! All checks of tables and logs together, in the order in which they look.
//!
//! Judges nothing by itself.

use std::collections::BTreeMap;

use holdfast_partitioner::GroupId;

use super::{
    Findings, agreement::Agreement, answers::Answers, handover, refusals, rules::Rules, tokens::Tokens,
    tries, watch::Changes,
};
use crate::{cluster::Cluster, truth::Truth, workload::Setting};

/// How often, in milliseconds, those checks look that cost as much as reading all tables.
const LOOK_AT_RULES_EVERY_MS: u64 = 100;

/// The checks of one run that look at tables and logs.
#[derive(Debug)]
pub struct Judges {
    truth: Truth,
    agreement: Agreement,
    rules: Rules,
    tokens: Tokens,
    answers: Answers,
    changes: Changes,
    setting: Setting,
    findings: Findings,
}

impl Judges {
    /// Checks that have seen nothing yet.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self {
            truth: Truth::default(),
            agreement: Agreement::default(),
            rules: Rules::default(),
            tokens: Tokens::default(),
            answers: Answers::new(setting.telling.clone()),
            changes: Changes::default(),
            findings: setting.findings.clone(),
            setting,
        }
    }

    /// Looks at all tables, and at what is new in the logs.
    pub fn look(&mut self, now: u64, cluster: &Cluster) {
        let Self { truth, tokens, answers, changes, setting, findings, .. } = self;
        let logged: BTreeMap<GroupId, u64> =
            cluster.groups().filter_map(|group| Some((group, truth.logged(group, cluster)?))).collect();
        answers.hear(&logged);
        let trace = setting.network.trace();
        truth.look(now, cluster, findings, |step| {
            let (group, index) = (step.group, step.at.index);
            trace.line(
                now,
                format!("group {group} index {index}: {:?} -> {:?}", step.command, step.applied.result),
            );
            handover::judge(step, findings);
            refusals::judge(step, findings);
            tokens.judge(step, findings);
            answers.judge(step, findings);
            setting.renewals.judge(step, findings);
            changes.take(step);
        });
        self.agreement.look(now, cluster, &self.findings);
        let Setting { counts, past, names, .. } = &self.setting;
        counts.look(now, cluster, &self.findings);
        past.look(now, names, cluster);
        tries::look(now, names, cluster, &self.findings);
        if now.is_multiple_of(LOOK_AT_RULES_EVERY_MS) {
            self.rules.look(now, cluster, &self.findings);
        }
    }

    /// The run is over, and the cluster at rest.
    pub fn finish(&mut self, now: u64, cluster: &Cluster) {
        self.look(now, cluster);
        let complete = self.truth.missed() == 0;
        self.answers.finish(now, complete, &self.findings);
        if complete {
            self.changes.finish(now, &self.setting.watches, &self.findings);
        }
        self.setting.journal.finish();
    }

    /// The logs.
    #[must_use]
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// How many states of members were compared: with another member's, or with what the log leads to.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.agreement.compared() + self.truth.compared()
    }

    /// How many ends of acquires were compared with the log.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.answers.compared()
    }
}
