//! How keys change: the events and facts of one entry, and the grant that follows from a queue with a new head.
//!
//! Commands check first and write afterwards; from the first write on nothing can fail. Grants are decided once, after
//! all writes of the entry, so that nobody is granted what the same entry takes away.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use bytes::Bytes;
use holdfast_partitioner::Range;

use super::{Key, LockTable, Place, Position, index::merge};
use crate::{
    command::Wait,
    event::{Change, Event, Fact, Removal, WaitEnd},
    ids::{Revision, SessionId, Token},
    metadata::Metadata,
    mutant,
    name::Name,
    outcome::RequestEnd,
    route,
};

/// What one entry does.
pub(crate) struct Changes {
    pub(crate) at: Position,
    pub(crate) at_ms: u64,
    /// Revision of this entry's changes.
    revision: Revision,
    events: Vec<Event>,
    facts: Vec<Fact>,
    /// Queues that changed, with their holder before the entry.
    touched: BTreeMap<Name, Option<(SessionId, Token)>>,
    /// Keys of queues that the entry created.
    created: Vec<(Name, SessionId)>,
    /// Claims that changed, each with the sessions whose view of it did.
    claims: BTreeMap<Name, BTreeSet<SessionId>>,
    /// Whether any claim changed.
    claimed: bool,
}

impl Changes {
    pub(crate) fn new(at: Position, at_ms: u64, revision: Revision) -> Self {
        Self {
            at,
            at_ms,
            revision,
            events: Vec::new(),
            facts: Vec::new(),
            touched: BTreeMap::new(),
            created: Vec::new(),
            claims: BTreeMap::new(),
            claimed: false,
        }
    }

    /// All changes of keys from here on are at this revision.
    pub(crate) fn write_at(&mut self, revision: Revision) {
        self.revision = revision;
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn fact(&mut self, fact: Fact) {
        self.facts.push(fact);
    }

    /// A claim changed, for this session at least.
    pub(crate) fn claim(&mut self, name: &Name, session: SessionId) {
        self.claims.entry(name.clone()).or_default().insert(session);
        self.claimed = true;
    }

    /// The claims that are still to be settled.
    pub(super) fn take_claims(&mut self) -> BTreeMap<Name, BTreeSet<SessionId>> {
        core::mem::take(&mut self.claims)
    }

    pub(crate) fn into_parts(self) -> (Vec<Event>, Vec<Fact>) {
        (self.events, self.facts)
    }

    fn event(&mut self, change: Change) {
        self.events.push(Event { revision: self.revision, at_ms: self.at_ms, change });
    }
}

impl LockTable {
    /// Creates a key in a queue, at its end. An ordinary key in its way goes first.
    pub(crate) fn enqueue(&mut self, changes: &mut Changes, session: SessionId, value: Bytes, place: Place) {
        let key = Bytes::from(place.name.key(session));
        if self.state.keys.contains_key(&key) {
            self.delete(changes, &key, Removal::Deleted);
        }
        self.create(changes, key, value, Some(session), Some(place));
    }

    /// Puts a key as a transaction does: an existing one keeps its place, a new one shaped `NAME/<its lease>` gets one.
    pub(crate) fn put(&mut self, changes: &mut Changes, key: Bytes, value: Bytes, lease: Option<SessionId>) {
        if self.state.keys.contains_key(&key) {
            self.replace(changes, &key, value, lease);
            return;
        }
        let place = queue_for(&key, lease).map(|name| Place {
            name,
            request: None,
            wait: Wait::Unlimited,
            queued_at_ms: changes.at_ms,
            granted_at_ms: None,
            metadata: Metadata::default(),
        });
        self.create(changes, key, value, lease, place);
    }

    fn create(
        &mut self,
        changes: &mut Changes,
        key: Bytes,
        value: Bytes,
        lease: Option<SessionId>,
        place: Option<Place>,
    ) {
        let revision = changes.revision;
        let name = place.as_ref().map(|place| place.name.clone());
        if let Some(name) = &name {
            self.touch(changes, name);
            changes.created.extend(lease.map(|session| (name.clone(), session)));
        }
        let record =
            Key { create: revision, modified: revision, version: 1, value: value.clone(), lease, place };
        self.index.add(&key, &record);
        self.state.keys.insert(key.clone(), Box::new(record));
        changes.event(Change::Put { key, name, lease, create_revision: revision, version: 1, value });
    }

    /// Puts the keys of an import in place. Nobody is told of it, nothing happened to them; but who waits, waits here now.
    pub(crate) fn install(&mut self, changes: &mut Changes, keys: BTreeMap<Bytes, Box<Key>>) {
        for record in keys.values() {
            let waits = record.place.as_ref().filter(|place| place.granted_at_ms.is_none());
            changes
                .created
                .extend(waits.zip(record.lease).map(|(place, session)| (place.name.clone(), session)));
        }
        self.index.append(core::mem::take(&mut self.arriving));
        merge(&mut self.state.keys, keys);
    }

    /// Takes the keys of a range away that another group has. Nobody is told of it.
    pub(crate) fn take_away(&mut self, range: &Range) {
        let gone = self.state.keys.extract_if(.., |key, _| range.contains(&route::of_key(key)));
        let gone: Vec<(Bytes, Box<Key>)> = gone.collect();
        self.index.remove_range(range, &gone);
    }

