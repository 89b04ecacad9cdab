//! From the rule that a prefix has to the one it shall have, one range at a time.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::error::{ChangeError, StepError};
use super::place::{longer_prefixes, rule_in_place};
use super::step::{Moved, Step};
use super::target::Target;
use crate::ids::{GroupId, MapEpoch};
use crate::map::{PartitionMap, Rule};
use crate::range::difference::common_slots;
use crate::range::{Part, Range};
use crate::strategy::StrategyRecord;
use crate::table::{MAX_TABLE_ENTRIES, Table};

/// Two tables of the same shape, of which one turns into the other entry by entry.
struct Turn {
    depth: u16,
    strategy: StrategyRecord,
    now: Table,
    then: Table,
}

/// Some entries of a table that go from one group to another, and which keys they hold.
struct Difference {
    from: GroupId,
    to: GroupId,
    part: Part,
    entries: Entries,
}

enum Entries {
    Slots(Vec<usize>),
    Splits(Vec<String>),
}

/// The steps that lead to a target: moves first, with the rule exactly as wanted after the last.
///
/// # Errors
/// The map is so already, or would not be valid.
pub(super) fn towards(map: &PartitionMap, target: &Target) -> Result<Vec<Step>, ChangeError> {
    let nothing = ChangeError::NothingToDo { prefix: target.asked.clone(), why: target.already };
    if target.keep.as_ref() == map.rules().get(&target.prefix) {
        return Err(nothing);
    }
    let Some(current) = rule_in_place(map, &target.prefix) else { return Err(nothing) };
    let mut moves: Vec<(Rule, Moved)> = Vec::new();
    for turn in turns(&current, &target.rule) {
        moves.extend(turn.moves(map, &target.prefix));
    }
    let mut steps = numbered(map.epoch(), &target.prefix, moves)?;
    match steps.last_mut() {
        Some(last) => last.rule = target.keep.clone(),
        None => steps.push(Step {
            base: map.epoch(),
            prefix: target.prefix.clone(),
            rule: target.keep.clone(),
            moved: None,
        }),
    }
    steps.iter().try_fold(map.clone(), |map, step| step.apply(&map))?;
    Ok(steps)
}

fn numbered(first: MapEpoch, prefix: &str, moves: Vec<(Rule, Moved)>) -> Result<Vec<Step>, StepError> {
    let mut base = first;
    let mut steps = Vec::with_capacity(moves.len());
    for (rule, moved) in moves {
        steps.push(Step { base, prefix: prefix.into(), rule: Some(rule), moved: Some(moved) });
        base = base.next().ok_or(StepError::EpochFull)?;
    }
    Ok(steps)
}

/// One turn where the tables can be given one shape; else two, by way of a single group.
fn turns(current: &Rule, target: &Rule) -> Vec<Turn> {
    if let Some(turn) = turn(current, target) {
        return Vec::from([turn]);
    }
    let Some(gather) = gathering_group(&current.table, &target.table) else { return Vec::new() };
    let gathered = Rule { table: all_to(&current.table, gather), ..current.clone() };
    turn(current, &gathered).into_iter().chain(turn(&gathered, target)).collect()
}

/// Both tables in one shape, or `None` where there is none.
fn turn(current: &Rule, target: &Rule) -> Option<Turn> {
    let (by_current, by_target) = (current.strategy.clone(), target.strategy.clone());
    if let Some(owner) = only_group(&current.table) {
        let now = all_to(&target.table, owner);
        return Some(Turn { depth: target.depth, strategy: by_target, now, then: target.table.clone() });
    }
    if let Some(owner) = only_group(&target.table) {
        let now = current.table.clone();
        return Some(Turn { depth: current.depth, strategy: by_current, then: all_to(&now, owner), now });
    }
    if current.depth != target.depth {
        return None;
    }
    let (now, then) = match (&current.table, &target.table) {
        (Table::Slots(now), Table::Slots(then)) => {
            let slots = common_slots(u16::try_from(now.len()).ok()?, u16::try_from(then.len()).ok()?)?;
            if slots > MAX_TABLE_ENTRIES {
                return None;
            }
            let repeated = |owners: &[GroupId]| {
                Table::Slots(owners.iter().copied().cycle().take(usize::from(slots)).collect())
            };
            (repeated(now), repeated(then))
        }
        (Table::Splits(now), Table::Splits(then)) => {
            let cut = |table: &Table| {
                let keys = now.keys().chain(then.keys());
                keys.map(|key| Some((key.clone(), table.owner(key)?)))
                    .collect::<Option<_>>()
                    .map(Table::Splits)
            };
            (cut(&current.table)?, cut(&target.table)?)
        }
        (Table::Slots(_), Table::Splits(_)) | (Table::Splits(_), Table::Slots(_)) => return None,
    };
    let within = now.len() <= usize::from(MAX_TABLE_ENTRIES);
    within.then_some(Turn { depth: target.depth, strategy: by_target, now, then })
}

