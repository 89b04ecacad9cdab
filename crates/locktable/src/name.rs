//! Names of locks, elections and claims, and the keys that queues are made of.
//!
//! One rule for every surface: 1 to 2,047 bytes of UTF-8 without control characters. `/`, `a//b`, `.`, a trailing slash
//! and bidirectional characters are ordinary and distinct. Nothing here knows which group a name belongs to.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::{borrow::Borrow, fmt};

use serde::{Deserialize, Serialize};

use crate::ids::SessionId;

/// Longest name in bytes.
pub const MAX_NAME_BYTES: usize = 2_047;

/// Begins the internal name of an election. Users cannot write it: control characters are refused in names.
pub const ELECTION_MARK: &str = "\u{1}election/";
/// Begins the internal name of a claim.
pub const CLAIM_MARK: &str = "\u{1}claim/";

/// The name of one thing of one kind: a lock as users write it, an election, which is a queue of its own under the same name,
/// or a claim. Those of one name route alike and have nothing else to do with each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NameKind {
    /// A lock.
    Lock,
    /// A leader election.
    Election,
    /// A claim: partitions that sessions share. It is no queue and has no keys.
    Claim,
}

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NameError {
    /// Zero bytes.
    #[error("the name is empty; a name has 1 to 2047 bytes")]
    Empty,
    /// More than [`MAX_NAME_BYTES`].
    #[error("the name has {bytes} bytes; a name has 1 to 2047 bytes")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// A character of U+0000–001F or U+007F–009F.
    #[error(
        "the name has the control character U+{code:04X} at byte {at}; names are UTF-8 without control characters"
    )]
    Control {
        /// The character.
        code: u32,
        /// Its offset in bytes.
        at: usize,
    },
}

impl Name {
    /// A lock's name.
    pub fn lock(text: &str) -> Result<Self, NameError> {
        check(text)?;
        Ok(Self(Arc::from(text)))
    }

    /// An election's name.
    pub fn election(text: &str) -> Result<Self, NameError> {
        Self::marked(ELECTION_MARK, text)
    }

    /// A claim's name.
    pub fn claim(text: &str) -> Result<Self, NameError> {
        Self::marked(CLAIM_MARK, text)
    }

    fn marked(mark: &str, text: &str) -> Result<Self, NameError> {
        check(text)?;
        let mut internal = String::with_capacity(mark.len() + text.len());
        internal.push_str(mark);
        internal.push_str(text);
        Ok(Self(Arc::from(internal)))
    }

    /// The name as users wrote it.
    pub fn text(&self) -> &str {
        [ELECTION_MARK, CLAIM_MARK].iter().find_map(|mark| self.0.strip_prefix(mark)).unwrap_or(&self.0)
    }

    /// The name as it stands in keys and tables: with the mark of its kind where it is no lock.
    pub fn internal(&self) -> &str {
        &self.0
    }

    /// Lock, election or claim.
    pub fn kind(&self) -> NameKind {
        if self.0.starts_with(ELECTION_MARK) {
            NameKind::Election
        } else if self.0.starts_with(CLAIM_MARK) {
            NameKind::Claim
        } else {
            NameKind::Lock
        }
    }

    /// The key of one session in this queue: `NAME/<session id in lower-case hex>`.
    pub fn key(&self, session: SessionId) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.0.len() + 17);
        key.extend_from_slice(self.0.as_bytes());
        key.push(b'/');
        let first = session.get().leading_zeros() / 4;
        for digit in first..16 {
            let nibble = (session.get() >> (60 - 4 * digit)) & 0xf;
            key.push(b"0123456789abcdef"[nibble as usize]);
        }
        key
    }

    /// Splits a key of the form `NAME/<session id>`; `None` for every other key. Only the last segment counts, so the
    /// queue of `a` never holds a key of `a/b`.
    pub fn of_key(key: &[u8]) -> Option<(Self, SessionId)> {
        Self::split_key(key).map(|(name, session)| (Self(Arc::from(name)), session))
    }

    /// As [`Self::of_key`], with the internal name as it stands in the key.
    pub(crate) fn split_key(key: &[u8]) -> Option<(&str, SessionId)> {
        let text = core::str::from_utf8(key).ok()?;
        let (name, last) = text.rsplit_once('/')?;
        let session = SessionId::parse(last)?;
        check(name.strip_prefix(ELECTION_MARK).unwrap_or(name)).ok()?;
        Some((name, session))
    }
}

/// Maps by name are searched with internal texts; both order alike.
impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            NameKind::Lock => write!(f, "lock {:?}", self.text()),
            NameKind::Election => write!(f, "election {:?}", self.text()),
            NameKind::Claim => write!(f, "claim {:?}", self.text()),
        }
    }
}

fn check(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong { bytes: text.len() });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, c)) => Err(NameError::Control { code: c as u32, at }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_but_ordinary_names_are_kept_byte_for_byte() {
        for text in ["/", "a//b", ".", "..", "a/", "job1 ", "\u{202e}x", "é", "locks"] {
            assert_eq!(Name::lock(text).map(|n| n.text().len()), Ok(text.len()), "{text:?}");
        }
    }

    #[test]
    fn keys_end_in_the_id_as_it_is_shown() {
        for id in [1, 0xf, 0x10, 0xabc_def0, SessionId::MAX] {
            let session = SessionId::new(id).unwrap();
            let key = Name::lock("n").unwrap().key(session);
            assert_eq!(String::from_utf8(key).unwrap(), alloc::format!("n/{session}"));
        }
    }

    #[test]
    fn empty_long_and_control_names_are_refused() {
        assert_eq!(Name::lock(""), Err(NameError::Empty));
        assert!(matches!(Name::lock(&"a".repeat(2_048)), Err(NameError::TooLong { bytes: 2_048 })));
        assert!(Name::lock(&"a".repeat(2_047)).is_ok());
        for text in ["a\u{0}b", "a\nb", "a\u{85}b", "\u{7f}", "\u{1}election/x", "\u{1}claim/x"] {
            assert!(matches!(Name::lock(text), Err(NameError::Control { .. })), "{text:?}");
        }
    }

    #[test]
    fn a_lock_an_election_and_a_claim_of_one_name_are_three_things() {
        let names = [Name::lock("x").unwrap(), Name::election("x").unwrap(), Name::claim("x").unwrap()];
        assert!(names.iter().all(|name| name.text() == "x"));
        assert_eq!(names.each_ref().map(Name::kind), [NameKind::Lock, NameKind::Election, NameKind::Claim]);
        assert_eq!(names.iter().collect::<alloc::collections::BTreeSet<_>>().len(), 3);
        assert_eq!(Name::of_key(&names[2].key(SessionId::new(1).unwrap())), None, "a claim is no queue");
    }

    #[test]
    fn a_key_belongs_to_exactly_one_queue() {
        let session = SessionId::new(0x1f).unwrap();
        let name = Name::lock("a/b").unwrap();
        assert_eq!(Name::of_key(&name.key(session)), Some((name, session)));
        let election = Name::election("a").unwrap();
        assert_eq!(Name::of_key(&election.key(session)), Some((election, session)));
        for key in [&b"a"[..], b"a/", b"a/0f", b"a/1F", b"a/0", b"\xff/1f", b"/1f"] {
            assert_eq!(Name::of_key(key), None, "{key:?}");
        }
    }
}
