//! `LeaveClaim`: a session takes part in a claim no more. What it had is free at once and goes to others in the same entry.

use crate::{
    ids::{SessionEpoch, SessionId},
    name::Name,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    name: &Name,
    session: SessionId,
    epoch: SessionEpoch,
) -> Result<Outcome, Rejection> {
    table.owns(name)?;
    if table.session_epoch(session).is_some_and(|known| known != epoch) {
        return Err(Rejection::SessionLost { session });
    }
    if !table.is_member(name, session) {
        return Ok(Outcome::ClaimLeft { left: false });
    }
    changes.write_at(table.next_revision()?);
    Ok(Outcome::ClaimLeft { left: table.leave(changes, name, session) })
}
