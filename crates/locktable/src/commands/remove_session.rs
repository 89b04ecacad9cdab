//! The end of a session in this group, whatever ended it: its keys and its parts in claims go, and its home keeps in mind
//! whom to tell.

use alloc::{collections::BTreeSet, vec::Vec};

use bytes::Bytes;
use holdfast_partitioner::GroupId;

use crate::{
    command::SessionEndReason,
    event::{Fact, Removal},
    ids::{SessionEpoch, SessionId},
    mutant,
    outcome::Rejection,
    table::{Absent, Changes, LockTable, Pending, Role},
};

/// Reserves the revision at which the keys of these sessions and their parts in claims go, if they have any.
pub(super) fn reserve(
    table: &LockTable,
    changes: &mut Changes,
    mut sessions: impl Iterator<Item = SessionId>,
) -> Result<(), Rejection> {
    let has = |session| {
        table.index.keys_of(session).next().is_some() || table.joined.claims_of(session).next().is_some()
    };
    if sessions.any(has) {
        changes.write_at(table.next_revision()?);
    }
    Ok(())
}

/// Removes a session with its keys and its parts in claims; the revision is reserved. Answers which groups are to be told.
pub(super) fn remove(
    table: &mut LockTable,
    changes: &mut Changes,
    session: SessionId,
    reason: SessionEndReason,
) -> BTreeSet<GroupId> {
    let Some(epoch) = table.session_epoch(session) else { return BTreeSet::new() };
    changes.fact(Fact::SessionEnded { session, epoch, reason });
    // Before the session itself goes: its requests end with their keys.
    let keys: Vec<Bytes> = table.index.keys_of(session).cloned().collect();
    for key in &keys {
        table.delete(changes, key, Removal::SessionEnded(reason));
    }
    for claim in table.claims_of(session) {
        table.leave(changes, &claim, session);
    }
    let Some(known) = table.state.sessions.remove(&session) else { return BTreeSet::new() };
    let to_tell = match known.role {
        Role::Home { attached } => attached,
        Role::Attached { .. } => {
            if lapses(reason, known.renewal_stopped) {
                table.state.absent.insert(session, Absent { epoch, requests: known.requests });
            }
            BTreeSet::new()
        }
    };
    for group in &to_tell {
        changes.fact(Fact::EndToTell { session, epoch, reason, group: *group });
    }
    if !to_tell.is_empty() {
        table.state.pending.insert(session, Pending { epoch, reason, to_tell: to_tell.clone() });
    }
    to_tell
}

/// Whether a session that goes from an attached group may live on at its home, and come again: then what it has asked for is
/// remembered (rule R11).
fn lapses(reason: SessionEndReason, home_has_told: bool) -> bool {
    match reason {
        SessionEndReason::Expired => !home_has_told && !mutant!("lapsed-requests-forgotten"),
        SessionEndReason::Closed | SessionEndReason::Forced => false,
    }
}

/// Leaves a tombstone that refuses this life of a session. Nothing else of it need be remembered.
pub(super) fn bury(table: &mut LockTable, changes: &mut Changes, session: SessionId, epoch: SessionEpoch) {
    if table.state.absent.get(&session).is_some_and(|absent| absent.epoch == epoch) {
        table.state.absent.remove(&session);
    }
    if table.state.tombstones.insert((session, epoch)) {
        changes.fact(Fact::EndRemembered { session, epoch });
    }
}
