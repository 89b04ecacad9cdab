//! Rules of sessions, their requests, and their ends.

use super::Violation;
use crate::{
    command::RequestId,
    commands::{MAX_TTL_MS, MIN_TTL_MS},
    ids::{Revision, SessionId},
    name::Name,
    outcome::RequestEnd,
    table::{LockTable, MAX_ENDED_HOLDS, MAX_ENDED_TEXTS, MAX_OUTSTANDING, Requests, Role, Session},
};

pub(super) fn all(table: &LockTable) -> Result<(), Violation> {
    for (session, known) in &table.state.sessions {
        let session = *session;
        let mark = known.marked_ms.is_none_or(|marked| marked <= known.ttl_ms);
        if !mark || !(MIN_TTL_MS..=MAX_TTL_MS).contains(&known.ttl_ms) {
            return Err(Violation::SessionTimes { session });
        }
        if !role_fits(table, known) {
            return Err(Violation::SessionRole { session });
        }
        let requests = &known.requests;
        if !floor_fits(requests) {
            return Err(Violation::Floor { session });
        }
        if !records_fit(table, session, requests) || !places_are_recorded(table, session, requests) {
            return Err(Violation::RequestRecord { session });
        }
        let over = |(name, token): &(Name, Revision)| !table.holds(name, session, *token);
        if requests.rare.get().ended_holds.len() > MAX_ENDED_HOLDS
            || !requests.rare.get().ended_holds.iter().all(over)
        {
            return Err(Violation::EndedHolds { session });
        }
    }
    Ok(())
}

fn role_fits(table: &LockTable, known: &Session) -> bool {
    match &known.role {
        Role::Home { attached } => !known.renewal_stopped && !attached.contains(&table.state.group),
        // What came with a range and had expired here lasts to its own deadline.
        Role::Attached { home } => *home != table.state.group || known.renewal_stopped,
    }
}

/// Whether results are above the floor and not too many.
fn floor_fits(requests: &Requests) -> bool {
    let above = requests.results.first().is_none_or(|(lowest, _)| *lowest > requests.floor);
    above && requests.results.len() <= MAX_OUTSTANDING
}

/// Whether every record agrees with the key it created.
fn records_fit(table: &LockTable, session: SessionId, requests: &Requests) -> bool {
    let fits = |name: &Name, revision: Revision, end: Option<RequestEnd>| {
        (table.place_of(name, session) == Some(revision)) == end.is_none()
    };
    let rare = requests.rare.get();
    rare.ended_texts.len() <= MAX_ENDED_TEXTS
        && requests.results.values().all(|record| fits(&record.name, record.revision, record.end))
        && rare.texts.iter().all(|(name, record)| fits(name, record.revision, record.end))
}

/// Whether every key that a request created is found by that request, unless the client has forgotten its number.
fn places_are_recorded(table: &LockTable, session: SessionId, requests: &Requests) -> bool {
    table.index.keys_of(session).all(|key| {
        let Some(record) = table.state.keys.get(key) else { return false };
        let Some(place) = &record.place else { return true };
        match &place.request {
            None => true,
            Some(RequestId::Sequence { sequence, .. }) => {
                *sequence <= requests.floor
                    || requests.results.get(sequence).is_some_and(|found| found.revision == record.create)
            }
            Some(RequestId::Text(text)) => requests
                .rare
                .get()
                .texts
                .get(&place.name)
                .is_some_and(|found| found.text == *text && found.revision == record.create),
        }
    })
}

pub(super) fn pending(table: &LockTable) -> Result<(), Violation> {
    for (session, pending) in &table.state.pending {
        let role = table.state.sessions.get(session).map(|known| &known.role);
        let lives = matches!(role, Some(Role::Home { .. }));
        if lives || pending.to_tell.is_empty() || pending.to_tell.contains(&table.state.group) {
            return Err(Violation::PendingEnd { session: *session });
        }
    }
    Ok(())
}

pub(super) fn tombstones(table: &LockTable) -> Result<(), Violation> {
    for (session, epoch) in &table.state.tombstones {
        if table.state.sessions.get(session).is_some_and(|known| known.epoch == *epoch) {
            return Err(Violation::Tombstone { session: *session, epoch: *epoch });
        }
    }
    Ok(())
}

/// Sessions without a lease have no keys, so that records that agree with them have all ended.
pub(super) fn absent(table: &LockTable) -> Result<(), Violation> {
    for (session, absent) in &table.state.absent {
        let session = *session;
        let elsewhere = !table.state.sessions.contains_key(&session)
            && !table.state.pending.contains_key(&session)
            && !table.state.tombstones.contains(&(session, absent.epoch));
        let requests = &absent.requests;
        let bounded = floor_fits(requests) && requests.rare.get().ended_holds.len() <= MAX_ENDED_HOLDS;
        if !elsewhere || !bounded || !records_fit(table, session, requests) {
            return Err(Violation::Absent { session });
        }
    }
    Ok(())
}
