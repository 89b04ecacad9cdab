//! `LearnEnds`: a session's home tells this group of its end (rules R4, R5). Told twice, nothing changes.
//!
//! Closed and forced ends free everything at once. After an expiry the group only stops renewing; its own deadline
//! frees the locks. An end of a session that is not known (any more) leaves a tombstone that refuses that epoch.

use alloc::vec::Vec;

use super::remove_session;
use crate::{
    command::{LearnedEnd, SessionEndReason},
    event::Fact,
    ids::SessionId,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable, Role},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    ends: &[LearnedEnd],
) -> Result<Outcome, Rejection> {
    let freed: Vec<SessionId> =
        ends.iter().filter(|end| frees(end.reason) && known(table, end)).map(|end| end.session).collect();
    // Not acknowledged, so that the home tells it again, to whoever owns the range then.
    freed.iter().try_for_each(|session| table.check_unsealed(*session))?;
    remove_session::reserve(table, changes, freed.into_iter())?;
    for end in ends {
        learn(table, changes, end);
    }
    Ok(Outcome::Done)
}

fn learn(table: &mut LockTable, changes: &mut Changes, end: &LearnedEnd) {
    let (session, epoch) = (end.session, end.epoch);
    if is_home(table, session) {
        // Only a confused sender tells a home of its own session.
        return;
    }
    if let Some(arriving) = table.state.moves.arriving(session, epoch) {
        arriving.ended = Some(end.reason);
    }
    if !known(table, end) {
        remove_session::bury(table, changes, session, epoch);
    } else if frees(end.reason) {
        remove_session::remove(table, changes, session, end.reason);
        remove_session::bury(table, changes, session, epoch);
    } else if let Some(known) = table.state.sessions.get_mut(&session).filter(|known| !known.renewal_stopped)
    {
        known.renewal_stopped = true;
        changes.fact(Fact::RenewalStopped { session, epoch });
    }
}

/// Whether this end frees the session's locks at once.
fn frees(reason: SessionEndReason) -> bool {
    match reason {
        SessionEndReason::Closed | SessionEndReason::Forced => true,
        SessionEndReason::Expired => false,
    }
}

/// Whether this very life of the session is attached here.
fn known(table: &LockTable, end: &LearnedEnd) -> bool {
    !is_home(table, end.session)
        && table.state.sessions.get(&end.session).is_some_and(|session| session.epoch == end.epoch)
}

fn is_home(table: &LockTable, session: SessionId) -> bool {
    match table.state.sessions.get(&session).map(|known| &known.role) {
        Some(Role::Home { .. }) => true,
        Some(Role::Attached { .. }) => false,
        None => table.state.pending.contains_key(&session),
    }
}
