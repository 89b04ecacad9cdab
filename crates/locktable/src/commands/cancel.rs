//! `Cancel`: ends the wait of exactly one request (rule R9). Other requests of the session are left alone.

use super::contact::{self, Standing};
use crate::{
    command::{Attach, Cancel, CancelReason, IfGranted},
    event::Removal,
    ids::SessionEpoch,
    mutant,
    outcome::{CancelOutcome, Outcome, Rejection, RequestEnd},
    table::{Absent, Changes, Earlier, LockTable, Requests},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    cancel: &Cancel,
) -> Result<Outcome, Rejection> {
    table.owns(&cancel.name)?;
    let revision = match table.earlier(cancel.session, &cancel.name, &cancel.request) {
        Earlier::Live(revision) => revision,
        // A repeated cancel finds what the first one did.
        Earlier::Ended(RequestEnd::Cancelled | RequestEnd::TimedOut) => {
            return Ok(Outcome::Cancel(CancelOutcome::Cancelled));
        }
        Earlier::New => {
            keep_out(table, cancel);
            return Ok(Outcome::Cancel(CancelOutcome::None));
        }
        Earlier::Ended(RequestEnd::Released | RequestEnd::Removed | RequestEnd::SessionEnded)
        | Earlier::Stale => return Ok(Outcome::Cancel(CancelOutcome::None)),
    };
    let held = table.holds(&cancel.name, cancel.session, revision);
    let keep = match cancel.granted {
        IfGranted::Keep => held,
        IfGranted::Release => false,
    };
    if mutant!("cancel-leaves-the-key") && !held {
        return Ok(Outcome::Cancel(CancelOutcome::Cancelled));
    }
    if keep {
        return Ok(Outcome::Cancel(CancelOutcome::Granted { token: revision, released: false }));
    }
    changes.write_at(table.next_revision()?);
    table.delete(changes, &cancel.name.key(cancel.session), removal(cancel.reason));
    if !held {
        return Ok(Outcome::Cancel(CancelOutcome::Cancelled));
    }
    if let Some(session) = table.state.sessions.get_mut(&cancel.session) {
        session.requests.remember_hold(&cancel.name, revision);
    }
    Ok(Outcome::Cancel(CancelOutcome::Granted { token: revision, released: true }))
}

/// As [`apply`], where this group may not know the session: then it remembers the session's request without a lease, so that
/// a copy that is still on its way, and meets the session with it, is refused (rule R11).
pub(crate) fn apply_first(
    table: &mut LockTable,
    changes: &mut Changes,
    epoch: SessionEpoch,
    attach: &Attach,
    cancel: &Cancel,
) -> Result<Outcome, Rejection> {
    table.owns(&cancel.name)?;
    match contact::check(table, cancel.session, epoch, Some(attach), changes.at.term)? {
        Standing::First => {
            let nothing = || Absent { epoch, requests: Requests::default() };
            table.state.absent.entry(cancel.session).or_insert_with(nothing);
        }
        Standing::Known => {}
    }
    apply(table, changes, cancel)
}

/// A client that ends a request which never came here, or was refused here without an entry, has heard or decided how it
/// ended: a copy of it that is still on its way must not be executed any more (rule R11). Where a wait ended otherwise its
/// caller may come again.
fn keep_out(table: &mut LockTable, cancel: &Cancel) {
    match cancel.reason {
        CancelReason::Cancelled => {}
        CancelReason::TimedOut | CancelReason::Abandoned => return,
    }
    if let Some(requests) = table.state.requests_mut(cancel.session) {
        requests.keep_out(&cancel.name, &cancel.request);
    }
}

fn removal(reason: CancelReason) -> Removal {
    match reason {
        CancelReason::TimedOut => Removal::TimedOut,
        CancelReason::Cancelled => Removal::Cancelled,
        CancelReason::Abandoned => Removal::Abandoned,
    }
}
