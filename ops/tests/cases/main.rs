//! Public failures of lock services, as tests on real member processes: the cases of `docs/cases.md`, named after them.
//!
//! Each test records what its clients saw and lets the whole history be judged (I1–I7), whatever else it asserts.
//! `HOLDFAST_SOAK=1` runs the rounds and lengths of the case text, otherwise a few short ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "../harness/mod.rs"]
mod harness;
mod support;

mod acquire;
mod bad_input;
mod clients;
mod clock;
mod disk;
mod election;
mod failover;
mod fencing;
mod isolation;
mod kills;
mod lease;
mod load;
mod loss;
mod moves;
mod names;
mod planner;
mod release;
mod waiting;
mod watch;
