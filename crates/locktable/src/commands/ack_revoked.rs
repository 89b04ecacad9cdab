//! `AckRevoked`: a member has stopped using partitions that it was to give back; they go to others in the same entry. What is
//! not being revoked from it, or has gone already, is left alone, so that a late copy does nothing.

use crate::{
    command::AckRevoked,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    ack: &AckRevoked,
) -> Result<Outcome, Rejection> {
    table.owns(&ack.name)?;
    if table.session_epoch(ack.session).is_some_and(|known| known != ack.epoch) {
        return Err(Rejection::SessionLost { session: ack.session });
    }
    let claim = table.state.claims.live.get(&ack.name);
    let claim = claim.filter(|claim| claim.members.contains_key(&ack.session)).ok_or(Rejection::NotMember)?;
    let revoked = |(partition, token): &(u32, crate::ids::Token)| {
        let owner = claim.owners.get(*partition as usize).copied().flatten();
        owner.is_some_and(|owner| owner.is_revoked_of(ack.session, *token))
    };
    if ack.partitions.iter().any(revoked) {
        changes.write_at(table.next_revision()?);
        table.give_back(changes, &ack.name, ack.session, &ack.partitions);
    }
    Ok(Outcome::Done)
}
