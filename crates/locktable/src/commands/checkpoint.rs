//! `Checkpoint`: how much time silent sessions have left, for the next leader (rule R6).

use crate::{
    event::Fact,
    ids::{SessionEpoch, SessionId, Term},
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable, Session},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    marked: &[(SessionId, SessionEpoch, u64)],
    cleared: &[(SessionId, SessionEpoch)],
    term: Term,
) -> Result<Outcome, Rejection> {
    if term != changes.at.term {
        return Err(Rejection::StaleTerm);
    }
    for (session, epoch, remaining_ms) in marked {
        let Some(known) = of_epoch(table, *session, *epoch) else { continue };
        let remaining_ms = (*remaining_ms).min(known.ttl_ms);
        known.marked_ms = Some(remaining_ms);
        changes.fact(Fact::Marked { session: *session, remaining_ms });
    }
    for (session, epoch) in cleared {
        let Some(known) = of_epoch(table, *session, *epoch) else { continue };
        known.marked_ms = None;
        changes.fact(Fact::Cleared { session: *session });
    }
    Ok(Outcome::Done)
}

fn of_epoch(table: &mut LockTable, session: SessionId, epoch: SessionEpoch) -> Option<&mut Session> {
    table.state.sessions.get_mut(&session).map(|known| &mut **known).filter(|known| known.epoch == epoch)
}
