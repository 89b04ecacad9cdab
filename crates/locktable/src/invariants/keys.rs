//! Rules of keys and queues.

use alloc::string::{String, ToString};

use super::Violation;
use crate::table::{Key, LockTable, queue_for};

pub(super) fn all(table: &LockTable) -> Result<(), Violation> {
    for (key, record) in &table.state.keys {
        if record.lease.is_some_and(|lease| !table.state.sessions.contains_key(&lease)) {
            return Err(Violation::OrphanKey { key: text(key) });
        }
        if record.place.as_ref().map(|place| &place.name) != queue_for(key, record.lease).as_ref() {
            return Err(Violation::LockKeyShape { key: text(key) });
        }
        if let Some(place) = &record.place {
            let slot = table.index.queue(&place.name).and_then(|queue| queue.get(record.create));
            if slot.is_none_or(|slot| Some(slot.session) != record.lease) {
                return Err(Violation::QueueOrder { name: place.name.clone() });
            }
        }
        if !revisions_fit(table, record) {
            return Err(Violation::KeyRevisions { key: text(key) });
        }
    }
    Ok(())
}

fn revisions_fit(table: &LockTable, record: &Key) -> bool {
    let ordered = record.create <= record.modified && record.modified <= table.state.revision;
    // A key is created with version 1, and each further put is a later revision.
    let puts = record.modified.0.saturating_sub(record.create.0).saturating_add(1);
    ordered && record.create.0 > 0 && (1..=puts).contains(&record.version)
}

pub(super) fn queues(table: &LockTable) -> Result<(), Violation> {
    for (name, queue) in table.index.queues() {
        if !table.holds_range_of(name) {
            return Err(Violation::Ownership { name: name.clone() });
        }
        for (position, slot) in queue.iter().enumerate() {
            let place = table.place(name, slot.session);
            if place.is_none_or(|place| place.granted_at_ms.is_some() != (position == 0)) {
                return Err(Violation::OneHolder { name: name.clone(), session: slot.session });
            }
        }
    }
    Ok(())
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).to_string()
}
