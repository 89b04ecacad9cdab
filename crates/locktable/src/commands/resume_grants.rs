//! `ResumeGrants`: the leader of a restored group has waited as long as the longest TTL (rule R20). Repeated, nothing changes.

use crate::{
    ids::Term,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(table: &mut LockTable, changes: &Changes, term: Term) -> Result<Outcome, Rejection> {
    if term != changes.at.term {
        return Err(Rejection::StaleTerm);
    }
    table.state.paused_ms = None;
    Ok(Outcome::Done)
}
