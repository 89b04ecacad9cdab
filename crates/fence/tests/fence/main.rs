//! What the fence promises, against real files, a real PostgreSQL server, real sockets and real kills.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, in its support code too"
)]

mod postgres_guard;
mod postgres_load;
mod sqlite_guard;
mod sqlite_load;
mod storage_http;
mod storage_kill;
mod support;
mod token_check;
