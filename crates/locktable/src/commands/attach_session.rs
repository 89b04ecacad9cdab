//! `AttachSession` and `AttachSessions`: at home, another group asks to know sessions (rule R4). Asking twice changes
//! nothing.

use alloc::vec::Vec;

use holdfast_partitioner::GroupId;

use crate::{
    command::{LearnedEnd, SessionEndReason},
    ids::{SessionEpoch, SessionId},
    outcome::{Outcome, Rejection},
    table::{LockTable, Role},
};

pub(crate) fn apply(table: &mut LockTable, session: SessionId, group: GroupId) -> Result<Outcome, Rejection> {
    let own = table.state.group;
    let Some(known) = table.state.sessions.get_mut(&session) else {
        return Err(Rejection::SessionLost { session });
    };
    match &mut known.role {
        Role::Home { attached } => {
            // The home itself needs no attachment: nobody would acknowledge it.
            if group != own {
                attached.insert(group);
            }
        }
        Role::Attached { .. } => return Err(Rejection::SessionUnknown { session }),
    }
    Ok(Outcome::SessionAttached {
        epoch: known.epoch,
        ttl_ms: known.ttl_ms,
        metadata: known.metadata.clone(),
    })
}

/// Attaches a group to which sessions come with a range. It must learn of the ends of the others, as they will not be told
/// by themselves: those are in the answer.
pub(crate) fn apply_all(
    table: &mut LockTable,
    sessions: &[(SessionId, SessionEpoch)],
    group: GroupId,
) -> Result<Outcome, Rejection> {
    let mut lost = Vec::new();
    for (session, epoch) in sessions {
        let lives = table.state.sessions.get(session).is_some_and(|known| known.epoch == *epoch);
        if !lives || apply(table, *session, group).is_err() {
            lost.push(LearnedEnd {
                session: *session,
                epoch: *epoch,
                reason: end_of(table, *session, *epoch),
            });
        }
    }
    Ok(Outcome::SessionsAttached { lost })
}

/// How a session ended, as far as it is still being told; else, with the least consequence, by expiry.
fn end_of(table: &LockTable, session: SessionId, epoch: SessionEpoch) -> SessionEndReason {
    let pending = table.state.pending.get(&session).filter(|pending| pending.epoch == epoch);
    pending.map_or(SessionEndReason::Expired, |pending| pending.reason)
}
