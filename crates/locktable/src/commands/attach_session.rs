//! `AttachSession`: at home, another group asks to know the session (rule R4). Asking twice changes nothing.

use holdfast_partitioner::GroupId;

use crate::{
    ids::SessionId,
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
