//! Who a command speaks for: a session known here, or one met for the first time on its home's word (rule R4).

use alloc::boxed::Box;

use super::check_ttl;
use crate::{
    command::Attach,
    event::Fact,
    ids::{SessionEpoch, SessionId, Term},
    mutant,
    outcome::Rejection,
    table::{Changes, LockTable, Role, Session},
};

/// How this group knows the session of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is known.
    Known,
    /// It is to be attached by the same entry that first needs it.
    First,
}

/// Finds out whether a command may act for this life of a session. Changes nothing.
pub(super) fn check(
    table: &LockTable,
    session: SessionId,
    epoch: SessionEpoch,
    attach: Option<&Attach>,
    term: Term,
) -> Result<Standing, Rejection> {
    let lost = Rejection::SessionLost { session };
    if mutant!("session-check-skipped") && attach.is_none() {
        return Ok(Standing::Known);
    }
    if let Some(known) = table.state.sessions.get(&session) {
        return if known.epoch == epoch { Ok(Standing::Known) } else { Err(lost) };
    }
    if table.state.absent.get(&session).is_some_and(|absent| absent.epoch != epoch) {
        return Err(lost);
    }
    let buried =
        table.state.tombstones.contains(&(session, epoch)) && !mutant!("late-first-contact-accepted");
    if table.state.pending.contains_key(&session) || buried {
        return Err(lost);
    }
    let Some(attach) = attach else { return Err(Rejection::SessionUnknown { session }) };
    if attach.home == table.state.group {
        return Err(lost);
    }
    if attach.term != term {
        return Err(Rejection::StaleTerm);
    }
    check_ttl(attach.ttl_ms)?;
    Ok(Standing::First)
}

/// Attaches a session that [`check`] found to be without a lease here. What is remembered of its requests stays.
pub(super) fn open(
    table: &mut LockTable,
    changes: &mut Changes,
    session: SessionId,
    epoch: SessionEpoch,
    attach: &Attach,
) {
    let role = Role::Attached { home: attach.home };
    let mut record = Session::new(epoch, attach.ttl_ms, attach.metadata.clone(), role, changes.at_ms);
    if let Some(absent) = table.state.absent.remove(&session) {
        record.requests = absent.requests;
    }
    table.state.sessions.insert(session, Box::new(record));
    changes.fact(Fact::SessionOpened { session, epoch, ttl_ms: attach.ttl_ms });
}
