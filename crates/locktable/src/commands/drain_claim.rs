//! `DrainClaim`: a member gives everything back, partition by partition, and goes when it has. Told twice, nothing changes.

use crate::{
    ids::SessionId,
    name::Name,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    name: &Name,
    session: SessionId,
) -> Result<Outcome, Rejection> {
    table.owns(name)?;
    let claim = table.state.claims.live.get(name);
    let member = claim.and_then(|claim| claim.members.get(&session)).ok_or(Rejection::NotMember)?;
    if !member.draining {
        changes.write_at(table.next_revision()?);
        table.drain(changes, name, session);
    }
    Ok(Outcome::Done)
}
