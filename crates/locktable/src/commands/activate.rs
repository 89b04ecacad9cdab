//! `Activate`: the meta group has decided, and this group owns what it has imported, with all holders and waiters in place.
//!
//! The revision jumps above the source's first, so that tokens go on growing (P2). Sessions that have ended meanwhile lose
//! what came with them in the same entry; the next in line is granted then and nobody before.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use bytes::Bytes;

use crate::{
    command::{Activate, SessionEndReason},
    event::{Fact, Removal},
    ids::{SessionEpoch, SessionId},
    moved::{MovedLease, MovedSession},
    mutant,
    outcome::{Outcome, Rejection},
    table::{Absent, Arriving, Changes, Incoming, Key, LockTable, Requests, Role, Session},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    activate: &Activate,
) -> Result<Outcome, Rejection> {
    let moves = &table.state.moves;
    moves.check_number(activate.move_number)?;
    if moves.activated == activate.move_number {
        return Ok(Outcome::Activated { revision: table.state.revision });
    }
    let incoming = moves.incoming.as_ref().filter(|incoming| incoming.move_number == activate.move_number);
    let sealed_at = incoming
        .filter(|incoming| incoming.digest == activate.digest)
        .and_then(|incoming| incoming.complete)
        .ok_or(Rejection::NotPrepared)?;
    let raised = table.state.revision.max(sealed_at);
    let revision = if mutant!("token-not-raised-by-a-move") { table.state.revision } else { raised };
    let write = revision.next().ok_or(Rejection::CounterFull)?;
    let Some(incoming) = table.state.moves.incoming.take() else { return Err(Rejection::NotPrepared) };

    table.state.revision = revision;
    table.state.moves.activated = activate.move_number;
    table.state.moves.arrived(&incoming.range, write, table.state.history.oldest());
    table.state.ownership.replace(activate.map_epoch, &activate.ranges);
    changes.write_at(write);
    settle_in(table, changes, *incoming);
    Ok(Outcome::Activated { revision })
}

/// Puts sessions and keys in place, then takes away what hung on sessions that have ended.
fn settle_in(table: &mut LockTable, changes: &mut Changes, incoming: Incoming) {
    let mut ended = BTreeMap::new();
    for (session, arriving) in incoming.sessions {
        if let Some(reason) = arrive(table, changes, session, arriving) {
            ended.insert(session, reason);
        }
    }
    let reason = |record: &Key| record.lease.and_then(|session| ended.get(&session).copied());
    let free = incoming.keys.iter().filter_map(|(key, record)| Some((key.clone(), reason(record)?)));
    let free: Vec<(Bytes, SessionEndReason)> = if ended.is_empty() { Vec::new() } else { free.collect() };
    table.install(changes, incoming.keys);
    for (key, reason) in free {
        table.delete(changes, &key, Removal::SessionEnded(reason));
    }
    table.install_claims(&ended.keys().copied().collect(), changes);
}

/// Takes a session in. Answers why it has ended, where its keys are to be free at once.
fn arrive(
    table: &mut LockTable,
    changes: &mut Changes,
    session: SessionId,
    arriving: Arriving,
) -> Option<SessionEndReason> {
    let MovedSession { epoch, lease, requests, .. } = arriving.moved;
    let here = table.state.sessions.get_mut(&session);
    match here {
        Some(known) if known.epoch == epoch => {
            known.requests.take_in(requests);
            if let Some(lease) = lease {
                extend(known, changes, session, &lease);
            }
            None
        }
        // A later life: the earlier one has ended everywhere else.
        Some(_) => lease.map(|_| SessionEndReason::Expired),
        None => {
            let ended = arriving.ended.or_else(|| ended_at_home(table, session, epoch));
            match (lease, ended) {
                (None, ended) => {
                    remember(table, session, epoch, requests, ended.is_some());
                    None
                }
                (Some(_), Some(reason @ (SessionEndReason::Closed | SessionEndReason::Forced))) => {
                    Some(reason)
                }
                (Some(lease), None | Some(SessionEndReason::Expired)) => {
                    open(table, changes, (session, epoch), lease, requests, ended.is_some());
                    None
                }
            }
        }
    }
}

/// The session is known here too: the later of both deadlines counts (rule R17).
fn extend(known: &mut Session, changes: &mut Changes, session: SessionId, lease: &MovedLease) {
    let left_ms = lease.left_ms.min(known.ttl_ms);
    known.marked_ms = known.marked_ms.map(|marked| marked.max(left_ms));
    changes.fact(Fact::SessionArrived {
        session,
        epoch: known.epoch,
        ttl_ms: known.ttl_ms,
        left_ms,
        renewal_stopped: known.renewal_stopped,
    });
}

/// Where this group is the session's home, and has ended it.
fn ended_at_home(table: &LockTable, session: SessionId, epoch: SessionEpoch) -> Option<SessionEndReason> {
    table.state.pending.get(&session).filter(|pending| pending.epoch == epoch).map(|pending| pending.reason)
}

/// What a session without keys in the range has asked for, until its home tells of its end.
fn remember(table: &mut LockTable, session: SessionId, epoch: SessionEpoch, requests: Requests, ended: bool) {
    if ended || table.state.tombstones.contains(&(session, epoch)) {
        return;
    }
    let absent =
        table.state.absent.entry(session).or_insert_with(|| Absent { epoch, requests: Requests::default() });
    if absent.epoch == epoch {
        absent.requests.take_in(requests);
    }
}

/// A session that is new here, with as much time as it had. One whose home has expired it is renewed no more, and frees what
/// it holds at its own deadline (rule R5).
fn open(
    table: &mut LockTable,
    changes: &mut Changes,
    (session, epoch): (SessionId, SessionEpoch),
    lease: MovedLease,
    requests: Requests,
    expired: bool,
) {
    if mutant!("session-lost-by-a-move") {
        return;
    }
    let told = table.state.tombstones.remove(&(session, epoch));
    let ours = lease.home == table.state.group;
    let (ttl_ms, left_ms) = (lease.ttl_ms, lease.left_ms.min(lease.ttl_ms));
    let role = Role::Attached { home: lease.home };
    let mut record = Session::new(epoch, ttl_ms, lease.metadata, role, changes.at_ms);
    record.renewal_stopped = lease.renewal_stopped || expired || told || ours;
    record.marked_ms = Some(left_ms);
    if let Some(absent) = table.state.absent.remove(&session).filter(|absent| absent.epoch == epoch) {
        record.requests = absent.requests;
    }
    record.requests.take_in(requests);
    let renewal_stopped = record.renewal_stopped;
    table.state.sessions.insert(session, Box::new(record));
    changes.fact(Fact::SessionArrived { session, epoch, ttl_ms, left_ms, renewal_stopped });
}
