//! `Unseal`: a move was given up before its decision. The source goes on as before; told twice, nothing changes.

use crate::{
    ids::MoveNumber,
    outcome::{Outcome, Rejection},
    table::LockTable,
};

pub(crate) fn apply(table: &mut LockTable, number: MoveNumber) -> Result<Outcome, Rejection> {
    let moves = &mut table.state.moves;
    moves.check_number(number)?;
    // A seal that is still on its way comes too late from here on.
    moves.highest = number;
    if moves.sealed.as_ref().is_some_and(|sealed| sealed.move_number == number) {
        moves.sealed = None;
    }
    Ok(Outcome::Done)
}
