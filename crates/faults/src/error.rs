//! What can go wrong with a fault itself, apart from what it does to its victim.

use std::{io, time::Duration};

/// A fault could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The operating system refused something.
    #[error("cannot {act}: {source}")]
    System {
        /// What was tried.
        act: String,
        /// What the system said.
        source: io::Error,
    },
    /// This machine lacks a right or a program that the fault needs. Skip, and say so loudly.
    #[error("{what} is not possible here: {missing}")]
    Impossible {
        /// The fault.
        what: &'static str,
        /// The missing right or program, and how to get it.
        missing: String,
    },
    /// A condition did not come true in time.
    #[error("not within {within:?}: {what}")]
    TooLate {
        /// The condition.
        what: String,
        /// How long it was waited for.
        within: Duration,
    },
    /// A member does not run, or ended by itself.
    #[error("member {member} {how}; the end of its log:\n{log}")]
    Member {
        /// Its number, from 1.
        member: u16,
        /// What it did.
        how: String,
        /// The last lines it wrote.
        log: String,
    },
    /// No block of ports is free.
    #[error("no free block of ports between {first} and {last}")]
    NoPorts {
        /// The lowest port tried.
        first: u16,
        /// The highest port tried.
        last: u16,
    },
}

impl FaultError {
    pub(crate) fn system(act: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let act = act.into();
        move |source| Self::System { act, source }
    }

    pub(crate) fn errno(act: impl Into<String>) -> impl FnOnce(nix::errno::Errno) -> Self {
        let act = act.into();
        move |errno| Self::System { act, source: errno.into() }
    }

    /// Whether this machine just cannot do it: a reason to skip, not to fail.
    pub fn is_impossible(&self) -> bool {
        matches!(self, Self::Impossible { .. })
    }
}
