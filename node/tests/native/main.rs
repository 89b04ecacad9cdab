//! The native protocol end to end: the real client, a real member over its sockets and disk, one process.

#![allow(clippy::expect_used, reason = "helpers of tests fail loudly")]

mod bad_input;
mod claims;
mod cluster;
mod elections;
mod locks;
mod moves;
mod operators;
mod wait;
