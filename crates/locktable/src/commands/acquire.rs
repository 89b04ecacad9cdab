//! `Acquire`: a key at the end of the queue, or the answer that an earlier attempt of the same request has earned.
//!
//! In order: is the queue ours, does the session live, was the request seen before (rules R8, R11), does the session
//! stand in the queue already (R10), is a try refused (P7). Only then anything is written, session and key in one entry.

use super::{
    MAX_REQUEST_TEXT_BYTES, check_value,
    contact::{self, Standing},
};
use crate::{
    command::{Acquire, Repeat, RequestId, Wait},
    ids::Revision,
    mutant,
    outcome::{Bound, Outcome, Rejection},
    table::{Changes, Earlier, LockTable, Place},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    ask: &Acquire,
) -> Result<Outcome, Rejection> {
    table.owns(&ask.name)?;
    check_bounds(ask)?;
    let standing = contact::check(table, ask.session, ask.epoch, ask.attach.as_ref(), changes.at.term)?;
    if let Some(answer) = answer_from_state(table, changes, ask) {
        return answer;
    }
    check_busy(table, ask)?;
    table.check_may_grant()?;
    let revision = table.next_revision()?;

    changes.write_at(revision);
    if let (Standing::First, Some(attach)) = (standing, &ask.attach) {
        contact::open(table, changes, ask.session, ask.epoch, attach);
    }
    if let Some(session) = table.state.sessions.get_mut(&ask.session) {
        session.requests.record(&ask.name, &ask.request, revision);
    }
    let place = Place {
        name: ask.name.clone(),
        request: Some(ask.request.clone()),
        wait: ask.wait,
        queued_at_ms: changes.at_ms,
        granted_at_ms: None,
        metadata: ask.metadata.clone(),
    };
    table.enqueue(changes, ask.session, ask.value.clone(), place);
    Ok(standing_of(table, ask, revision))
}

fn check_bounds(ask: &Acquire) -> Result<(), Rejection> {
    check_value(&ask.value)?;
    match &ask.request {
        RequestId::Text(text) if text.len() > MAX_REQUEST_TEXT_BYTES => {
            Err(Rejection::OutOfBounds(Bound::RequestId))
        }
        RequestId::Text(_) | RequestId::Sequence { .. } => Ok(()),
    }
}

/// What state already says to this request, or `None` where it is to be executed.
fn answer_from_state(
    table: &mut LockTable,
    changes: &mut Changes,
    ask: &Acquire,
) -> Option<Result<Outcome, Rejection>> {
    match table.earlier(ask.session, &ask.name, &ask.request) {
        Earlier::New => {}
        Earlier::Live(revision) => return Some(Ok(standing_of(table, ask, revision))),
        Earlier::Ended(_) | Earlier::Stale if mutant!("late-duplicate-executed") => {}
        Earlier::Ended(end) => return Some(Err(Rejection::StaleRequest { ended: Some(end) })),
        Earlier::Stale => return Some(Err(Rejection::StaleRequest { ended: None })),
    }
    if let Some(revision) = table.place_of(&ask.name, ask.session) {
        return Some(second_acquire(table, changes, ask, revision));
    }
    if table.state.sessions.get(&ask.session).is_some_and(|session| session.renewal_stopped) {
        return Some(Err(Rejection::SessionLost { session: ask.session }));
    }
    table.state.requests(ask.session)?.room(&ask.request).err().map(Err)
}

/// The session stands in the queue under another request.
fn second_acquire(
    table: &mut LockTable,
    changes: &mut Changes,
    ask: &Acquire,
    revision: Revision,
) -> Result<Outcome, Rejection> {
    match ask.repeat {
        Repeat::Refuse if table.holds(&ask.name, ask.session, revision) => {
            Err(Rejection::AlreadyHeld { token: revision })
        }
        Repeat::Refuse => Err(Rejection::AlreadyWaiting),
        Repeat::SameKey => {
            set_value(table, changes, ask)?;
            Ok(standing_of(table, ask, revision))
        }
    }
}

/// A campaign that comes again with another value replaces it, as etcd's does. Locks have no value.
fn set_value(table: &mut LockTable, changes: &mut Changes, ask: &Acquire) -> Result<(), Rejection> {
    let key = ask.name.key(ask.session).into();
    let same = table.state.keys.get(&key).is_some_and(|record| record.value == ask.value);
    if !same && !ask.value.is_empty() {
        changes.write_at(table.next_revision()?);
        table.replace(changes, &key, ask.value.clone(), Some(ask.session));
    }
    Ok(())
}

/// A try does not wait.
fn check_busy(table: &LockTable, ask: &Acquire) -> Result<(), Rejection> {
    if mutant!("busy-try-leaves-a-key") {
        return Ok(());
    }
    match (ask.wait, table.holder(&ask.name)) {
        (Wait::Try, Some((holder, token, waiters))) => Err(Rejection::Busy { holder, token, waiters }),
        (Wait::Try, None) | (Wait::AtMost(_) | Wait::Unlimited, _) => Ok(()),
    }
}

/// Holder or waiter.
fn standing_of(table: &LockTable, ask: &Acquire, revision: Revision) -> Outcome {
    match table.index.ahead(&ask.name, revision) {
        0 => Outcome::Granted { token: revision },
        ahead => Outcome::Queued { revision, ahead },
    }
}
