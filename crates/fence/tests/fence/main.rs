//! What the fence promises, against real files, a real PostgreSQL server, real sockets and real kills.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, in its support code too"
)]

mod sqlite_guard;
mod sqlite_load;
mod support;
