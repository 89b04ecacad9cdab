//! The client against members that follow a script, over pipes in memory and under virtual time: what matters here is
//! how the client reacts to streams that break, answers that are lost, late or partial, and members that are silent.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod elections;
mod fake;
mod locks;
mod sessions;
mod streams;
mod wait;
