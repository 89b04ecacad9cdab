//! What supervisors, containers and scripts learn of a member.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;
#[path = "deploy/health.rs"]
mod health;
#[path = "deploy/process.rs"]
mod process;
#[path = "deploy/supervised.rs"]
mod supervised;
