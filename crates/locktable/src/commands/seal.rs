//! `Seal`: the source of a move stops changing a range. What is refused from here on is asked again of whichever group owns
//! the range afterwards (rule R16).

use alloc::boxed::Box;

use crate::{
    command::Seal,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable, Sealed},
};

pub(crate) fn apply(table: &mut LockTable, changes: &Changes, seal: &Seal) -> Result<Outcome, Rejection> {
    let moves = &table.state.moves;
    if let Some(sealed) = moves.sealed.as_ref().filter(|sealed| sealed.move_number == seal.move_number) {
        return Ok(Outcome::Sealed { revision: sealed.revision });
    }
    moves.check_new(seal.move_number)?;
    // A pause does not go along (rule R20): a group that was added after the restore would grant in the range at once.
    table.check_may_grant()?;
    if seal.term != changes.at.term {
        return Err(Rejection::StaleTerm);
    }
    if !table.state.ownership.covers(&seal.range) {
        return Err(Rejection::NotOwner);
    }
    let revision = table.state.revision;
    let left = seal.left.iter().map(|(session, epoch, left_ms)| (*session, (*epoch, *left_ms))).collect();
    let (move_number, range) = (seal.move_number, seal.range.clone());
    table.state.moves.highest = move_number;
    table.state.moves.sealed = Some(Box::new(Sealed { move_number, range, revision, left }));
    Ok(Outcome::Sealed { revision })
}
