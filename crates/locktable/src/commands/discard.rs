//! `Discard`: a move was given up before its decision. The destination forgets what came; told twice, nothing changes.

use crate::{
    ids::MoveNumber,
    outcome::{Outcome, Rejection},
    table::LockTable,
};

pub(crate) fn apply(table: &mut LockTable, number: MoveNumber) -> Result<Outcome, Rejection> {
    let moves = &mut table.state.moves;
    moves.check_number(number)?;
    // A part that is still on its way comes too late from here on.
    moves.highest = number;
    if moves.incoming.as_ref().is_some_and(|incoming| incoming.move_number == number) {
        moves.incoming = None;
    }
    Ok(Outcome::Done)
}
