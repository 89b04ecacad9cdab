//! What to do about hot prefixes and overloaded groups: isolate a single hot name, split, or move. Worst first; what
//! cannot be helped is noted and the next one looked at.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::history::Condition;
use super::spots::Spot;
use super::{Look, Proposal};
use crate::change::{Change, Request};
use crate::ids::GroupId;
use crate::load::NameLoad;
use crate::map::PartitionMap;
use crate::table::Table;

impl Look<'_> {
    /// A change that relieves the worst spot, or else the worst group, that can be helped.
    pub(super) fn relief(&mut self, spots: &[Spot]) -> Option<Proposal> {
        for spot in spots {
            if let Some(held_ms) = self.long_enough(&spot.hot())
                && let Some(proposal) = self.cool(spot, held_ms)
            {
                return Some(proposal);
            }
        }
        let mut groups: Vec<GroupId> = self.loads.groups.keys().copied().collect();
        groups.sort_by_key(|group| (core::cmp::Reverse(self.entries_of(*group)), *group));
        for group in groups {
            if let Some(held_ms) = self.long_enough(&Condition::Overloaded { group })
                && let Some(proposal) = self.unload(group, spots, held_ms)
            {
                return Some(proposal);
            }
        }
        None
    }

    fn long_enough(&self, condition: &Condition) -> Option<u64> {
        self.history.held_ms(condition, self.now_ms).filter(|held_ms| *held_ms >= self.policy.hold_ms)
    }

    /// Something for one hot prefix in one group.
    fn cool(&mut self, spot: &Spot, held_ms: u64) -> Option<Proposal> {
        let what = format!("{:?} in group {}", spot.prefix, spot.group);
        let Some(to) = self.roomiest(spot.group) else {
            self.notes.push(format!("{what}: there is no other group to take anything"));
            return None;
        };
        let hot = format!(
            "{what} has had {} entries/s (limit {}) and {} ms in the commit queue (limit {}) for {} s",
            spot.entries_per_s,
            self.policy.hot_entries_per_s,
            spot.queue_ms,
            self.policy.hot_queue_ms,
            held_ms / 1000
        );
        let percent = |name: &NameLoad| {
            name.entries_per_s.saturating_mul(100).checked_div(spot.entries_per_s).unwrap_or(0)
        };
        let single = spot.heaviest().filter(|name| percent(name) > self.policy.isolate_percent);
        let (change, request, act) = match single {
            Some(name) => {
                let request = Request::Isolate { name: name.name.clone(), to };
                let act =
                    format!("{}% of that is the single name {:?}, which goes", percent(name), name.name);
                (self.isolating(&what, &request, spot, name, to)?, request, act)
            }
            None => {
                let request = self.split(spot, to);
                let change = self.helpful(&what, &request, spot)?;
                let act = parts(&change);
                (change, request, act)
            }
        };
        let why = format!("{hot}; {act} to group {to}, which has {} entries/s", self.entries_of(to));
        Some(Proposal { request, change, why })
    }

    /// The change that takes a single hot name away, if it is allowed and fewer names suffer from it at its new place: at
    /// most half as many entries are there as it leaves behind. That makes its load no smaller, so no split would help.
    fn isolating(
        &mut self,
        what: &str,
        request: &Request,
        spot: &Spot,
        name: &NameLoad,
        to: GroupId,
    ) -> Option<Change> {
        let beside = self.entries_of(spot.group).saturating_sub(name.entries_per_s);
        let there = self.entries_of(to);
        if beside <= self.policy.quiet_entries_per_s || there.saturating_mul(2) > beside {
            self.notes.push(format!(
                "{what}: most of it is the single name {:?}, which no split helps; beside it are {beside} entries/s, \
                 and {there} in group {to}",
                name.name
            ));
            return None;
        }
        self.allowed(what, request)
    }

    fn split(&self, spot: &Spot, to: GroupId) -> Request {
        let prefix = spot.prefix.clone();
        if let Some(rule) = self.map.rules().get(&prefix) {
            let mut over: BTreeSet<GroupId> =
                rule.table.groups().into_iter().filter(|group| self.groups.usable.contains(group)).collect();
            over.insert(to);
            return Request::Spread { prefix, over };
        }
        let known = spot.known_entries_per_s().saturating_mul(2) >= spot.entries_per_s;
        let strategy = if known { self.policy.by_load.clone() } else { self.policy.by_hash.clone() };
        Request::Split { prefix, into: BTreeSet::from([spot.group, to]), depth: 1, strategy }
    }

    /// Another group for a whole prefix of an overloaded one, none of which is hot itself.
    fn unload(&mut self, group: GroupId, spots: &[Spot], held_ms: u64) -> Option<Proposal> {
        let to = self.roomiest(group)?;
        let wanted = self.entries_of(group).saturating_sub(self.entries_of(to)) / 2;
        let mut movable: Vec<&Spot> = spots.iter().filter(|spot| spot.group == group).collect();
        movable.retain(|spot| self.stands_alone(spot) && spot.entries_per_s > 0);
        movable.sort_by_key(|spot| spot.entries_per_s.abs_diff(wanted));
        for spot in movable {
            let what = format!("group {group}, by moving {:?}", spot.prefix);
            let request = Request::Move { prefix: spot.prefix.clone(), to };
            let Some(change) = self.helpful(&what, &request, spot) else { continue };
            let why = format!(
                "group {group} has had {} entries/s (limit {}) for {} s, and no prefix of it is hot; {:?} with {} \
                 entries/s goes to group {to}, which has {}",
                self.entries_of(group),
                self.policy.group_entries_per_s,
                held_ms / 1000,
                spot.prefix,
                spot.entries_per_s,
                self.entries_of(to)
            );
            return Some(Proposal { request, change, why });
        }
        None
    }

    /// Whether the group has all of the prefix.
    fn stands_alone(&self, spot: &Spot) -> bool {
        match self.map.rules().get(&spot.prefix) {
            Some(rule) => rule.table.groups() == BTreeSet::from([spot.group]),
            None => !spot.prefix.is_empty(),
        }
    }

    /// The change that a request comes to, if it is allowed and leaves every group it touches clearly below what the
    /// spot's group has now; else a note says why not.
    fn helpful(&mut self, what: &str, request: &Request, spot: &Spot) -> Option<Change> {
        let change = self.allowed(what, request)?;
        let now = self.entries_of(spot.group);
        let limit = now.saturating_sub(now.saturating_mul(self.policy.gain_percent) / 100);
        let expected = self.expected(&change, spot)?;
        let worst = expected.into_iter().max_by_key(|(group, entries)| (*entries, *group));
        match worst {
            Some((_, entries)) if entries <= limit => Some(change),
            Some((group, entries)) => {
                self.notes.push(format!(
                    "{what}: it would not help, group {group} would then have {entries} entries/s, and group {} has \
                     {now} now",
                    spot.group
                ));
                None
            }
            None => None,
        }
    }

    /// What the groups that a change touches, and the spot's, will have: names where they go, and of what is not known
    /// by name the share that goes with the slots.
    fn expected(&self, change: &Change, spot: &Spot) -> Option<BTreeMap<GroupId, u64>> {
        let after = change.apply(self.map).ok()?;
        let mut expected = BTreeMap::from([(spot.group, self.entries_of(spot.group))]);
        for moved in change.steps.iter().filter_map(|step| step.moved.as_ref()) {
            for group in [moved.from, moved.to] {
                expected.entry(group).or_insert_with(|| self.entries_of(group));
            }
        }
        let mut carry = |from: GroupId, to: GroupId, entries: u64| {
            expected.entry(from).and_modify(|all| *all = all.saturating_sub(entries));
            expected.entry(to).and_modify(|all| *all = all.saturating_add(entries));
        };
        for name in &self.names {
            let (from, to) = (self.map.locate(&name.name), after.locate(&name.name));
            if from != to {
                carry(from, to, name.entries_per_s);
            }
        }
        let unknown = spot.entries_per_s.saturating_sub(spot.known_entries_per_s());
        for (to, share) in shares(&after, &change.prefix, spot.group, self.map) {
            carry(spot.group, to, unknown.saturating_mul(share) / 1000);
        }
        Some(expected)
    }
}

