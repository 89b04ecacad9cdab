//! The knobs of the planner, each with its unit, and the values that it begins with.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::strategy::{SplitKeys, StrategyRecord};

/// What becomes of a proposal. The planner computes the same one in both modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing is planned.
    Off,
    /// Proposals are shown, and an operator carries them out.
    Suggest,
    /// Proposals are carried out.
    Auto,
}

/// When to change the map, and how often. Begin from [`Policy::standard`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What becomes of a proposal.
    pub mode: Mode,
    /// A prefix is hot in a group from so many entries in a second on.
    pub hot_entries_per_s: u64,
    /// A prefix with at least half of its group's entries, and a quarter of those that make it hot anyway, is hot also
    /// where entries wait so many milliseconds in the group's commit queue.
    pub hot_queue_ms: u64,
    /// A group is overloaded from so many entries in a second on, whatever they belong to.
    pub group_entries_per_s: u64,
    /// A prefix with a rule of its own is quiet up to so many entries in a second, over all its groups.
    pub quiet_entries_per_s: u64,
    /// A name is isolated if it has more than this percentage of a hot prefix's entries in the group.
    pub isolate_percent: u64,
    /// A change must leave every group it touches at least this percentage below what the relieved group has now.
    pub gain_percent: u64,
    /// Milliseconds for which a prefix must have been hot, or a group overloaded.
    pub hold_ms: u64,
    /// Milliseconds for which a prefix must have been quiet.
    pub quiet_ms: u64,
    /// Milliseconds from the start of a move until the next change.
    pub cool_down_ms: u64,
    /// Moves started within any hour, those of operators included.
    pub moves_per_hour: u32,
    /// Prefixes whose names are never moved by the planner; the empty one vetoes everything.
    pub vetoes: BTreeSet<String>,
    /// Splits a prefix most of whose load is known by name.
    pub by_load: StrategyRecord,
    /// Splits a prefix with very many names of little load each.
    pub by_hash: StrategyRecord,
}

/// Slots of a prefix that is split by hash.
const HASH_SLOTS: u16 = 64;

impl Policy {
    /// The values to begin with.
    #[must_use]
    pub fn standard(mode: Mode) -> Self {
        Self {
            mode,
            hot_entries_per_s: 2_000,
            hot_queue_ms: 100,
            group_entries_per_s: 3_000,
            quiet_entries_per_s: 50,
            isolate_percent: 50,
            gain_percent: 10,
            hold_ms: 60_000,
            quiet_ms: 30 * 60_000,
            cool_down_ms: 5 * 60_000,
            moves_per_hour: 12,
            vetoes: BTreeSet::new(),
            by_load: SplitKeys::record(),
            by_hash: StrategyRecord::hash(HASH_SLOTS),
        }
    }

    /// Checks that the values do not contradict each other.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn check(&self) -> Result<(), PolicyFaults> {
        let mut faults = Vec::new();
        if self.hot_entries_per_s == 0 || self.group_entries_per_s < self.hot_entries_per_s {
            faults.push(PolicyFault::Limits);
        }
        // What a merge gives back to its group must not make it hot again.
        if self.quiet_entries_per_s.saturating_mul(4) > self.hot_entries_per_s {
            faults.push(PolicyFault::QuietTooHigh);
        }
        if !(50..=100).contains(&self.isolate_percent) {
            faults.push(PolicyFault::IsolatePercent);
        }
        if !(1..=50).contains(&self.gain_percent) {
            faults.push(PolicyFault::GainPercent);
        }
        if self.hold_ms == 0 || self.quiet_ms < self.hold_ms || self.cool_down_ms < self.hold_ms {
            faults.push(PolicyFault::Times);
        }
        if faults.is_empty() { Ok(()) } else { Err(PolicyFaults(faults)) }
    }
}

/// One contradiction in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFault {
    /// Hot and overloaded.
    #[error("hot_entries_per_s must be 1 or more, and group_entries_per_s not lower than it")]
    Limits,
    /// Merging would heat up again.
    #[error("quiet_entries_per_s must be at most a quarter of hot_entries_per_s")]
    QuietTooHigh,
    /// Below half, two names could both be the single hot one.
    #[error("isolate_percent must be from 50 to 100")]
    IsolatePercent,
    /// Without gain it would move to and fro.
    #[error("gain_percent must be from 1 to 50")]
    GainPercent,
    /// Times in the wrong order.
    #[error("hold_ms must be 1 or more, and neither quiet_ms nor cool_down_ms shorter than it")]
    Times,
}

/// Every contradiction of a policy, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFaults(pub Vec<PolicyFault>);

impl core::fmt::Display for PolicyFaults {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the planner's policy is not valid: ")?;
        for (index, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl core::error::Error for PolicyFaults {}
