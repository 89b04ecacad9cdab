//! Reading a sealed range in parts, for another group.
//!
//! Nothing in the range changes while it is sealed, so that parts that are read one after the other fit together. Of
//! sessions the destination learns what they have left, and what must not be executed again.

use alloc::boxed::Box;
use core::ops::Bound;

use bytes::Bytes;
use holdfast_partitioner::Range;

use super::{LockTable, Role, Session, moves::Sealed};
use crate::{
    codec,
    ids::{MoveNumber, SessionId},
    moved::{Cursor, Export, Moved, MovedClaim, MovedKey, MovedLease, MovedMember, MovedSession},
    outcome::Rejection,
    route,
};

impl LockTable {
    /// The next part of what the sealed range of this move holds: pieces of at least `max_bytes` together, and no more
    /// than needed for that. `None` where the range is not sealed under this number.
    pub fn export(&self, move_number: MoveNumber, after: &Cursor, max_bytes: usize) -> Option<Export> {
        let sealed = self.state.moves.sealed.as_ref().filter(|sealed| sealed.move_number == move_number)?;
        let mut part = Export { moved: alloc::vec::Vec::new(), after: after.clone(), last: None };
        let mut room = max_bytes;
        let sessions =
            self.sessions_of(sealed, after).map(|(session, moved)| (Cursor::Session(session), moved));
        let keys = self.keys_to_move(&sealed.range, after).map(|(key, moved)| (Cursor::Key(key), moved));
        for (cursor, piece) in sessions.chain(keys).chain(self.claims_to_move(&sealed.range, after)) {
            if room == 0 {
                return Some(part);
            }
            room = room.saturating_sub(codec::body(&piece).len().max(1));
            part.after = cursor;
            part.moved.push(piece);
        }
        part.last = Some(sealed.revision);
        Some(part)
    }

