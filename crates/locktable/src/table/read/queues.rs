//! Queues: who holds, who waits.

use alloc::vec::Vec;
use core::ops::Bound;

use super::super::{LockTable, Place, Slot};
use crate::{
    command::{RequestId, Wait},
    ids::{Revision, SessionId, Token},
    name::{ELECTION_MARK, Name, NameKind},
    view::{EntryView, QueueView},
};

/// Below every lock's name and above every election's internal name.
const FIRST_LOCK: &str = "\u{2}";

/// One entry that waits, for a new leader's timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitView {
    /// The queue.
    pub name: Name,
    /// Who waits.
    pub session: SessionId,
    /// Under which request; `None` for keys that a client put there itself.
    pub request: Option<RequestId>,
    /// How long it was ready to wait when it began.
    pub wait: Wait,
    /// Create revision of its key.
    pub revision: Revision,
}

impl LockTable {
    /// One queue; `None` where nobody holds and nobody waits.
    pub fn queue(&self, name: &Name) -> Option<QueueView> {
        let slots = self.index.queue(name)?;
        let entries = slots.iter().filter_map(|slot| self.entry(name, slot)).collect();
        Some(QueueView { name: name.clone(), entries })
    }

    /// The holder, its token, and how many wait behind it.
    pub fn holder(&self, name: &Name) -> Option<(SessionId, Token, u32)> {
        let queue = self.index.queue(name)?;
        let head = queue.head()?;
        Some((head.session, head.revision, u32::try_from(queue.len() - 1).unwrap_or(u32::MAX)))
    }

    /// Queues of one kind whose name as users wrote it begins with `prefix`, in name order: at most `limit` of them
    /// behind `after`, and whether there are more.
    pub fn queues(
        &self,
        prefix: &str,
        kind: NameKind,
        after: Option<&Name>,
        limit: usize,
    ) -> (Vec<QueueView>, bool) {
        let (internal, first) = match kind {
            NameKind::Election => {
                let internal = alloc::format!("{ELECTION_MARK}{prefix}");
                (internal.clone(), internal)
            }
            NameKind::Lock => (prefix.into(), if prefix.is_empty() { FIRST_LOCK } else { prefix }.into()),
            // A claim is no queue.
            NameKind::Claim => return (Vec::new(), false),
        };
        let start = match after.map(Name::internal) {
            Some(after) if after >= first.as_str() => Bound::Excluded(after),
            Some(_) | None => Bound::Included(first.as_str()),
        };
        let range = self.index.queues().range::<str, _>((start, Bound::Unbounded));
        let mut found = range.take_while(|(name, _)| name.internal().starts_with(&internal));
        let page = found.by_ref().take(limit).filter_map(|(name, _)| self.queue(name)).collect();
        (page, found.next().is_some())
    }

    /// Queues in which somebody waits, in name order, and how many.
    pub fn contended(&self) -> impl Iterator<Item = (&Name, u64)> {
        let contended = self.index.queues().iter().filter(|(_, queue)| queue.len() > 1);
        contended.map(|(name, queue)| (name, queue.len() as u64 - 1))
    }

    /// All entries that wait, in name and queue order.
    pub fn waits(&self) -> impl Iterator<Item = WaitView> {
        self.index.queues().iter().flat_map(move |(name, slots)| {
            slots.iter().skip(1).filter_map(move |slot| {
                let place = self.place(name, slot.session)?;
                Some(WaitView {
                    name: name.clone(),
                    session: slot.session,
                    request: place.request.clone(),
                    wait: place.wait,
                    revision: slot.revision,
                })
            })
        })
    }

    /// Whether exactly this hold stands.
    pub(crate) fn holds(&self, name: &Name, session: SessionId, token: Token) -> bool {
        self.index.head(name).is_some_and(|head| head.session == session && head.revision == token)
    }

    /// Create revision of the session's key in the queue, where it holds or waits.
    pub fn place_of(&self, name: &Name, session: SessionId) -> Option<Revision> {
        let record = self.state.keys.get(name.key(session).as_slice())?;
        record.place.as_ref().map(|_| record.create)
    }

    /// The session's place in the queue, where it holds or waits.
    pub(crate) fn place(&self, name: &Name, session: SessionId) -> Option<&Place> {
        self.state.keys.get(name.key(session).as_slice())?.place.as_ref()
    }

    fn entry(&self, name: &Name, slot: &Slot) -> Option<EntryView> {
        let record = self.state.keys.get(name.key(slot.session).as_slice())?;
        let place = record.place.as_ref()?;
        Some(EntryView {
            session: slot.session,
            revision: slot.revision,
            request: place.request.clone(),
            wait: place.wait,
            queued_at_ms: place.queued_at_ms,
            granted_at_ms: place.granted_at_ms,
            metadata: place.metadata.clone(),
            value: record.value.clone(),
            mod_revision: record.modified,
        })
    }
}
