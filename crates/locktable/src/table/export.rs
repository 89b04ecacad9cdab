//! Reading a sealed range in parts, for another group.
//!
//! Nothing in the range changes while it is sealed, so that parts that are read one after the other fit together. Of
//! sessions the destination learns what they have left, and what must not be executed again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Bound;

use bytes::Bytes;
use holdfast_partitioner::{GroupId, Range, same_names};

use super::{LockTable, Role, Session, moves::Sealed};
use crate::{
    codec,
    command::LearnedEnd,
    ids::{MoveNumber, Revision, SessionEpoch, SessionId},
    moved::{Cursor, Export, Moved, MovedClaim, MovedKey, MovedLease, MovedMember, MovedSession},
    outcome::Rejection,
    route,
};

impl LockTable {
    /// The next part of what the sealed range of this move holds: pieces of at least `max_bytes` together, and no more
    /// than needed for that. `None` where the range is not sealed under this number.
    pub fn export(&self, move_number: MoveNumber, after: &Cursor, max_bytes: usize) -> Option<Export> {
        let sealed = self.state.moves.sealed.as_ref().filter(|sealed| sealed.move_number == move_number)?;
        let mut part = Export { moved: Vec::new(), after: after.clone(), last: None };
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

    /// Ends of sessions that have their home here and that a group has not acknowledged yet.
    pub fn owed_to(&self, group: GroupId) -> Vec<LearnedEnd> {
        let pending = self.state.pending.iter().filter(|(_, pending)| pending.to_tell.contains(&group));
        let owed = pending.map(|(session, pending)| LearnedEnd {
            session: *session,
            epoch: pending.epoch,
            reason: pending.reason,
        });
        owed.collect()
    }

    /// Who would go along with a range: so many sessions behind `after` are looked at. Answers those of them with something
    /// in the range, and the last one looked at where there may be more.
    pub fn sessions_of_range(
        &self,
        range: &Range,
        after: Option<SessionId>,
        look_at: usize,
    ) -> (Vec<Goer>, Option<SessionId>) {
        let from = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let known = self.state.sessions.range(from).map(|(session, known)| {
            let keys = self.has_keys_in(range, *session);
            let goes = keys || known.requests.within(range).is_some();
            (*session, goes.then_some(Goer { session: *session, epoch: known.epoch, keys }))
        });
        let absent = self.state.absent.range(from).map(|(session, absent)| {
            let goes = absent.requests.within(range).is_some();
            (*session, goes.then_some(Goer { session: *session, epoch: absent.epoch, keys: false }))
        });
        let (mut goers, mut looked, mut last) = (Vec::new(), 0, None);
        for (session, goer) in merged(known, absent).take(look_at) {
            (looked, last) = (looked + 1, Some(session));
            goers.extend(goer);
        }
        (goers, last.filter(|_| looked == look_at))
    }

    /// How many keys of a session in a range hold, and how many wait.
    pub fn count_in(&self, range: &Range, session: SessionId) -> (u64, u64) {
        let keys = self.index.keys_of(session).filter(|key| range.contains(&route::of_key(key)));
        let holds = keys.filter_map(|key| self.state.keys.get(key)?.place.as_ref());
        holds.fold((0, 0), |(held, waiting), place| match place.granted_at_ms {
            Some(_) => (held + 1, waiting),
            None => (held, waiting + 1),
        })
    }

    /// Whether the session has keys in a range that is sealed here: it is not to be acknowledged then (rule R17).
    pub fn is_sealed_in(&self, session: SessionId) -> bool {
        self.state.moves.sealed.as_ref().is_some_and(|sealed| self.has_keys_in(&sealed.range, session))
    }

    /// Whether a move of this number may begin here, or has begun.
    pub fn may_move(&self, number: MoveNumber) -> Result<(), Rejection> {
        match self.state.moves.under_way() {
            Some(here) if here == number => Ok(()),
            _ => self.state.moves.check_new(number),
        }
    }

    /// From which revisions on the history of ranges that have come here is this group's, of those that `touch`: what was
    /// before is in the history of the groups they came from (rule R19).
    pub fn arrivals<'t>(
        &'t self,
        touch: impl Fn(&Range) -> bool + 't,
    ) -> impl Iterator<Item = Revision> + 't {
        self.state.moves.arrived.iter().filter(move |(range, _)| touch(range)).map(|(_, since)| *since)
    }

    /// Whether what the group may change is exactly what these ranges hold.
    pub fn owns_exactly(&self, ranges: &[Range]) -> bool {
        same_names(&self.state.ownership.ranges(), ranges)
    }

    /// The range that is sealed here, and for which move.
    pub fn sealed(&self) -> Option<(MoveNumber, &Range)> {
        self.state.moves.sealed.as_ref().map(|sealed| (sealed.move_number, &sealed.range))
    }

    /// How far a move is that brings a range here; `None` before its first part has come and after it was given up.
    pub fn arrival(&self, number: MoveNumber) -> Option<Arrival> {
        match &self.state.moves.incoming {
            Some(incoming) if incoming.move_number == number => Some(match incoming.complete {
                Some(_) => Arrival::Complete,
                None => Arrival::Begun,
            }),
            Some(_) | None => (self.state.moves.activated == number).then_some(Arrival::Activated),
        }
    }

    /// The highest move that this group has taken part in; a move of that number that is not under way is over here.
    pub fn highest_move(&self) -> MoveNumber {
        self.state.moves.highest
    }
}

/// How far a range has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrival {
    /// Some of it is here, apart.
    Begun,
    /// All of it is here, apart.
    Complete,
    /// It is this group's.
    Activated,
}

/// A session that goes along with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goer {
    /// The session.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: SessionEpoch,
    /// Whether it has keys there. Of others only what they asked for goes.
    pub keys: bool,
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
