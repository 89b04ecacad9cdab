//! What the planner saw last, kept at the leader of the meta group for whoever asks.

use std::sync::Arc;

use holdfast_locktable::ids::Term;
use holdfast_partitioner::{
    load::Loads,
    planner::{Plan, Policy},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::group::MetaGroup;

/// The planner as the leader of the meta group knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerNow {
    /// When it acts.
    pub policy: Policy,
    /// Its last look at the load; none yet where the leader is new.
    pub look: Option<Look>,
}

/// One look of the planner at the load of all groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// How long ago it was, in milliseconds.
    pub ago_ms: u64,
    /// What was measured.
    pub loads: Loads,
    /// What came of it.
    pub plan: Plan,
}

/// The last look. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks(Arc<Mutex<Option<Looked>>>);

/// A look, when and as which leader it was taken.
#[derive(Clone, Debug)]
struct Looked {
    at: Instant,
    term: Term,
    look: Look,
}

impl MetaGroup {
    /// Keeps a look of the planner, taken as the leader of this term, for whoever asks.
    pub fn looked(&self, term: Term, loads: Loads, plan: Plan) {
        let look = Look { ago_ms: 0, loads, plan };
        *self.looks().0.lock() = Some(Looked { at: Instant::now(), term, look });
    }

    pub(super) fn planner(&self, term: Term) -> PlannerNow {
        let looked = self.looks().0.lock().clone().filter(|looked| looked.term == term);
        let look =
            looked.map(|Looked { at, look, .. }| Look { ago_ms: at.elapsed().as_millis() as u64, ..look });
        PlannerNow { policy: self.policy(), look }
    }
}
