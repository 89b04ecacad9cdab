//! The verbs that look at the planner and say when it acts.

use std::cmp::Reverse;

use holdfast_partitioner::{
    GroupId,
    load::{Loads, PrefixLoad},
    planner::{PolicyEdit, Proposal},
};

use super::{
    Answer, ApiError, Endpoint,
    partitions::words,
    sessions::check_reason,
    types::planner::{LookView, PlannerView, ProposalView},
};
use crate::meta::{
    group::{MetaAnswer, MetaCall},
    looks::{Look, PlannerNow},
};

/// Prefixes that are shown, and names of each.
const HOTTEST: (usize, usize) = (20, 5);

impl Endpoint {
    /// When the planner acts, what it measured, and what it would do.
    pub async fn planner(&self) -> Answer<PlannerView> {
        let MetaAnswer::Planner(now) = self.meta_call(MetaCall::Planner).await? else {
            return Err(ApiError::no_leader(GroupId::META));
        };
        let PlannerNow { policy, look } = *now;
        let look = match look {
            Some(look) => Some(self.look_view(look).await),
            None => None,
        };
        Ok(PlannerView { policy, look })
    }

    /// Changes when the planner acts; recorded in the audit log. Answers what holds since.
    pub async fn edit_planner(&self, edit: PolicyEdit, reason: String, actor: String) -> Answer<PlannerView> {
        check_reason(&reason)?;
        if edit == PolicyEdit::default() {
            return Err(ApiError::invalid("nothing is to be changed: name at least one setting or prefix"));
        }
        let target = edit_words(&edit);
        let change = || async { self.meta_call(MetaCall::EditPolicy(edit.clone())).await.map(drop) };
        self.audited("edit_planner", &target, &reason, &actor, change).await?;
        self.planner().await
    }

    async fn look_view(&self, look: Look) -> LookView {
        let Look { ago_ms, loads, plan } = look;
        let proposal = match plan.proposal {
            Some(Proposal { request, change, why }) => {
                let plan = self.plan_view(change, None).await;
                Some(ProposalView { what: words(&request), request, why, plan })
            }
            None => None,
        };
        LookView {
            ago_ms,
            map_epoch: loads.epoch,
            groups: loads.groups.iter().map(|(group, load)| (*group, *load)).collect(),
            hottest: hottest(loads),
            proposal,
            wait: plan.wait.map(|wait| wait.to_string()),
            notes: plan.notes,
        }
    }
}

fn hottest(loads: Loads) -> Vec<PrefixLoad> {
    let (prefixes, names) = HOTTEST;
    let mut hottest = loads.prefixes;
    hottest.retain(|load| load.entries_per_s > 0 || load.waiters > 0);
    hottest.sort_by(|a, b| {
        let key = |load: &PrefixLoad| (Reverse(load.entries_per_s), Reverse(load.waiters));
        key(a).cmp(&key(b)).then_with(|| (&a.prefix, a.group).cmp(&(&b.prefix, b.group)))
    });
    hottest.truncate(prefixes);
    for load in &mut hottest {
        load.names.sort_by_key(|name| (Reverse(name.entries_per_s), Reverse(name.waiters)));
        load.names.truncate(names);
    }
    hottest
}

/// An edit in words, for the audit log.
fn edit_words(edit: &PolicyEdit) -> String {
    let number = |what: &str, value: Option<u64>| value.map(|value| format!("{what} {value}"));
    let mut words: Vec<String> = [
        edit.mode.map(|mode| format!("mode {}", mode.as_str())),
        number("hot_entries_per_s", edit.hot_entries_per_s),
        number("hot_queue_ms", edit.hot_queue_ms),
        number("group_entries_per_s", edit.group_entries_per_s),
        number("quiet_entries_per_s", edit.quiet_entries_per_s),
        number("isolate_percent", edit.isolate_percent),
        number("gain_percent", edit.gain_percent),
        number("hold_ms", edit.hold_ms),
        number("quiet_ms", edit.quiet_ms),
        number("cool_down_ms", edit.cool_down_ms),
        number("moves_per_hour", edit.moves_per_hour.map(u64::from)),
    ]
    .into_iter()
    .flatten()
    .collect();
    words.extend(edit.veto.iter().map(|prefix| format!("veto {prefix:?}")));
    words.extend(edit.allow.iter().map(|prefix| format!("allow {prefix:?}")));
    format!("planner: {}", words.join(", "))
}