    /// Replaces the value of an existing key, and the lease of one that stands in no queue.
    pub(crate) fn replace(
        &mut self,
        changes: &mut Changes,
        key: &Bytes,
        value: Bytes,
        lease: Option<SessionId>,
    ) {
        let Some(record) = self.state.keys.get_mut(key) else { return };
        if record.place.is_none() && record.lease != lease {
            self.index.remove(key, record);
            record.lease = lease;
            self.index.add(key, record);
        }
        record.modified = changes.revision;
        record.version += 1;
        record.value = value.clone();
        let change = Change::Put {
            key: key.clone(),
            name: record.place.as_ref().map(|place| place.name.clone()),
            lease: record.lease,
            create_revision: record.create,
            version: record.version,
            value,
        };
        changes.event(change);
    }

    /// Deletes a key and says what that ends: a hold, a wait, or nothing.
    pub(crate) fn delete(
        &mut self,
        changes: &mut Changes,
        key: &[u8],
        reason: Removal,
    ) -> Option<(Bytes, Box<Key>)> {
        let (key, record) = self.state.keys.remove_entry(key)?;
        let mut held = false;
        if let (Some(place), Some(session)) = (&record.place, record.lease) {
            self.touch(changes, &place.name);
            held = changes.touched.get(&place.name) == Some(&Some((session, record.create)));
            self.end_request(changes, session, place, record.create, reason, held);
        }
        self.index.remove(&key, &record);
        changes.event(Change::Delete {
            key: key.clone(),
            name: record.place.as_ref().map(|place| place.name.clone()),
            lease: record.lease,
            create_revision: record.create,
            held,
            reason,
        });
        Some((key, record))
    }

    /// Ends the record of the request that created a key, and tells its waiter or notes its hold.
    fn end_request(
        &mut self,
        changes: &mut Changes,
        session: SessionId,
        place: &Place,
        revision: Revision,
        reason: Removal,
        held: bool,
    ) {
        if let (Some(request), Some(known)) = (&place.request, self.state.sessions.get_mut(&session)) {
            known.requests.ended(&place.name, request, revision, request_end(reason));
        }
        let name = place.name.clone();
        changes.fact(if held {
            let granted_at_ms = place.granted_at_ms.unwrap_or(place.queued_at_ms);
            Fact::HoldEnded { name, session, token: revision, reason, granted_at_ms }
        } else {
            Fact::WaitEnded { name, session, request: place.request.clone(), end: WaitEnd::Removed(reason) }
        });
    }

    /// Remembers who held a queue before the entry's first change of it.
    fn touch(&self, changes: &mut Changes, name: &Name) {
        if !changes.touched.contains_key(name) {
            let holder = self.index.head(name).map(|slot| (slot.session, slot.revision));
            changes.touched.insert(name.clone(), holder);
        }
    }

    /// Grants every queue that has a new head, tells of new waits, and closes the entry.
    pub(super) fn settle(&mut self, changes: &mut Changes) {
        for (name, before) in core::mem::take(&mut changes.touched) {
            self.grant_head(changes, name, before);
        }
        for (name, session) in core::mem::take(&mut changes.created) {
            let waits = self.index.head(&name).is_some_and(|head| head.session != session);
            let Some(place) = self.place(&name, session).filter(|_| waits) else { continue };
            let (request, wait) = (place.request.clone(), place.wait);
            changes.facts.push(Fact::Waiting { name, session, request, wait });
        }
        self.settle_claims(changes);
        if !changes.events.is_empty() || changes.claimed {
            self.state.revision = changes.revision;
            self.state.history.push(&changes.events);
        }
    }

    fn grant_head(&mut self, changes: &mut Changes, name: Name, before: Option<(SessionId, Token)>) {
        let Some(head) = self.index.head(&name) else { return };
        let (session, token) = (head.session, head.revision);
        if before == Some((session, token)) {
            return;
        }
        let Some(place) = self.state.keys.get_mut(&name.key(session)[..]).and_then(|key| key.place.as_mut())
        else {
            return;
        };
        place.granted_at_ms = Some(changes.at_ms);
        if token < changes.revision {
            let request = place.request.clone();
            let end = WaitEnd::Granted { token };
            changes.facts.push(Fact::WaitEnded { name: name.clone(), session, request, end });
        }
        if mutant!("two-waiters-woken") {
            self.wake_second(changes, &name);
        }
        changes.event(Change::Grant { name, session, token });
    }

    /// The fault `two-waiters-woken`: the first one behind the new holder is told that it is granted, too.
    fn wake_second(&self, changes: &mut Changes, name: &Name) {
        let Some(second) = self.index.queue(name).and_then(|queue| queue.iter().nth(1)) else { return };
        let place = self.place(name, second.session);
        changes.facts.push(Fact::WaitEnded {
            name: name.clone(),
            session: second.session,
            request: place.and_then(|place| place.request.clone()),
            end: WaitEnd::Granted { token: second.revision },
        });
    }
}

/// The queue that a key with this lease stands in, if any.
pub(crate) fn queue_for(key: &[u8], lease: Option<SessionId>) -> Option<Name> {
    let lease = lease?;
    Name::of_key(key).filter(|(_, session)| *session == lease).map(|(name, _)| name)
}

/// How the request that created a key ended, when the key goes for this reason.
fn request_end(reason: Removal) -> RequestEnd {
    match reason {
        Removal::Released => RequestEnd::Released,
        Removal::TimedOut => RequestEnd::TimedOut,
        Removal::Cancelled | Removal::Abandoned => RequestEnd::Cancelled,
        Removal::SessionEnded(_) => RequestEnd::SessionEnded,
        Removal::ForceReleased | Removal::Deleted => RequestEnd::Removed,
    }
}
