//! `JoinClaim`: a session takes part in a claim, which the first one makes. Repeated, nothing changes: neither what it has,
//! nor that it is being drained.

use super::{
    MAX_CLAIMS, MAX_MEMBERS, MAX_PARTITIONS, MAX_WEIGHT,
    contact::{self, Standing},
};
use crate::{
    command::JoinClaim,
    outcome::{Bound, Outcome, Rejection},
    table::{Changes, LockTable, Member},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    join: &JoinClaim,
) -> Result<Outcome, Rejection> {
    table.owns(&join.name)?;
    check_bounds(join)?;
    let standing = contact::check(table, join.session, join.epoch, join.attach.as_ref(), changes.at.term)?;
    if table.state.sessions.get(&join.session).is_some_and(|session| session.renewal_stopped) {
        return Err(Rejection::SessionLost { session: join.session });
    }
    let Some(member) = member(table, changes, join)? else { return Ok(Outcome::Done) };
    table.check_may_grant()?;
    changes.write_at(table.next_revision()?);
    if let (Standing::First, Some(attach)) = (standing, &join.attach) {
        contact::open(table, changes, join.session, join.epoch, attach);
    }
    table.join(changes, &join.name, join.session, join.partitions, member);
    Ok(Outcome::Done)
}

fn check_bounds(join: &JoinClaim) -> Result<(), Rejection> {
    if !(1..=MAX_PARTITIONS).contains(&join.partitions) {
        return Err(Rejection::OutOfBounds(Bound::Partitions));
    }
    if !(1..=MAX_WEIGHT).contains(&join.weight) {
        return Err(Rejection::OutOfBounds(Bound::Weight));
    }
    Ok(())
}

/// The member that the session becomes; `None` where it is that already.
fn member(table: &LockTable, changes: &Changes, join: &JoinClaim) -> Result<Option<Member>, Rejection> {
    let new = Member {
        weight: join.weight,
        draining: false,
        metadata: join.metadata.clone(),
        joined_at_ms: changes.at_ms,
        changed: table.state.revision,
    };
    let Some(claim) = table.state.claims.live.get(&join.name) else {
        return room(table, join).map(|()| Some(new));
    };
    let partitions = u32::try_from(claim.owners.len()).unwrap_or(u32::MAX);
    if partitions != join.partitions {
        return Err(Rejection::ClaimPartitions { partitions });
    }
    match claim.members.get(&join.session) {
        Some(known) if known.draining || known.weight == join.weight => Ok(None),
        Some(known) => Ok(Some(Member { weight: join.weight, ..known.clone() })),
        None if claim.members.len() >= MAX_MEMBERS => {
            Err(Rejection::ClaimFull { members: u32::try_from(claim.members.len()).unwrap_or(u32::MAX) })
        }
        None => room(table, join).map(|()| Some(new)),
    }
}

/// Whether the session may take part in one claim more.
fn room(table: &LockTable, join: &JoinClaim) -> Result<(), Rejection> {
    if table.joined.claims_of(join.session).count() >= MAX_CLAIMS {
        return Err(Rejection::OutOfBounds(Bound::Claims));
    }
    Ok(())
}