    fn sessions_of<'t>(
        &'t self,
        sealed: &'t Sealed,
        after: &Cursor,
    ) -> impl Iterator<Item = (SessionId, Moved)> + 't {
        let from = match after {
            Cursor::Start => Some(Bound::Unbounded),
            Cursor::Session(session) => Some(Bound::Excluded(*session)),
            Cursor::Key(_) | Cursor::Claim(..) => None,
        };
        let all = from.map(|from| self.state.sessions.range((from, Bound::Unbounded)));
        let absent = from.map(|from| self.state.absent.range((from, Bound::Unbounded)));
        let known = all
            .into_iter()
            .flatten()
            .filter_map(|(session, known)| Some((*session, self.moved_session(sealed, *session, known)?)));
        let absent = absent.into_iter().flatten().filter_map(|(session, absent)| {
            let requests = absent.requests.within(&sealed.range)?;
            Some((*session, MovedSession { session: *session, epoch: absent.epoch, lease: None, requests }))
        });
        merged(known, absent).map(|(session, moved)| (session, Moved::Session(Box::new(moved))))
    }

    fn moved_session(&self, sealed: &Sealed, session: SessionId, known: &Session) -> Option<MovedSession> {
        let lease =
            self.has_keys_in(&sealed.range, session).then(|| self.moved_lease(sealed, session, known));
        let requests = known.requests.within(&sealed.range);
        if lease.is_none() && requests.is_none() {
            return None;
        }
        let requests = requests.unwrap_or_default();
        Some(MovedSession { session, epoch: known.epoch, lease, requests })
    }

    fn moved_lease(&self, sealed: &Sealed, session: SessionId, known: &Session) -> MovedLease {
        let told =
            sealed.left.get(&session).filter(|(epoch, _)| *epoch == known.epoch).map(|(_, left)| *left);
        let home = match &known.role {
            Role::Home { .. } => self.state.group,
            Role::Attached { home } => *home,
        };
        MovedLease {
            home,
            ttl_ms: known.ttl_ms,
            left_ms: told.or(known.marked_ms).unwrap_or(known.ttl_ms).min(known.ttl_ms),
            renewal_stopped: known.renewal_stopped,
            metadata: known.metadata.clone(),
        }
    }

    /// Whether keys that hang on the session, or claims that it takes part in, belong to the range.
    pub(crate) fn has_keys_in(&self, range: &Range, session: SessionId) -> bool {
        self.index.keys_of(session).any(|key| range.contains(&route::of_key(key)))
            || self.joined.claims_of(session).any(|claim| range.contains(claim.internal()))
    }

    fn keys_to_move<'t>(
        &'t self,
        range: &'t Range,
        after: &Cursor,
    ) -> impl Iterator<Item = (Bytes, Moved)> + 't {
        let from = match after {
            Cursor::Start | Cursor::Session(_) => Some(Bound::Unbounded),
            Cursor::Key(key) => Some(Bound::Excluded(key.clone())),
            Cursor::Claim(..) => None,
        };
        let keys = from.into_iter().flat_map(|from| self.state.keys.range((from, Bound::Unbounded)));
        keys.filter(|(key, _)| range.contains(&route::of_key(key))).map(|(key, record)| {
            (key.clone(), Moved::Key(MovedKey { key: key.clone(), record: record.clone() }))
        })
    }

    /// The claims of the range, each followed by its members.
    fn claims_to_move<'t>(
        &'t self,
        range: &'t Range,
        after: &Cursor,
    ) -> impl Iterator<Item = (Cursor, Moved)> + 't {
        let (first, member) = match after {
            Cursor::Start | Cursor::Session(_) | Cursor::Key(_) => (None, None),
            Cursor::Claim(name, member) => (Some(name.clone()), *member),
        };
        let from = first.clone().map_or(Bound::Unbounded, Bound::Included);
        let claims = self.state.claims.live.range((from, Bound::Unbounded));
        claims.filter(|(name, _)| range.contains(name.internal())).flat_map(move |(name, claim)| {
            let begun = first.as_ref() == Some(name);
            let after = member.filter(|_| begun).map_or(Bound::Unbounded, Bound::Excluded);
            let itself = (!begun).then(|| {
                let moved = MovedClaim { name: name.clone(), owners: claim.owners.clone() };
                (Cursor::Claim(name.clone(), None), Moved::Claim(Box::new(moved)))
            });
            let members = claim.members.range((after, Bound::Unbounded)).map(move |(session, member)| {
                let moved = MovedMember { claim: name.clone(), session: *session, member: member.clone() };
                (Cursor::Claim(name.clone(), Some(*session)), Moved::Member(Box::new(moved)))
            });
            itself.into_iter().chain(members)
        })
    }

    /// Refuses the end of a session that has keys or claims in a sealed range: they would neither go nor stay (rule R16). Whoever wants
    /// it ends it again, within a moment.
    pub(crate) fn check_unsealed(&self, session: SessionId) -> Result<(), Rejection> {
        match &self.state.moves.sealed {
            Some(sealed) if self.has_keys_in(&sealed.range, session) => {
                Err(Rejection::Sealed { move_number: sealed.move_number })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The sessions with keys or claims of a range, with their epochs: whose remaining times `Seal` must tell.
    pub fn sessions_in(&self, range: &Range) -> impl Iterator<Item = (SessionId, crate::ids::SessionEpoch)> {
        let known = self.state.sessions.iter();
        known
            .filter(|(session, _)| self.has_keys_in(range, **session))
            .map(|(session, known)| (*session, known.epoch))
    }

    /// The range that is sealed here, and for which move.
    pub fn sealed(&self) -> Option<(MoveNumber, &Range)> {
        self.state.moves.sealed.as_ref().map(|sealed| (sealed.move_number, &sealed.range))
    }

    /// The highest move that this group has taken part in; a move of that number that is not under way is over here.
    pub fn highest_move(&self) -> MoveNumber {
        self.state.moves.highest
    }
}

/// Two runs in order of sessions, with nobody in both, as one.
fn merged<T>(
    one: impl Iterator<Item = (SessionId, T)>,
    other: impl Iterator<Item = (SessionId, T)>,
) -> impl Iterator<Item = (SessionId, T)> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    core::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some((first, _)), Some((second, _))) if second < first => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}
