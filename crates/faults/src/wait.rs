//! Waiting for conditions with a deadline, and for moments.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::FaultError;

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until the condition gives a value.
///
/// # Errors
/// [`FaultError::TooLate`], naming `what`, after `within`.
pub fn wait_for<T>(
    what: &str,
    within: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> Result<T, FaultError> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(value) = condition() {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            return Err(FaultError::TooLate { what: what.to_owned(), within });
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Lets time pass until a moment, for faults that have a length. Never a way to wait for something to have happened.
pub fn until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}
