//! Locks and leaderships alike.

use std::time::Duration;

use holdfast_client::{HoldError, HoldState, Leadership, LockGuard};

/// What a session was granted.
#[derive(Debug)]
pub enum Guard {
    /// A lock.
    Lock(LockGuard),
    /// A leadership.
    Lead(Leadership),
}

impl Guard {
    /// The fencing token.
    #[must_use]
    pub fn token(&self) -> u64 {
        match self {
            Self::Lock(guard) => guard.token().get(),
            Self::Lead(guard) => guard.token().get(),
        }
    }

    /// The group that granted it.
    #[must_use]
    pub fn group(&self) -> u32 {
        match self {
            Self::Lock(guard) => guard.group(),
            Self::Lead(guard) => guard.group(),
        }
    }

    /// How safe it is now.
    #[must_use]
    pub fn state(&self) -> HoldState {
        match self {
            Self::Lock(guard) => guard.state(),
            Self::Lead(guard) => guard.state(),
        }
    }

    /// How safe it is as whoever watches it has been told.
    #[must_use]
    pub fn told(&self) -> HoldState {
        match self {
            Self::Lock(guard) => *guard.states().borrow(),
            Self::Lead(guard) => *guard.states().borrow(),
        }
    }

    /// How long it certainly lasts.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match self {
            Self::Lock(guard) => guard.remaining(),
            Self::Lead(guard) => guard.remaining(),
        }
    }

    /// Gives it back.
    ///
    /// # Errors
    /// As the client says.
    pub async fn give_back(&self) -> Result<bool, HoldError> {
        match self {
            Self::Lock(guard) => guard.release().await,
            Self::Lead(guard) => guard.resign().await,
        }
    }

    /// Says something as a leader; of a lock nothing is said.
    ///
    /// # Errors
    /// As the client says.
    pub async fn proclaim(&self, value: String) -> Result<(), HoldError> {
        match self {
            Self::Lock(_) => Ok(()),
            Self::Lead(guard) => guard.proclaim(value).await,
        }
    }
}
