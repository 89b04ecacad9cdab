//! Counts of one group's leader over one window, in bounded memory. Takes the time as an argument.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::{GroupLoad, NameLoad, PrefixLoad, TopK};
use crate::ids::GroupId;
use crate::map::{PartitionMap, Rule};
use crate::name::{partition_key, routed_name};

/// Names counted for each group: enough to find where a prefix halves; at most 2 KiB each.
pub const COUNTED_NAMES: usize = 512;

/// Prefixes below rules counted for each group. What has no counter is counted at its rule.
pub const COUNTED_PREFIXES: usize = 256;

/// Entries of one group, by rule, by prefix below it and by name. Rules are as many as the map has.
#[derive(Clone, Debug)]
pub struct Meter {
    since_ms: u64,
    all: Tally,
    rules: BTreeMap<String, Tally>,
    prefixes: TopK,
    names: TopK,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    entries: u64,
    queue_ms: u64,
}

impl Tally {
    fn add(&mut self, entries: u64, queue_ms: u64) {
        self.entries = self.entries.saturating_add(entries);
        self.queue_ms = self.queue_ms.saturating_add(queue_ms.saturating_mul(entries));
    }

    fn mean_queue_ms(self) -> u64 {
        self.queue_ms.checked_div(self.entries).unwrap_or(0)
    }
}

impl Meter {
    /// Begins a window.
    #[must_use]
    pub fn new(since_ms: u64) -> Self {
        Self {
            since_ms,
            all: Tally::default(),
            rules: BTreeMap::new(),
            prefixes: TopK::new(COUNTED_PREFIXES),
            names: TopK::new(COUNTED_NAMES),
        }
    }

    /// Counts log entries that changed `name` and waited so long in the commit queue, each of them. `map` is the one in
    /// force: begin another window when it changes.
    pub fn count(&mut self, map: &PartitionMap, name: &str, entries: u64, queue_ms: u64) {
        self.all.add(entries, queue_ms);
        let name = routed_name(name);
        let Some((prefix, rule)) = map.rule_of(name) else { return };
        match self.rules.get_mut(prefix) {
            Some(tally) => tally.add(entries, queue_ms),
            None => {
                let mut tally = Tally::default();
                tally.add(entries, queue_ms);
                self.rules.insert(prefix.to_owned(), tally);
            }
        }
        if let Some(below) = prefix_below(name, prefix, rule) {
            self.prefixes.add(below, entries);
        }
        self.names.add(name, entries);
    }

    /// Counts log entries that belong to no name: of sessions and of the group itself.
    pub fn count_unnamed(&mut self, entries: u64, queue_ms: u64) {
        self.all.add(entries, queue_ms);
    }

    /// When the window began.
    #[must_use]
    pub const fn since_ms(&self) -> u64 {
        self.since_ms
    }

    /// What was counted until now. `waiters` says how many sessions wait for each name, names without any left out.
    #[must_use]
    pub fn report(
        &self,
        now_ms: u64,
        group: GroupId,
        map: &PartitionMap,
        waiters: &BTreeMap<String, u64>,
    ) -> (GroupLoad, Vec<PrefixLoad>) {
        let window_ms = now_ms.saturating_sub(self.since_ms).max(1);
        let per_s = |entries: u64| entries.saturating_mul(1000) / window_ms;
        let mut report = Report { group, map, prefixes: BTreeMap::new() };
        let mut below: BTreeMap<&str, u64> = BTreeMap::new();
        let heaviest = self.prefixes.heaviest();
        for heavy in &heaviest {
            let rule = report.rule_of(&heavy.key);
            let counted = below.entry(rule).or_default();
            *counted = counted.saturating_add(heavy.at_least());
            let queue_ms = self.rules.get(rule).copied().unwrap_or_default().mean_queue_ms();
            report.set(&heavy.key, per_s(heavy.at_least()), queue_ms);
        }
        for (prefix, tally) in &self.rules {
            let counted_below = below.get(prefix.as_str()).copied().unwrap_or(0);
            report.set(prefix, per_s(tally.entries.saturating_sub(counted_below)), tally.mean_queue_ms());
        }
        for heavy in self.names.heaviest() {
            let waiters = waiters.get(&heavy.key).copied().unwrap_or(0);
            report.add_name(NameLoad { entries_per_s: per_s(heavy.at_least()), waiters, name: heavy.key });
        }
        for (name, waiters) in waiters {
            report.add_waiters(routed_name(name), *waiters);
        }
        let all = GroupLoad {
            entries_per_s: per_s(self.all.entries),
            queue_ms: self.all.mean_queue_ms(),
            electing: false,
            retired: false,
        };
        (all, report.prefixes.into_values().collect())
    }
}

/// The segments after a rule's prefix that stand together, with the slash after them; `None` where the name has no more
/// segments than that: then it is a key of the rule itself.
fn prefix_below<'n>(name: &'n str, prefix: &str, rule: &Rule) -> Option<&'n str> {
    let key = partition_key(name, prefix, rule.depth);
    let with_slash = name.get(..key.len() + 1)?;
    (rule.depth > 0 && with_slash.ends_with('/')).then_some(with_slash)
}

struct Report<'m> {
    group: GroupId,
    map: &'m PartitionMap,
    prefixes: BTreeMap<String, PrefixLoad>,
}

impl<'m> Report<'m> {
    fn rule_of(&self, name: &str) -> &'m str {
        self.map.rule_of(name).map_or("", |(prefix, _)| prefix)
    }

    fn set(&mut self, prefix: &str, entries_per_s: u64, queue_ms: u64) {
        let load = PrefixLoad {
            prefix: prefix.to_owned(),
            group: self.group,
            entries_per_s,
            queue_ms,
            waiters: 0,
            names: Vec::new(),
        };
        self.prefixes.insert(prefix.to_owned(), load);
    }

    /// Where a name was counted, if anywhere.
    fn counted_at(&mut self, name: &str) -> Option<&mut PrefixLoad> {
        let (prefix, rule) = self.map.rule_of(name)?;
        let below = prefix_below(name, prefix, rule).filter(|below| self.prefixes.contains_key(*below));
        self.prefixes.get_mut(below.unwrap_or(prefix))
    }

    fn add_name(&mut self, load: NameLoad) {
        if let Some(counted) = self.counted_at(&load.name) {
            counted.names.push(load);
        }
    }

    fn add_waiters(&mut self, name: &str, waiters: u64) {
        if let Some(counted) = self.counted_at(name) {
            counted.waiters = counted.waiters.saturating_add(waiters);
        }
    }
}
