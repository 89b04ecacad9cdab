//! `Drop`: the range belongs to another group, by the decision of the meta group. What is left of it here goes without
//! events: nobody's hold or wait has ended.

use crate::{
    command::DropRange,
    event::Fact,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    dropped: &DropRange,
) -> Result<Outcome, Rejection> {
    let moves = &table.state.moves;
    moves.check_number(dropped.move_number)?;
    let Some(sealed) = moves.sealed.as_ref().filter(|sealed| sealed.move_number == dropped.move_number)
    else {
        // Dropped before, or never sealed.
        return if moves.highest == dropped.move_number {
            Ok(Outcome::Done)
        } else {
            Err(Rejection::NotPrepared)
        };
    };
    let range = sealed.range.clone();
    table.state.moves.sealed = None;
    table.state.ownership.replace(dropped.map_epoch, &dropped.ranges);
    table.take_away(&range);
    table.take_claims_away(&range);
    for known in table.state.sessions.values_mut() {
        known.requests.forget(&range);
    }
    for absent in table.state.absent.values_mut() {
        absent.requests.forget(&range);
    }
    changes.fact(Fact::RangeLeft { range, map_epoch: dropped.map_epoch });
    Ok(Outcome::Done)
}
