//! No acknowledged grant is lost while its client counts on it.
//!
//! The token of a grant is the revision at which its key came into the queue. So every table that has come that far has
//! the key, with nobody behind it as the holder; and once one table shows the client as the holder, so does every other
//! that has come as far.
//!
//! Of a lock whose range moves only those tables say anything that have the range by the newest map that any table ever had it
//! by: others have given it away, or do not have it yet, or had it long ago. A member that restarts reads its log once more, and
//! may be alone for a while.
//!
//! Clients say what they count on; a hold is struck off before its release is sent, and ends at the client's own deadline.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::{
    ids::{SessionId, Token},
    name::Name,
    table::LockTable,
};
use holdfast_partitioner::{GroupId, MapEpoch};
use parking_lot::Mutex;

use super::Findings;
use crate::cluster::Cluster;

/// A lock that a client counts on.
#[derive(Clone, Debug)]
pub struct Counted {
    /// With which session.
    pub session: SessionId,
    /// The fencing token.
    pub token: Token,
    /// The group that granted it, or has it by now, as far as the client knows.
    pub group: GroupId,
    /// Until when.
    pub deadline_ms: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    counted: Counted,
    /// The group whose tables showed it last, and the lowest index at which one did.
    shown_at: Option<(GroupId, u64)>,
}

/// What all clients count on. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Mutex<Books>>);

#[derive(Debug, Default)]
struct Books {
    entries: BTreeMap<(u32, Name), Entry>,
    /// By which map each lock was last seen to have an owner.
    newest: BTreeMap<Name, MapEpoch>,
}

impl Counts {
    /// A client counts on a lock from now on, or for longer than before.
    pub fn count(&self, client: u32, lock: &Name, counted: Counted) {
        let entries = &mut self.0.lock().entries;
        match entries.get_mut(&(client, lock.clone())) {
            Some(entry) if entry.counted.token == counted.token => entry.counted = counted,
            Some(_) | None => {
                entries.insert((client, lock.clone()), Entry { counted, shown_at: None });
            }
        }
    }

    /// A client counts on a lock no more.
    pub fn strike(&self, client: u32, lock: &Name) {
        self.0.lock().entries.remove(&(client, lock.clone()));
    }

    /// Looks whether every table agrees with what clients count on.
    pub fn look(&self, now: u64, cluster: &Cluster, findings: &Findings) {
        let mut books = self.0.lock();
        let Books { entries, newest } = &mut *books;
        entries.retain(|_, entry| entry.counted.deadline_ms > now);
        cluster.each_table(|_, _, table, _| {
            for (_, lock) in entries.keys().filter(|(_, lock)| table.holds_range_of(lock)) {
                let epoch = newest.entry(lock.clone()).or_insert(MapEpoch::NONE);
                *epoch = table.ownership_epoch().max(*epoch);
            }
        });
        cluster.each_table(|group, member, table, at| {
            let epoch = table.ownership_epoch();
            let owns = |lock: &Name| table.holds_range_of(lock) && newest.get(lock) == Some(&epoch);
            for ((client, lock), entry) in entries.iter_mut().filter(|((_, lock), _)| owns(lock)) {
                let Err(wrong) = agree(table, (group, at.index), lock, entry) else { continue };
                let Counted { session, token, deadline_ms, .. } = entry.counted;
                let sentence = format!(
                    "client {client} counts on {:?} with token {} of session {session} until {deadline_ms} ms, and in \
                     the table of group {group} on member {member} at index {} {wrong}",
                    lock.text(),
                    token.0,
                    at.index
                );
                findings.add("grants", now, sentence);
            }
        });
    }
}

/// Whether a table agrees with a hold; otherwise what it shows instead.
fn agree(
    table: &LockTable,
    (group, index): (GroupId, u64),
    lock: &Name,
    entry: &mut Entry,
) -> Result<(), String> {
    let (session, token) = (entry.counted.session, entry.counted.token);
    if table.revision() < token {
        return Ok(());
    }
    // What another group's tables showed says nothing of this one's.
    let shown_at = entry.shown_at.filter(|(shown, _)| *shown == group).map(|(_, index)| index);
    let holder = table.holder(lock).map(|(session, token, _)| (session, token));
    if holder == Some((session, token)) {
        entry.shown_at = Some((group, shown_at.map_or(index, |shown| shown.min(index))));
        return Ok(());
    }
    if shown_at.is_some_and(|shown| shown <= index) || holder.is_none_or(|(_, held)| held > token) {
        return Err(format!("the holder is {holder:?}"));
    }
    let queue = table.queue(lock).map(|queue| queue.entries).unwrap_or_default();
    if queue.iter().any(|place| place.session == session && place.revision == token) {
        return Ok(());
    }
    Err("it is not in the queue".to_owned())
}
