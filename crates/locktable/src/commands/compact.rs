//! `Compact`: drops history below a revision, at most up to now. Keys and queues are not touched.

use crate::{
    ids::Revision,
    outcome::{Outcome, Rejection},
    table::LockTable,
};

pub(crate) fn apply(table: &mut LockTable, keep_from: Revision) -> Result<Outcome, Rejection> {
    let future = Revision(table.state.revision.0.saturating_add(1));
    table.state.history.compact(keep_from.min(future));
    Ok(Outcome::Done)
}