/// What goes, for people.
fn parts(change: &Change) -> String {
    let mut moved = change.steps.iter().filter_map(|step| step.moved.as_ref());
    match (moved.next(), change.moves()) {
        (Some(only), 1) => format!("{} goes", only.range),
        (_, moves) => format!("{moves} parts of it go"),
    }
}

/// Of what a group had of a prefix, how many thousandths go to each other group, by slots: names of little load are
/// spread evenly over them. Nothing by split keys, which are put between known names.
fn shares(
    after: &PartitionMap,
    prefix: &str,
    group: GroupId,
    before: &PartitionMap,
) -> BTreeMap<GroupId, u64> {
    let slots = |map: &PartitionMap| match map.rules().get(prefix).map(|rule| &rule.table) {
        Some(Table::Slots(owners)) => Some(owners.clone()),
        Some(Table::Splits(_)) | None => None,
    };
    let Some(then) = slots(after) else { return BTreeMap::new() };
    let now = slots(before).filter(|now| now.len() == then.len());
    let mut held = 0u64;
    let mut gone: BTreeMap<GroupId, u64> = BTreeMap::new();
    for (slot, owner) in then.iter().enumerate() {
        if now.as_ref().is_none_or(|now| now.get(slot) == Some(&group)) {
            held += 1;
            if *owner != group {
                *gone.entry(*owner).or_default() += 1;
            }
        }
    }
    gone.into_iter().map(|(to, slots)| (to, slots * 1000 / held.max(1))).collect()
}
