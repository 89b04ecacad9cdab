//! The partition map: longest matching prefix → table → group, and the home group of every session. Reads tables,
//! runs no strategy, and does not know which member serves a group.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

use serde::{Deserialize, Serialize, Serializer};

use crate::fault::{MapFaults, faults_of};
use crate::hash::slot_of_session;
use crate::ids::{GroupId, MapEpoch};
use crate::name::{is_within_marker, partition_key, routed_name};
use crate::range::Range;
use crate::strategy::{StrategyError, StrategyRecord, even_slots};
use crate::table::Table;

/// Number of home slots of sessions; part of the hash of session ids, so it never changes.
pub const HOME_SLOTS: u16 = 64;

/// Slots of the catch-all rule of an initial map; as many lock groups can be started with.
pub const INITIAL_SLOTS: u16 = 256;

/// Most rules of one map.
pub const MAX_RULES: usize = 4096;

/// How the names below one prefix are spread over groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Segments after the prefix that belong to the [partition key](partition_key).
    pub depth: u16,
    /// Which strategy computed the table, and with what. A record: routing reads only the table.
    pub strategy: StrategyRecord,
    /// Partition key → group.
    pub table: Table,
}

/// What a map is made of, open for editing. Becomes a [`PartitionMap`] by `try_from`, if it is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapParts {
    /// Version of the map.
    pub epoch: MapEpoch,
    /// Rules by prefix; the empty prefix catches what no longer one does.
    pub rules: BTreeMap<String, Rule>,
    /// The home group of the sessions of each home slot.
    pub home_slots: Vec<GroupId>,
}

impl MapParts {
    /// Checks everything a map must hold.
    ///
    /// # Errors
    /// All faults at once, each with the prefix or slot where it stands.
    pub fn validate(&self) -> Result<(), MapFaults> {
        let faults = faults_of(self);
        if faults.is_empty() { Ok(()) } else { Err(MapFaults(faults)) }
    }
}

/// A valid partition map: every name has exactly one group, every session exactly one home.
///
/// Cannot be built or decoded otherwise. The encoding is frozen by golden tests and canonical: equal maps have equal
/// bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "MapParts")]
pub struct PartitionMap {
    parts: MapParts,
}

impl PartitionMap {
    /// The first map of a cluster: the first segment of a name decides its group, by even hash slots over all lock
    /// groups; the home slots are spread evenly over the first [`HOME_SLOTS`] of them. The order of `groups` and repetitions in it do not matter.
    ///
    /// # Errors
    /// No group, the meta group among them, or more than [`INITIAL_SLOTS`].
    pub fn initial(groups: &[GroupId]) -> Result<Self, StrategyError> {
        let groups: BTreeSet<GroupId> = groups.iter().copied().collect();
        let catch_all = Rule {
            depth: 1,
            strategy: StrategyRecord::hash(INITIAL_SLOTS),
            table: Table::Slots(even_slots(&groups, INITIAL_SLOTS)?),
        };
        let homes: BTreeSet<GroupId> = groups.iter().copied().take(usize::from(HOME_SLOTS)).collect();
        let parts = MapParts {
            epoch: MapEpoch::FIRST,
            rules: BTreeMap::from([(String::new(), catch_all)]),
            home_slots: even_slots(&homes, HOME_SLOTS)?,
        };
        Ok(Self { parts })
    }

    /// Version of the map.
    #[must_use]
    pub const fn epoch(&self) -> MapEpoch {
        self.parts.epoch
    }

    /// Rules by prefix.
    #[must_use]
    pub const fn rules(&self) -> &BTreeMap<String, Rule> {
        &self.parts.rules
    }

    /// The home group of the sessions of each home slot.
    #[must_use]
    pub fn home_slots(&self) -> &[GroupId] {
        &self.parts.home_slots
    }

    /// Opens the map for editing.
    #[must_use]
    pub fn into_parts(self) -> MapParts {
        self.parts
    }

