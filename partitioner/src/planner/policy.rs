//! The knobs of the planner, each with its unit, and the values that it begins with.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::name::{NameFault, check_start};
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

impl Mode {
    /// All of them, the quietest first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Suggest, Self::Auto];

    /// Its name on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Suggest => "suggest",
            Self::Auto => "auto",
        }
    }
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
/// Most vetoes of a policy.
pub const MAX_VETOES: usize = 1_000;

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

    /// The policy after an edit.
    ///
    /// # Errors
    /// All that is wrong with what would come of it.
    pub fn edited(&self, edit: &PolicyEdit) -> Result<Self, PolicyFaults> {
        let mut faults = Vec::new();
        let mut vetoes = self.vetoes.clone();
        vetoes.extend(edit.veto.iter().cloned());
        for prefix in &edit.allow {
            if !vetoes.remove(prefix) {
                faults.push(PolicyFault::NoSuchVeto { prefix: prefix.clone() });
            }
        }
        if vetoes.len() > MAX_VETOES {
            faults.push(PolicyFault::TooManyVetoes);
        }
        let unreadable = |prefix: &String| {
            check_start(prefix).err().map(|why| PolicyFault::NoPrefix { prefix: prefix.clone(), why })
        };
        faults.extend(edit.veto.iter().filter_map(unreadable));
        let after = Self {
            mode: edit.mode.unwrap_or(self.mode),
            hot_entries_per_s: edit.hot_entries_per_s.unwrap_or(self.hot_entries_per_s),
            hot_queue_ms: edit.hot_queue_ms.unwrap_or(self.hot_queue_ms),
            group_entries_per_s: edit.group_entries_per_s.unwrap_or(self.group_entries_per_s),
            quiet_entries_per_s: edit.quiet_entries_per_s.unwrap_or(self.quiet_entries_per_s),
            isolate_percent: edit.isolate_percent.unwrap_or(self.isolate_percent),
            gain_percent: edit.gain_percent.unwrap_or(self.gain_percent),
            hold_ms: edit.hold_ms.unwrap_or(self.hold_ms),
            quiet_ms: edit.quiet_ms.unwrap_or(self.quiet_ms),
            cool_down_ms: edit.cool_down_ms.unwrap_or(self.cool_down_ms),
            moves_per_hour: edit.moves_per_hour.unwrap_or(self.moves_per_hour),
            vetoes,
            by_load: self.by_load.clone(),
            by_hash: self.by_hash.clone(),
        };
        if let Err(PolicyFaults(more)) = after.check() {
            faults.extend(more);
        }
        if faults.is_empty() { Ok(after) } else { Err(PolicyFaults(faults)) }
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

/// What an operator changes in a policy; what is not given stays as it is. Fields are encoded by position: append only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyEdit {
    /// Another mode.
    pub mode: Option<Mode>,
    /// See [`Policy::hot_entries_per_s`].
    pub hot_entries_per_s: Option<u64>,
    /// See [`Policy::hot_queue_ms`].
    pub hot_queue_ms: Option<u64>,
    /// See [`Policy::group_entries_per_s`].
    pub group_entries_per_s: Option<u64>,
    /// See [`Policy::quiet_entries_per_s`].
    pub quiet_entries_per_s: Option<u64>,
    /// See [`Policy::isolate_percent`].
    pub isolate_percent: Option<u64>,
    /// See [`Policy::gain_percent`].
    pub gain_percent: Option<u64>,
    /// See [`Policy::hold_ms`].
    pub hold_ms: Option<u64>,
    /// See [`Policy::quiet_ms`].
    pub quiet_ms: Option<u64>,
    /// See [`Policy::cool_down_ms`].
    pub cool_down_ms: Option<u64>,
    /// See [`Policy::moves_per_hour`].
    pub moves_per_hour: Option<u32>,
    /// Prefixes to veto from now on.
    pub veto: BTreeSet<String>,
    /// Prefixes whose veto is lifted.
    pub allow: BTreeSet<String>,
}

/// Something wrong with a policy, or with an edit of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFault {
    /// There is no such veto to lift.
    #[error("there is no veto on {prefix:?} to lift")]
    NoSuchVeto {
        /// What was asked for.
        prefix: String,
    },
    /// The list is full.
    #[error("there may be at most {MAX_VETOES} vetoes; veto a shorter prefix instead")]
    TooManyVetoes,
    /// No name can begin with it.
    #[error("no name begins with {prefix:?}: {why}")]
    NoPrefix {
        /// What was asked for.
        prefix: String,
        /// What is wrong with it.
        why: NameFault,
    },
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

/// All that is wrong with a policy, at least one thing.
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
