//! What the planner makes of the load.

use holdfast_partitioner::{
    GroupId, MapEpoch,
    change::Request,
    load::{GroupLoad, PrefixLoad},
    planner::Policy,
};
use serde::{Deserialize, Serialize};

use super::PlanView;

/// When the planner acts, and what it last saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerView {
    /// When it acts.
    pub policy: Policy,
    /// Its last look; none where its leader is new.
    pub look: Option<LookView>,
}

/// One look at the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookView {
    /// How long ago it was, in milliseconds.
    pub ago_ms: u64,
    /// The map in force while the load was measured.
    pub map_epoch: MapEpoch,
    /// What each group has to do.
    pub groups: Vec<(GroupId, GroupLoad)>,
    /// The prefixes with most entries, heaviest first, each with its heaviest names.
    pub hottest: Vec<PrefixLoad>,
    /// What it would do, or does.
    pub proposal: Option<ProposalView>,
    /// What keeps it from proposing anything at all.
    pub wait: Option<String>,
    /// What it considered and left, worst first, with the reasons.
    pub notes: Vec<String>,
}

/// A change that the planner proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalView {
    /// What to ask for.
    pub request: Request,
    /// The same in words.
    pub what: String,
    /// Why.
    pub why: String,
    /// What it comes to.
    pub plan: PlanView,
}