fn only_group(table: &Table) -> Option<GroupId> {
    let groups = table.groups();
    groups.first().copied().filter(|_| groups.len() == 1)
}

fn all_to(table: &Table, group: GroupId) -> Table {
    match table {
        Table::Slots(owners) => Table::Slots(owners.iter().map(|_| group).collect()),
        Table::Splits(splits) => Table::Splits(splits.keys().map(|key| (key.clone(), group)).collect()),
    }
}

/// Where a prefix is gathered: the group of the target that has most entries now, or else the target's first.
fn gathering_group(current: &Table, target: &Table) -> Option<GroupId> {
    let mut held: BTreeMap<GroupId, usize> = target.groups().into_iter().map(|group| (group, 0)).collect();
    let owners: Vec<GroupId> = match current {
        Table::Slots(owners) => owners.clone(),
        Table::Splits(splits) => splits.values().copied().collect(),
    };
    for owner in owners {
        held.entry(owner).and_modify(|entries| *entries += 1);
    }
    held.into_iter()
        .max_by_key(|(group, entries)| (*entries, core::cmp::Reverse(*group)))
        .map(|(group, _)| group)
}

impl Turn {
    /// The moves, each with the rule after it.
    fn moves(self, map: &PartitionMap, prefix: &str) -> Vec<(Rule, Moved)> {
        let differences = self.differences();
        let mut table = self.now;
        let mut moves = Vec::with_capacity(differences.len());
        for difference in differences {
            table.give(&difference.entries, difference.to);
            let range = Range::new(prefix, longer_prefixes(map, prefix), difference.part);
            let rule = Rule { depth: self.depth, strategy: self.strategy.clone(), table: table.clone() };
            moves.push((rule, Moved { from: difference.from, to: difference.to, range }));
        }
        moves
    }

    /// All that changes its group: of slots what goes from one group to one other is one difference, of splits every
    /// run of neighbours that does.
    fn differences(&self) -> Vec<Difference> {
        match (&self.now, &self.then) {
            (Table::Slots(now), Table::Slots(then)) => {
                let mut slots: BTreeMap<(GroupId, GroupId), Vec<u16>> = BTreeMap::new();
                for (slot, (from, to)) in (0..).zip(now.iter().zip(then)).filter(|(_, (from, to))| from != to)
                {
                    slots.entry((*from, *to)).or_default().push(slot);
                }
                let all = u16::try_from(now.len()).unwrap_or(0);
                slots
                    .into_iter()
                    .map(|(pair, moved)| slots_difference(pair, moved, self.depth, all))
                    .collect()
            }
            (Table::Splits(now), Table::Splits(then)) => {
                let mut runs = Runs { depth: self.depth, open: None, done: Vec::new() };
                for ((key, from), to) in now.iter().zip(then.values()) {
                    runs.next(key, *from, *to);
                }
                runs.close(None);
                runs.done
            }
            // A turn has two tables of one shape.
            (Table::Slots(_), Table::Splits(_)) | (Table::Splits(_), Table::Slots(_)) => Vec::new(),
        }
    }
}

fn slots_difference((from, to): (GroupId, GroupId), moved: Vec<u16>, depth: u16, slots: u16) -> Difference {
    let part = Part::Slots { depth, slots, owned: moved.iter().copied().collect() };
    Difference { from, to, part, entries: Entries::Slots(moved.into_iter().map(usize::from).collect()) }
}

/// Neighbouring intervals that go from one group to one other, put together.
struct Runs {
    depth: u16,
    open: Option<(GroupId, GroupId, Vec<String>)>,
    done: Vec<Difference>,
}

impl Runs {
    fn next(&mut self, key: &str, from: GroupId, to: GroupId) {
        match &mut self.open {
            Some((open_from, open_to, keys)) if *open_from == from && *open_to == to => keys.push(key.into()),
            Some(_) | None => {
                self.close(Some(key));
                if from != to {
                    self.open = Some((from, to, Vec::from([key.into()])));
                }
            }
        }
    }

    fn close(&mut self, end: Option<&str>) {
        let Some((from, to, keys)) = self.open.take() else { return };
        let start = keys.first().cloned().unwrap_or_default();
        let part = Part::Keys { depth: self.depth, from: start, to: end.map(Into::into) };
        self.done.push(Difference { from, to, part, entries: Entries::Splits(keys) });
    }
}

impl Table {
    fn give(&mut self, entries: &Entries, to: GroupId) {
        match (self, entries) {
            (Self::Slots(owners), Entries::Slots(slots)) => {
                for slot in slots {
                    if let Some(owner) = owners.get_mut(*slot) {
                        *owner = to;
                    }
                }
            }
            (Self::Splits(splits), Entries::Splits(keys)) => {
                for key in keys {
                    if let Some(owner) = splits.get_mut(key) {
                        *owner = to;
                    }
                }
            }
            (Self::Slots(_), Entries::Splits(_)) | (Self::Splits(_), Entries::Slots(_)) => {}
        }
    }
}
