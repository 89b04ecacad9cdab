//! The planner: from measured load to at most one proposal, with the reasons in words. Carries nothing out.
//!
//! ```text
//!   Loads ──spots──> where the load is ──conditions──> History: since when ──relief/quiet──> Proposal, or why not
//! ```
//!
//! It must not move things to and fro. What it acts on has held for a while; a change must leave every group it touches
//! clearly below what the relieved group had; what it merges is far from hot; a name that has a rule of its own is not
//! isolated again; and moves are few: one change at a time, a pause after each, a budget for the hour.

mod history;
mod policy;
mod quiet;
mod relief;
mod spots;
mod wait;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::change::{Change, ChangeError, Given, Groups, Request, change};
use crate::ids::GroupId;
use crate::load::{Loads, NameLoad};
use crate::map::PartitionMap;
use crate::strategy::Registry;

pub use history::{Condition, Held, History};
pub use policy::{MAX_VETOES, Mode, Policy, PolicyEdit, PolicyFault, PolicyFaults};
pub use wait::Wait;

/// A change worth making.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// What to ask for.
    pub request: Request,
    /// What it comes to with the map that was looked at.
    pub change: Change,
    /// Why, for people.
    pub why: String,
}

/// The outcome of one look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The policy's mode.
    pub mode: Mode,
    /// What to do, if anything.
    pub proposal: Option<Proposal>,
    /// What kept it from looking for something to do.
    pub wait: Option<Wait>,
    /// What was considered and left, worst first, each with the reason; for people.
    pub notes: Vec<String>,
}

impl Plan {
    /// The proposal, if the mode is to carry it out.
    #[must_use]
    pub fn to_carry_out(&self) -> Option<&Proposal> {
        match self.mode {
            Mode::Auto => self.proposal.as_ref(),
            Mode::Off | Mode::Suggest => None,
        }
    }
}

/// What planning depends on besides the load.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'p> {
    /// When to act.
    pub policy: &'p Policy,
    /// The strategies of this member.
    pub registry: &'p Registry,
}

impl Planner<'_> {
    /// Looks at the load of one window. To be called more often than the policy's `hold_ms`, with the same history each
    /// time; a look after a longer pause starts all waiting anew.
    #[must_use]
    pub fn plan(&self, now_ms: u64, map: &PartitionMap, loads: &Loads, history: &mut History) -> Plan {
        let mut plan = Plan { mode: self.policy.mode, proposal: None, wait: None, notes: Vec::new() };
        if let Some(wait) = wait::before_looking(self.policy, map, loads) {
            plan.wait = Some(wait);
            return plan;
        }
        history.look(now_ms, self.policy.hold_ms);
        let spots = spots::spots(map, loads);
        let conditions = spots::conditions(map, loads, &spots, self.policy, history);
        history.holds(now_ms, conditions);
        plan.wait = wait::before_planning(now_ms, self.policy, loads, history);
        if plan.wait.is_some() {
            return plan;
        }
        let left = (self.policy.moves_per_hour as usize).saturating_sub(history.moves_within_hour(now_ms));
        let mut look = Look::new(self, now_ms, map, loads, history, left);
        plan.proposal = look.relief(&spots).or_else(|| look.quiet());
        plan.notes = look.notes;
        plan
    }
}

/// One look under way.
struct Look<'l> {
    policy: &'l Policy,
    registry: &'l Registry,
    now_ms: u64,
    map: &'l PartitionMap,
    loads: &'l Loads,
    history: &'l History,
    moves_left: usize,
    groups: Groups,
    names: Vec<NameLoad>,
    notes: Vec<String>,
}

impl<'l> Look<'l> {
    fn new(
        planner: &Planner<'l>,
        now_ms: u64,
        map: &'l PartitionMap,
        loads: &'l Loads,
        history: &'l History,
        moves_left: usize,
    ) -> Self {
        let with = |retired: bool| -> BTreeSet<GroupId> {
            loads.groups.iter().filter(|(_, group)| group.retired == retired).map(|(id, _)| *id).collect()
        };
        let names = loads.prefixes.iter().flat_map(|load| load.names.iter().cloned()).collect();
        Self {
            policy: planner.policy,
            registry: planner.registry,
            now_ms,
            map,
            loads,
            history,
            moves_left,
            groups: Groups { usable: with(false), retired: with(true) },
            names,
            notes: Vec::new(),
        }
    }

    fn change(&self, request: &Request) -> Result<Change, ChangeError> {
        let given =
            Given { map: self.map, groups: &self.groups, registry: self.registry, names: &self.names };
        change(&given, request)
    }

    /// The change that a request comes to, if neither an operator nor the budget forbids it; else a note says so.
    fn allowed(&mut self, what: &str, request: &Request) -> Option<Change> {
        let refused = match self.change(request) {
            Err(error) => format!("{what}: {error}"),
            Ok(change) => match self.veto(&change) {
                Some(veto) => format!("{what}: an operator's veto on {veto:?} forbids it"),
                None if change.moves() > self.moves_left => format!(
                    "{what}: it takes {} moves, and {} are left this hour",
                    change.moves(),
                    self.moves_left
                ),
                None => return Some(change),
            },
        };
        self.notes.push(refused);
        None
    }

    /// The veto that a change would break.
    fn veto(&self, change: &Change) -> Option<&'l str> {
        let breaks = |veto: &&String| {
            let mut moved = change.steps.iter().filter_map(|step| step.moved.as_ref());
            change.prefix.starts_with(veto.as_str()) || moved.any(|moved| moved.range.touches(veto))
        };
        self.policy.vetoes.iter().find(breaks).map(String::as_str)
    }

    fn entries_of(&self, group: GroupId) -> u64 {
        self.loads.groups.get(&group).map_or(0, |load| load.entries_per_s)
    }

    /// The usable group with the fewest entries, other than `but`.
    fn roomiest(&self, but: GroupId) -> Option<GroupId> {
        let others = self.groups.usable.iter().copied().filter(|group| *group != but);
        others.min_by_key(|group| (self.entries_of(*group), *group))
    }
}
