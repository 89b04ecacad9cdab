//! `Own`: the first ranges of a fresh group.

use crate::{
    command::Own,
    outcome::{Outcome, Rejection},
    table::LockTable,
};

pub(crate) fn apply(table: &mut LockTable, own: &Own) -> Result<Outcome, Rejection> {
    if own.group != table.state.group {
        return Err(Rejection::NotOwner);
    }
    if table.state.ownership.ever() {
        return Err(Rejection::AlreadyOwned);
    }
    table.state.ownership.begin(own.map_epoch, &own.ranges);
    Ok(Outcome::Done)
}
