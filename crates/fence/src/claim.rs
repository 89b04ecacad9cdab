//! What a write must show, checked once: lock name, token, object name.
//!
//! Holding a [`Claim`] or an [`ObjectName`] proves that the bounds hold. Nothing here knows a database.

use crate::error::FenceError;

/// The largest fencing token: 2^53 − 1, the largest integer that JSON numbers and SQL bigints both carry exactly.
pub const MAX_TOKEN: u64 = (1 << 53) - 1;

/// Longest lock or object name in bytes.
pub const MAX_NAME_BYTES: usize = 2_047;

/// A lock name and the token its holder was given.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    lock: String,
    token: u64,
}

impl Claim {
    pub(crate) fn new(lock: &str, token: u64) -> Result<Self, FenceError> {
        check_lock(lock)?;
        if token == 0 || token > MAX_TOKEN {
            let fault = format!("{token} is not a fencing token; tokens are 1 to {MAX_TOKEN}");
            return Err(FenceError::InvalidArgument { what: "token", fault });
        }
        Ok(Self { lock: lock.to_owned(), token })
    }

    pub(crate) fn lock(&self) -> &str {
        &self.lock
    }

    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// The token as databases keep it. Lossless, as it is below 2^53.
    pub(crate) fn sql_token(&self) -> i64 {
        self.token as i64
    }

    pub(crate) fn stale(&self, highest: u64) -> FenceError {
        FenceError::Stale { lock: self.lock.clone(), token: self.token, highest }
    }

    pub(crate) fn wrong_lock(&self, object: &ObjectName, bound_to: String) -> FenceError {
        FenceError::WrongLock { object: object.text().to_owned(), lock: self.lock.clone(), bound_to }
    }
}

/// The name of something that is written under a lock.
#[derive(Clone, Debug)]
pub(crate) struct ObjectName(String);

impl ObjectName {
    pub(crate) fn new(name: &str) -> Result<Self, FenceError> {
        check_text("object name", name, MAX_NAME_BYTES)?;
        Ok(Self(name.to_owned()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// A token read back from a database, where a constraint keeps it positive.
pub(crate) fn token_from_sql(token: i64) -> u64 {
    token.unsigned_abs()
}

/// The rule for lock names.
pub(crate) fn check_lock(lock: &str) -> Result<(), FenceError> {
    check_text("lock name", lock, MAX_NAME_BYTES)
}

/// 1 to `max_bytes` bytes without U+0000–001F and U+007F–009F.
pub(crate) fn check_text(what: &'static str, text: &str, max_bytes: usize) -> Result<(), FenceError> {
    let fault = if text.is_empty() {
        format!("it is empty; it must have 1 to {max_bytes} bytes")
    } else if text.len() > max_bytes {
        format!("it has {} bytes; at most {max_bytes} are allowed", text.len())
    } else if let Some((at, c)) = text.char_indices().find(|(_, c)| c.is_control()) {
        format!("it has the control character U+{:04X} at byte {at}; leave it out", u32::from(c))
    } else {
        return Ok(());
    };
    Err(FenceError::InvalidArgument { what, fault })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_bounded_on_both_sides() {
        for token in [1, 2, MAX_TOKEN] {
            assert!(Claim::new("a", token).is_ok(), "{token}");
        }
        for token in [0, MAX_TOKEN + 1, u64::MAX] {
            let refused = Claim::new("a", token).unwrap_err();
            assert!(matches!(refused, FenceError::InvalidArgument { what: "token", .. }), "{refused}");
        }
    }

    #[test]
    fn odd_but_ordinary_names_pass_and_control_characters_do_not() {
        let longest = "a".repeat(MAX_NAME_BYTES);
        for name in ["/", "a//b", ".", "..", "a/", "job1 ", "\u{202e}x", "é", longest.as_str()] {
            assert!(Claim::new(name, 1).is_ok() && ObjectName::new(name).is_ok(), "{name:?}");
        }
        let too_long = "a".repeat(MAX_NAME_BYTES + 1);
        for name in ["", "a\u{0}b", "a\nb", "\u{7f}", "a\u{85}", "\u{9f}", too_long.as_str()] {
            assert!(Claim::new(name, 1).is_err() && ObjectName::new(name).is_err(), "{name:?}");
        }
    }
}
