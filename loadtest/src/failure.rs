//! Why the command fails, for people and as an exit code.

/// Why the command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// What is to be measured does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// Promises were broken; they are printed already.
    #[error("{0} violations: the promises were broken, see above")]
    Violations(u64),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// The exit code: 2 usage, 69 unreachable, 1 everything else, broken promises included.
    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 69,
            Self::Violations(_) | Self::Other(_) => 1,
        }
    }

    /// Something went wrong, with what was being done.
    pub(crate) fn other(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Other(format!("{what}: {error}"))
    }
}
