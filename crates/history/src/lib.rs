//! What clients saw in a run, as one history on one clock, and the checks that judge it.
//!
//! ```text
//!  load test, fault tests, simulation ──Event──> Checker (or Online: many threads at once) ──> Violation
//!                                        └─────> JSON lines, to be judged again later
//! ```
//!
//! - [`Event`] is one thing that one client saw, at one moment of a monotonic clock that all clients share.
//! - [`Checker`] takes events in the order of their times and keeps a bounded state per lock, so that it can run for as
//!   long as the load does. [`Online`] is a checker for many threads.
//! - [`judge`] reads a whole history.
//!
//! | check | a run is wrong when |
//! |---|---|
//! | [`Check::Overlap`] I1 | two holds with valid sessions overlap |
//! | [`Check::Tokens`] I2 | a grant's token is not higher than all before it |
//! | [`Check::Order`] | a waiter seen further behind is granted first |
//! | [`Check::Fence`] I3 | the fenced resource accepts a lower token after a higher one |
//! | [`Check::EarlyExpiry`] I4 | a session ends before its last acknowledged keepalive's sending + TTL |
//! | [`Check::LateReclaim`] I5 | a dead client's lock is not granted on within TTL + slack |
//! | [`Check::Ends`] I6 | an acquire does not end exactly once |
//! | [`Check::Ghost`] I7 | a waiter that gave up is seen in the queue later than the grace |
//!
//! What nobody can know stays unknown: an acquire that ended [`End::Unknown`] may hold or not, and neither raises an
//! alarm.
//!
//! This crate knows no network, no runtime and no clock; times come in with the events.

mod checker;
mod checks;
mod event;
mod online;
mod sessions;
mod text;
mod violation;

pub use checker::{Checker, Limits};
pub use event::{End, Event, Fact, ReleaseEnd, SessionEnd, SessionId, Wait};
pub use online::Online;
pub use sessions::local_deadline;
pub use text::{HistoryError, judge, parse, to_line};
pub use violation::{Check, Violation};