    /// The group of the lock or election queue `name`. Takes the **lock name**, not one of its keys.
    #[must_use]
    pub fn locate(&self, name: &str) -> GroupId {
        let name = routed_name(name);
        // A valid map has an owner for every name. The meta group owns no locks and refuses, should that ever break.
        self.longest_rule(name)
            .and_then(|(prefix, rule)| rule.table.owner(partition_key(name, prefix, rule.depth)))
            .unwrap_or(GroupId::META)
    }

    /// The prefix and rule that decide where the lock or election queue `name` lives.
    #[must_use]
    pub fn rule_of(&self, name: &str) -> Option<(&str, &Rule)> {
        self.longest_rule(routed_name(name))
    }

    /// The home group of a session: it alone decides whether the session exists.
    #[must_use]
    pub fn home_of(&self, session_id: u64) -> GroupId {
        let slot = usize::from(slot_of_session(session_id, HOME_SLOTS));
        self.parts.home_slots.get(slot).copied().unwrap_or(GroupId::META)
    }

    /// What `group` owns, sorted: the list its replicated state starts from, and compares with after a move.
    #[must_use]
    pub fn ranges_of(&self, group: GroupId) -> Vec<Range> {
        let mut ranges = Vec::new();
        for (prefix, rule) in &self.parts.rules {
            for part in rule.table.parts_of(group, rule.depth) {
                ranges.push(Range::new(prefix.as_str(), self.longer_than(prefix), part));
            }
        }
        ranges.sort();
        ranges
    }

    /// Every group that owns locks or homes sessions.
    #[must_use]
    pub fn groups(&self) -> BTreeSet<GroupId> {
        let owners = self.parts.rules.values().flat_map(|rule| rule.table.groups());
        owners.chain(self.parts.home_slots.iter().copied()).collect()
    }

    /// The groups that may hold a name beginning with `start`: whom to ask when listing or watching a prefix.
    #[must_use]
    pub fn groups_under(&self, start: &str) -> BTreeSet<GroupId> {
        // What every election or claim begins with says nothing about its name.
        let start = if is_within_marker(start) { "" } else { routed_name(start) };
        let below = (Bound::Included(start), Bound::Unbounded);
        let longer = self.parts.rules.range::<str, _>(below);
        let longer = longer.take_while(|(prefix, _)| prefix.starts_with(start));
        let mut groups: BTreeSet<GroupId> = longer.flat_map(|(_, rule)| rule.table.groups()).collect();
        if let Some((prefix, rule)) = self.longest_rule(start) {
            groups.extend(rule.table.groups_under(start, prefix, rule.depth));
        }
        groups
    }

    /// Prefixes of other rules that begin with `prefix`.
    fn longer_than<'m>(&'m self, prefix: &'m str) -> impl Iterator<Item = String> + 'm {
        self.parts
            .rules
            .range::<str, _>((Bound::Excluded(prefix), Bound::Unbounded))
            .map(|(longer, _)| longer)
            .take_while(move |longer| longer.starts_with(prefix))
            .cloned()
    }

    /// The rule with the longest prefix of a routed name.
    ///
    /// The highest prefix not above the name is the answer if the name begins with it. If not, they first differ at
    /// some byte, any matching prefix ends before that byte, and the search goes on for the part they share.
    fn longest_rule(&self, name: &str) -> Option<(&str, &Rule)> {
        let mut shared = name;
        loop {
            let below = (Bound::Unbounded, Bound::Included(shared));
            let (prefix, rule) = self.parts.rules.range::<str, _>(below).next_back()?;
            if shared.starts_with(prefix.as_str()) {
                return Some((prefix, rule));
            }
            let same = prefix.bytes().zip(shared.bytes()).take_while(|(a, b)| a == b).count();
            shared = shared.get(..shared.floor_char_boundary(same))?;
        }
    }
}

impl Serialize for PartitionMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.parts.serialize(serializer)
    }
}

impl TryFrom<MapParts> for PartitionMap {
    type Error = MapFaults;

    fn try_from(parts: MapParts) -> Result<Self, MapFaults> {
        parts.validate()?;
        Ok(Self { parts })
    }
}

impl From<PartitionMap> for MapParts {
    fn from(map: PartitionMap) -> Self {
        map.parts
    }
}

#[cfg(test)]
mod tests;
