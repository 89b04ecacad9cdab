//! Typed numbers of the lock table: session ids and epochs, revisions, terms.
//!
//! Nothing here knows how a number is chosen, only what it may be.

use alloc::string::String;
use core::{fmt, num::NonZeroU64};

use serde::{Deserialize, Serialize};

/// Identity of a session: 1 to 2^63 − 1, chosen at random by whoever opens it. Shown in lower-case hex without padding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(NonZeroU64);

impl SessionId {
    /// The largest id.
    pub const MAX: u64 = i64::MAX as u64;

    /// A session id, or `None` for 0 and for numbers of 64 bits.
    pub const fn new(id: u64) -> Option<Self> {
        match NonZeroU64::new(id) {
            Some(id) if id.get() <= Self::MAX => Some(Self(id)),
            Some(_) | None => None,
        }
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Reads the form that [`fmt::Display`] writes: lower-case hex, no padding, no sign. Anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let canonical = !text.is_empty()
            && text.len() <= 16
            && !text.starts_with('0')
            && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !canonical {
            return None;
        }
        u64::from_str_radix(text, 16).ok().and_then(Self::new)
    }

    /// The id as it stands in keys and in the API.
    pub fn to_hex(self) -> String {
        alloc::format!("{self}")
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}

/// Distinguishes two lives of one session id: the log index, in the home group, of the entry that opened it. Every
/// command on behalf of a session carries it (rule R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionEpoch(pub u64);

/// The group's one counter, raised by one for each entry that changes keys. The low 44 bits count; the bits above are
/// the incarnation, raised by every restore from outside the snapshot. Below 2^53, so exact in JSON and in SQL bigint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl Revision {
    /// Bits of the counting part.
    pub const COUNTER_BITS: u32 = 44;
    /// First number that is no revision.
    pub const LIMIT: u64 = 1 << 53;

    /// The next revision of the same incarnation; `None` where the counter is full (an error, never a carry: rule R20).
    pub const fn next(self) -> Option<Self> {
        let mask = (1 << Self::COUNTER_BITS) - 1;
        if self.0 & mask == mask { None } else { Some(Self(self.0 + 1)) }
    }

    /// Highest incarnation: the rest would be no revision.
    pub const LAST_INCARNATION: u64 = (Self::LIMIT >> Self::COUNTER_BITS) - 1;

    /// The revision before the first of an incarnation, higher than all of those below; `None` where there is no such
    /// incarnation.
    pub const fn start_of(incarnation: u64) -> Option<Self> {
        if incarnation > Self::LAST_INCARNATION {
            None
        } else {
            Some(Self(incarnation << Self::COUNTER_BITS))
        }
    }

    /// The incarnation: how many restores this group's numbers have been through.
    pub const fn incarnation(self) -> u64 {
        self.0 >> Self::COUNTER_BITS
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A fencing token: the create revision of the holder's key. Strictly grows per lock name, for ever.
pub type Token = Revision;

/// Number of a move of a range between groups, counted by the meta group from 1 (rule R18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MoveNumber(pub u64);

impl fmt::Display for MoveNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A Raft term, as the entry that carries a command was appended under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_have_one_spelling() {
        for (text, id) in [("1", 1), ("1f", 0x1f), ("7fffffffffffffff", SessionId::MAX)] {
            assert_eq!(SessionId::parse(text), SessionId::new(id));
            assert_eq!(SessionId::parse(text).map(SessionId::to_hex).as_deref(), Some(text));
        }
        for text in ["", "0", "01", "1F", "+1", "8000000000000000", "10000000000000000", "g", "1 "] {
            assert_eq!(SessionId::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_full_counter_has_no_next_and_never_carries() {
        let full = (1 << Revision::COUNTER_BITS) - 1;
        assert_eq!(Revision(full - 1).next(), Some(Revision(full)));
        assert_eq!(Revision(full).next(), None);
        let second = Revision(full + 1);
        assert_eq!((second.incarnation(), second.next()), (1, Some(Revision(full + 2))));
        assert_eq!(Revision(Revision::LIMIT - 1).next(), None);
    }
}
