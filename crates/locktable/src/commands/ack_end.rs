//! `AckEnd`: at home, a group has applied the end of a session. After the last one the id is free again (rule R4).

use holdfast_partitioner::GroupId;

use crate::{
    event::Fact,
    ids::{SessionEpoch, SessionId},
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    session: SessionId,
    epoch: SessionEpoch,
    group: GroupId,
) -> Result<Outcome, Rejection> {
    let Some(pending) = table.state.pending.get_mut(&session).filter(|pending| pending.epoch == epoch) else {
        return Ok(Outcome::Done);
    };
    if pending.to_tell.remove(&group) {
        if pending.to_tell.is_empty() {
            table.state.pending.remove(&session);
        }
        changes.fact(Fact::EndTold { session, epoch, group });
    }
    Ok(Outcome::Done)
}
