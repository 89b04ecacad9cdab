//! `Cancel`: ends the wait of exactly one request (rule R9). Other requests of the session are left alone.

use crate::{
    command::{Cancel, CancelReason, IfGranted},
    event::Removal,
    outcome::{CancelOutcome, Outcome, Rejection, RequestEnd},
    table::{Changes, Earlier, LockTable},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    cancel: &Cancel,
) -> Result<Outcome, Rejection> {
    table.owns(&cancel.name)?;
    let key = cancel.name.key(cancel.session);
    let place =
        table.state.keys.get(key.as_slice()).and_then(|record| Some((record.create, record.place.as_ref()?)));
    let asked = place.filter(|(_, place)| place.request.as_ref().is_some_and(|r| r.same(&cancel.request)));
    let Some((revision, _)) = asked else {
        return Ok(Outcome::Cancel(earlier(table, cancel)));
    };
    let held = table.holds(&cancel.name, cancel.session, revision);
    let keep = match cancel.granted {
        IfGranted::Keep => held,
        IfGranted::Release => false,
    };
    if keep {
        return Ok(Outcome::Cancel(CancelOutcome::Granted { token: revision, released: false }));
    }
    changes.write_at(table.next_revision()?);
    table.delete(changes, &key, removal(cancel.reason));
    if !held {
        return Ok(Outcome::Cancel(CancelOutcome::Cancelled));
    }
    if let Some(session) = table.state.sessions.get_mut(&cancel.session) {
        session.requests.remember_hold(&cancel.name, revision);
    }
    Ok(Outcome::Cancel(CancelOutcome::Granted { token: revision, released: true }))
}

/// What a cancel says whose request has no key: a repeated one finds it cancelled.
fn earlier(table: &LockTable, cancel: &Cancel) -> CancelOutcome {
    let Some(session) = table.state.sessions.get(&cancel.session) else { return CancelOutcome::None };
    match session.requests.find(&cancel.name, &cancel.request) {
        Earlier::Ended(RequestEnd::Cancelled | RequestEnd::TimedOut) => CancelOutcome::Cancelled,
        Earlier::Ended(RequestEnd::Released | RequestEnd::Removed)
        | Earlier::New
        | Earlier::Live(_)
        | Earlier::Stale => CancelOutcome::None,
    }
}

fn removal(reason: CancelReason) -> Removal {
    match reason {
        CancelReason::TimedOut => Removal::TimedOut,
        CancelReason::Cancelled => Removal::Cancelled,
        CancelReason::Abandoned => Removal::Abandoned,
    }
}
