//! What to do about prefixes that have been quiet for long: their rules go, the map stays small.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use super::history::Condition;
use super::{Look, Proposal};
use crate::change::{Change, Request};
use crate::ids::GroupId;

impl Look<'_> {
    /// A merge of the first prefix, in order, that has been quiet for long enough.
    pub(super) fn quiet(&mut self) -> Option<Proposal> {
        let now_ms = self.now_ms;
        for held in &self.history.held {
            let held_ms = now_ms.saturating_sub(held.since_ms);
            let Condition::Quiet { prefix } = &held.condition else { continue };
            if held_ms < self.policy.quiet_ms {
                continue;
            }
            let what = format!("merge {prefix:?}");
            let request = Request::Merge { prefix: prefix.clone(), to: None };
            let Some(change) = self.allowed(&what, &request) else { continue };
            if let Some(busy) = self.busy_destination(&change) {
                self.notes.push(format!("{what}: group {busy}, where it would go, is busy itself"));
                continue;
            }
            let why = self.quiet_reason(prefix, held_ms);
            return Some(Proposal { request, change, why });
        }
        None
    }

    fn busy_destination(&self, change: &Change) -> Option<GroupId> {
        let moved = change.steps.iter().filter_map(|step| step.moved.as_ref());
        let destinations: BTreeSet<GroupId> = moved.map(|moved| moved.to).collect();
        destinations.into_iter().find(|group| self.entries_of(*group) >= self.policy.group_entries_per_s)
    }

    fn quiet_reason(&self, prefix: &str, held_ms: u64) -> String {
        format!(
            "{prefix:?} has had at most {} entries/s for {} min; its rule can go",
            self.policy.quiet_entries_per_s,
            held_ms / 60_000
        )
    }
}
