//! How a verb fails, and the exit code that scripts see.
//!
//! The codes are published: scripts branch on them.

use std::fmt;

/// Success.
pub(crate) const OK: u8 = 0;
/// The command line cannot be understood.
pub(crate) const USAGE: u8 = 2;
/// The command to run cannot be executed.
pub(crate) const CANNOT_RUN: u8 = 126;
/// The command to run was not found.
pub(crate) const NOT_FOUND: u8 = 127;
/// Added to a signal's number where a signal ended something.
pub(crate) const SIGNAL_BASE: u8 = 128;

/// A verb that did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
}

/// Kinds of failure that have an exit code of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything without a code of its own: 1.
    Other,
    /// The arguments make no sense: 2.
    Usage,
    /// No member answered at all in time: 69.
    Unreachable,
    /// The lock was lost while the command ran: 70.
    LockLost,
    /// The lock was not acquired, and a member said so: 75, or what the caller chose.
    NotAcquired(Option<u8>),
    /// Not allowed: 77.
    Denied,
    /// A signal ended the wait: 128 + its number.
    Interrupted(u8),
    /// The command cannot be run: 126 or 127.
    CannotRun(u8),
}

impl Failure {
    /// A failure of a kind, with what happened and what to do next.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// A failure without a code of its own.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(Kind::Other, message)
    }

    /// Arguments that make no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// The exit code.
    pub(crate) const fn code(&self) -> u8 {
        match self.kind {
            Kind::Other => 1,
            Kind::Usage => USAGE,
            Kind::Unreachable => 69,
            Kind::LockLost => 70,
            Kind::NotAcquired(None) => 75,
            Kind::NotAcquired(Some(code)) | Kind::CannotRun(code) => code,
            Kind::Denied => 77,
            Kind::Interrupted(signal) => SIGNAL_BASE.saturating_add(signal),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// What a verb ends with: its exit code, or why it failed.
pub(crate) type Ended = Result<u8, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_published_ones() {
        let code = |kind| Failure::new(kind, "").code();
        assert_eq!(code(Kind::Other), 1);
        assert_eq!(code(Kind::Usage), 2);
        assert_eq!(code(Kind::Unreachable), 69);
        assert_eq!(code(Kind::LockLost), 70);
        assert_eq!(code(Kind::NotAcquired(None)), 75);
        assert_eq!(code(Kind::NotAcquired(Some(9))), 9);
        assert_eq!(code(Kind::Denied), 77);
        assert_eq!(code(Kind::CannotRun(NOT_FOUND)), 127);
        assert_eq!(code(Kind::Interrupted(2)), 130);
    }
}
