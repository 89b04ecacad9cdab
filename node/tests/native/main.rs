//! The native protocol end to end: the real client, a real member over its sockets and disk, one process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod bad_input;
mod cluster;
mod elections;
mod locks;
mod operators;
mod wait;
