//! The end of a session in this group, whatever ended it: its keys go, and its home keeps in mind whom to tell.

use alloc::{collections::BTreeSet, vec::Vec};

use bytes::Bytes;
use holdfast_partitioner::GroupId;

use crate::{
    command::SessionEndReason,
    event::{Fact, Removal},
    ids::{SessionEpoch, SessionId},
    outcome::Rejection,
    table::{Changes, LockTable, Pending, Role},
};

/// Reserves the revision at which the keys of these sessions go, if they have any.
pub(super) fn reserve(
    table: &LockTable,
    changes: &mut Changes,
    mut sessions: impl Iterator<Item = SessionId>,
) -> Result<(), Rejection> {
    if sessions.any(|session| table.index.keys_of(session).next().is_some()) {
        changes.write_at(table.next_revision()?);
    }
    Ok(())
}

/// Removes a session and its keys; the revision is reserved. Answers which groups are to be told.
pub(super) fn remove(
    table: &mut LockTable,
    changes: &mut Changes,
    session: SessionId,
    reason: SessionEndReason,
) -> BTreeSet<GroupId> {
    let Some(known) = table.state.sessions.remove(&session) else { return BTreeSet::new() };
    let epoch = known.epoch;
    changes.fact(Fact::SessionEnded { session, epoch, reason });
    let keys: Vec<Bytes> = table.index.keys_of(session).cloned().collect();
    for key in &keys {
        table.delete(changes, key, Removal::SessionEnded(reason));
    }
    let to_tell = match known.role {
        Role::Home { attached } => attached,
        Role::Attached { .. } => BTreeSet::new(),
    };
    for group in &to_tell {
        changes.fact(Fact::EndToTell { session, epoch, reason, group: *group });
    }
    if !to_tell.is_empty() {
        table.state.pending.insert(session, Pending { epoch, reason, to_tell: to_tell.clone() });
    }
    to_tell
}

/// Leaves a tombstone that refuses this life of a session.
pub(super) fn bury(table: &mut LockTable, changes: &mut Changes, session: SessionId, epoch: SessionEpoch) {
    if table.state.tombstones.insert((session, epoch)) {
        changes.fact(Fact::EndRemembered { session, epoch });
    }
}
