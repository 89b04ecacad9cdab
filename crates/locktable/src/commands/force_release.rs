//! `ForceRelease`: an operator ends the hold with this token at once (rule R14). Only the fence protects then.

use crate::{
    event::Removal,
    ids::Token,
    name::Name,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    name: &Name,
    token: Token,
) -> Result<Outcome, Rejection> {
    table.owns(name)?;
    let holder = table.index.head(name).map(|head| (head.session, head.revision));
    match holder {
        Some((session, held)) if held == token => {
            changes.write_at(table.next_revision()?);
            table.delete(changes, &name.key(session), Removal::ForceReleased);
            Ok(Outcome::ForceReleased { session })
        }
        Some(_) | None => Err(Rejection::Changed { holder }),
    }
}
