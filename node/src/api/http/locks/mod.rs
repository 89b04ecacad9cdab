//! `/v1/locks`: acquire, cancel, release, look, watch.

pub(crate) mod acquire;
pub(crate) mod release;
pub(crate) mod show;
pub(crate) mod watch;

#[cfg(test)]
mod tests;
