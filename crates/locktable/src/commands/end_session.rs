//! `EndSession`: at home, a session is closed or forced to end. Everything it has here is free at once (rule R5).

use core::iter;

use super::remove_session;
use crate::{
    command::{EndReason, SessionEndReason},
    ids::{SessionEpoch, SessionId},
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable, Role},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    session: SessionId,
    epoch: Option<SessionEpoch>,
    reason: EndReason,
) -> Result<Outcome, Rejection> {
    let lost = Rejection::SessionLost { session };
    let Some(known) = table.state.sessions.get(&session) else { return Err(lost) };
    if epoch.is_some_and(|epoch| epoch != known.epoch) {
        return Err(lost);
    }
    match known.role {
        Role::Home { .. } => {}
        Role::Attached { home } if home == table.state.group => return Err(lost),
        Role::Attached { .. } => return Err(Rejection::SessionUnknown { session }),
    }
    table.check_unsealed(session)?;
    let epoch = known.epoch;
    remove_session::reserve(table, changes, iter::once(session))?;
    let reason = match reason {
        EndReason::Closed => SessionEndReason::Closed,
        EndReason::Forced => SessionEndReason::Forced,
    };
    let to_tell = remove_session::remove(table, changes, session, reason);
    Ok(Outcome::SessionEnded { epoch, to_tell: to_tell.into_iter().collect() })
}
