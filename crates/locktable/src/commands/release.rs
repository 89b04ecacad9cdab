//! `Release`: ends exactly one hold; the next in line is granted in the same entry (P6). A repeat is harmless.

use crate::{
    event::Removal,
    ids::{SessionId, Token},
    mutant,
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
) -> Result<Outcome, Rejection> {
    table.owns(name)?;
    let mut token = token;
    if mutant!("release-by-an-earlier-token")
        && let Some((_, held, _)) = table.holder(name).filter(|(holder, ..)| *holder == session)
    {
        token = held;
    }
    if !table.holds(name, session, token) {
        let requests = table.state.requests(session);
        return match requests.is_some_and(|requests| requests.has_ended(name, token)) {
            true => Ok(Outcome::Released { released: false }),
            false => Err(Rejection::NotHolder),
        };
    }
    changes.write_at(table.next_revision()?);
    table.delete(changes, &name.key(session), Removal::Released);
    if let Some(known) = table.state.sessions.get_mut(&session) {
        known.requests.remember_hold(name, token);
    }
    Ok(Outcome::Released { released: true })
}
