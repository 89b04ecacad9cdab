//! The planner as plain data, in the words of the JSON API.

use serde::Serialize;

use super::partition_types::{PartitionPlan, PartitionRequest};

/// When the planner acts, and what it last saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannerState {
    /// When it acts.
    pub policy: PlannerPolicy,
    /// Its last look; none where its leader is new.
    pub look: Option<PlannerLook>,
}

/// When the planner acts. Rates are log entries in one second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannerPolicy {
    /// `off`: nothing is planned; `suggest`: proposals are shown; `auto`: they are carried out.
    pub mode: String,
    /// A prefix is hot in a group from so many on.
    pub hot_entries_per_s: u64,
    /// Or with half of its group's, and a quarter of those, where entries wait so many milliseconds in the commit queue.
    pub hot_queue_ms: u64,
    /// A group is overloaded from so many on.
    pub group_entries_per_s: u64,
    /// A prefix with a rule of its own is quiet up to so many.
    pub quiet_entries_per_s: u64,
    /// A name with more than this percentage of a hot prefix is brought to a group by itself.
    pub isolate_percent: u64,
    /// A change leaves every group it touches at least this percentage below what the relieved one has.
    pub gain_percent: u64,
    /// Milliseconds for which a prefix must be hot, or a group overloaded.
    pub hold_ms: u64,
    /// Milliseconds for which a prefix must be quiet before its rule goes.
    pub quiet_ms: u64,
    /// Milliseconds from the start of a move until the next change.
    pub cool_down_ms: u64,
    /// Moves started within any hour, those of operators included.
    pub moves_per_hour: u32,
    /// Prefixes whose names the planner never moves.
    pub vetoes: Vec<String>,
}

/// One look at the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannerLook {
    /// How long ago it was, in milliseconds.
    pub ago_ms: u64,
    /// The map in force while the load was measured.
    pub map_epoch: u64,
    /// What each group has to do.
    pub groups: Vec<GroupLoad>,
    /// The prefixes with most entries, heaviest first.
    pub hottest: Vec<PrefixLoad>,
    /// What the planner would do, or does.
    pub proposal: Option<PlannerProposal>,
    /// What keeps it from proposing anything at all.
    pub wait: Option<String>,
    /// What it considered and left, worst first, with the reasons.
    pub notes: Vec<String>,
}

/// What a group has to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupLoad {
    /// The group.
    pub group: u32,
    /// Log entries in one second.
    pub entries_per_s: u64,
    /// Milliseconds from an entry's proposal until it was applied, on average.
    pub queue_ms: u64,
    /// Whether it has no leader, or none that answered.
    pub electing: bool,
    /// Whether it takes nothing any more.
    pub retired: bool,
}

/// What the names below a prefix cost a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrefixLoad {
    /// The prefix.
    pub prefix: String,
    /// The group.
    pub group: u32,
    /// Log entries in one second.
    pub entries_per_s: u64,
    /// Milliseconds from an entry's proposal until it was applied, on average.
    pub queue_ms: u64,
    /// Sessions that wait for its names.
    pub waiters: u64,
    /// Its heaviest names, as far as they were counted.
    pub names: Vec<NameLoad>,
}

/// What one name costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameLoad {
    /// The name.
    pub name: String,
    /// Log entries in one second.
    pub entries_per_s: u64,
    /// Sessions that wait for it.
    pub waiters: u64,
}

/// A change that the planner proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannerProposal {
    /// What to ask for, with [`crate::Admin::change_partitions`].
    #[serde(skip)]
    pub change: PartitionRequest,
    /// The same in words.
    pub what: String,
    /// Why.
    pub why: String,
    /// What it comes to.
    pub plan: PartitionPlan,
}

/// What is to be changed of a policy; what is not given stays as it is. See [`PlannerPolicy`] for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannerEdit {
    /// `off`, `suggest` or `auto`.
    pub mode: Option<String>,
    /// Log entries in one second.
    pub hot_entries_per_s: Option<u64>,
    /// Milliseconds.
    pub hot_queue_ms: Option<u64>,
    /// Log entries in one second.
    pub group_entries_per_s: Option<u64>,
    /// Log entries in one second.
    pub quiet_entries_per_s: Option<u64>,
    /// 50 to 100.
    pub isolate_percent: Option<u64>,
    /// 1 to 50.
    pub gain_percent: Option<u64>,
    /// Milliseconds, from 1.
    pub hold_ms: Option<u64>,
    /// Milliseconds, not less than `hold_ms`.
    pub quiet_ms: Option<u64>,
    /// Milliseconds, not less than `hold_ms`.
    pub cool_down_ms: Option<u64>,
    /// Moves.
    pub moves_per_hour: Option<u32>,
    /// Prefixes to veto from now on; the empty one vetoes everything.
    pub veto: Vec<String>,
    /// Prefixes whose veto is lifted.
    pub allow: Vec<String>,
}
