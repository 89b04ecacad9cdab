//! What the planner must remember between two looks: since when what holds, and when moves began. Plain data; the caller
//! keeps it, and loses at most time with it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::GroupId;

/// The time over which moves are counted.
const HOUR_MS: u64 = 60 * 60_000;

/// Something that must hold for a while before the planner acts on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// A prefix is hot in a group.
    Hot {
        /// The prefix.
        prefix: String,
        /// The group.
        group: GroupId,
    },
    /// A group is overloaded.
    Overloaded {
        /// The group.
        group: GroupId,
    },
    /// A prefix with a rule of its own is quiet.
    Quiet {
        /// The prefix.
        prefix: String,
    },
}

/// Since when a condition has held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The condition.
    pub condition: Condition,
    /// The look at which it was first seen, without a look since at which it was not.
    pub since_ms: u64,
}

/// The planner's memory. All times are of one clock that does not jump; which one is the caller's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The last look at the load.
    pub seen_ms: Option<u64>,
    /// What holds, sorted.
    pub held: Vec<Held>,
    /// When each move of the last hour began, oldest first.
    pub starts_ms: Vec<u64>,
    /// Whether a change is under way.
    pub changing: bool,
}

impl History {
    /// To be told at the start of every move, also of those that an operator asked for.
    ///
    /// What was hot before is measured anew; what has been quiet stays so.
    pub fn move_started(&mut self, now_ms: u64) {
        self.changing = true;
        self.starts_ms.retain(|start| now_ms.saturating_sub(*start) < HOUR_MS);
        self.starts_ms.push(now_ms);
        self.held.retain(|held| matches!(held.condition, Condition::Quiet { .. }));
    }

    /// To be told when all steps of a change have been carried out, or the change was given up.
    pub fn change_ended(&mut self) {
        self.changing = false;
    }

    /// Moves begun within the last hour.
    #[must_use]
    pub fn moves_within_hour(&self, now_ms: u64) -> usize {
        self.starts_ms.iter().filter(|start| now_ms.saturating_sub(**start) < HOUR_MS).count()
    }

    /// For how long a condition has held, in milliseconds.
    #[must_use]
    pub fn held_ms(&self, condition: &Condition, now_ms: u64) -> Option<u64> {
        let held = self.held.iter().find(|held| held.condition == *condition)?;
        Some(now_ms.saturating_sub(held.since_ms))
    }

    /// Forgets all that held if nobody looked for longer than `gap_ms`, or the clock went back: what happened meanwhile
    /// is not known.
    pub(super) fn look(&mut self, now_ms: u64, gap_ms: u64) {
        let continues = self.seen_ms.is_some_and(|seen| seen <= now_ms && now_ms - seen <= gap_ms);
        if !continues {
            self.held.clear();
        }
        self.seen_ms = Some(now_ms);
    }

    /// Takes over what holds now.
    pub(super) fn holds(&mut self, now_ms: u64, conditions: BTreeSet<Condition>) {
        let before: BTreeMap<Condition, u64> =
            self.held.drain(..).map(|held| (held.condition, held.since_ms)).collect();
        let since = |condition: &Condition| before.get(condition).copied().unwrap_or(now_ms);
        self.held =
            conditions.into_iter().map(|condition| Held { since_ms: since(&condition), condition }).collect();
    }
}
