//! `ForgetEnds`: the leader has kept these tombstones long enough. Only exactly these epochs go.

use crate::{
    ids::{SessionEpoch, SessionId},
    outcome::{Outcome, Rejection},
    table::LockTable,
};

pub(crate) fn apply(table: &mut LockTable, ends: &[(SessionId, SessionEpoch)]) -> Result<Outcome, Rejection> {
    for end in ends {
        table.state.tombstones.remove(end);
    }
    Ok(Outcome::Done)
}
