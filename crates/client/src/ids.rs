//! Session ids and fencing tokens as clients see them. Nothing here knows who hands them out.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

/// Identity of a session; shown in lower-case hex.
///
/// ```
/// # use holdfast_client::SessionId;
/// let id: SessionId = "1f".parse().unwrap();
/// assert_eq!(id.get(), 31);
/// assert_eq!(id.to_string(), "1f");
/// assert!("0x1f".parse::<SessionId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl SessionId {
    pub(crate) const fn from_wire(id: u64) -> Self {
        Self(id)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
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

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is no session id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no session id; one is written in lower-case hex without leading zeros, like 1f3a9c")]
pub struct SessionIdError {
    text: String,
}

impl FromStr for SessionId {
    type Err = SessionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let canonical =
            !text.starts_with('0') && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match u64::from_str_radix(text, 16) {
            Ok(id) if canonical && i64::try_from(id).is_ok() => Ok(Self(id)),
            Ok(_) | Err(_) => Err(SessionIdError { text: text.to_owned() }),
        }
    }
}

/// A fencing token: 1 to 2^53 − 1, strictly growing per lock name, for ever. Hand it to whatever the lock protects.
///
/// ```
/// # use holdfast_client::Token;
/// assert!(Token::new(7) < Token::new(8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Token(u64);

impl Token {
    /// A token as somebody wrote it down; the server refuses numbers that cannot be one.
    pub const fn new(token: u64) -> Self {
        Self(token)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_hex_is_a_session_id() {
        for text in ["", "0", "01", "1F", "+1", "-1", "8000000000000000", "1ffffffffffffffff", "x"] {
            assert!(text.parse::<SessionId>().is_err(), "{text:?}");
        }
        assert_eq!("7fffffffffffffff".parse(), Ok(SessionId(i64::MAX as u64)));
    }
}
