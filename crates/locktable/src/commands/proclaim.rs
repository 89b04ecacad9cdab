//! `Proclaim`: the holder replaces the value of its key, so that observers see it.

use bytes::Bytes;

use super::check_value;
use crate::{
    ids::{SessionId, Token},
    name::Name,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    name: &Name,
    session: SessionId,
    token: Token,
    value: &Bytes,
) -> Result<Outcome, Rejection> {
    table.owns(name)?;
    check_value(value)?;
    if !table.holds(name, session, token) {
        return Err(Rejection::NotHolder);
    }
    let revision = table.next_revision()?;
    changes.write_at(revision);
    table.replace(changes, &name.key(session).into(), value.clone(), Some(session));
    Ok(Outcome::Proclaimed { revision })
}
