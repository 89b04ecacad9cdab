//! `Unseal` and `Discard`: a move was given up before its decision. The source goes on as before, the destination forgets
//! what came; told twice, nothing changes.

use crate::{
    ids::MoveNumber,
    outcome::{Outcome, Rejection},
    table::{Index, LockTable},
};

pub(crate) fn apply(table: &mut LockTable, number: MoveNumber) -> Result<Outcome, Rejection> {
    let moves = &mut table.state.moves;
    moves.check_number(number)?;
    // A seal or a part that is still on its way comes too late from here on.
    moves.highest = number;
    if moves.under_way() == Some(number) {
        (moves.sealed, moves.incoming) = (None, None);
        table.state.claims.arriving.clear();
        table.arriving = Index::default();
    }
    Ok(Outcome::Done)
}
