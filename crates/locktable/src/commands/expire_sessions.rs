//! `ExpireSessions`: the leader found these sessions' time up. All their keys go at one revision.
//!
//! An attached group lets the session lapse: while it lives at home, it may come again, and then finds what it has asked for
//! before. A session with keys in a sealed range is passed over, and found again later (rule R16). Where the home has told of its end before, a tombstone stays, so that a first contact still under way does not
//! bring it back.

use alloc::vec::Vec;

use super::remove_session;
use crate::{
    command::SessionEndReason,
    ids::{SessionEpoch, SessionId, Term},
    mutant,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    sessions: &[(SessionId, SessionEpoch)],
    term: Term,
) -> Result<Outcome, Rejection> {
    if term != changes.at.term && !mutant!("expiry-of-an-earlier-term") {
        return Err(Rejection::StaleTerm);
    }
    let known = |(id, epoch): &&(SessionId, SessionEpoch)| {
        table.state.sessions.get(id).is_some_and(|session| session.epoch == *epoch)
    };
    let mut due: Vec<SessionId> = sessions.iter().filter(known).map(|(id, _)| *id).collect();
    due.retain(|session| table.check_unsealed(*session).is_ok());
    due.sort_unstable();
    due.dedup();
    remove_session::reserve(table, changes, due.iter().copied())?;
    for session in &due {
        let told =
            table.state.sessions.get(session).filter(|known| known.renewal_stopped).map(|known| known.epoch);
        remove_session::remove(table, changes, *session, SessionEndReason::Expired);
        if let Some(epoch) = told {
            remove_session::bury(table, changes, *session, epoch);
        }
    }
    Ok(Outcome::SessionsExpired { count: u32::try_from(due.len()).unwrap_or(u32::MAX) })
}
