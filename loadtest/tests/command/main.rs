//! The command as its users see it: exit codes, messages, and short runs against a real cluster of one member.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod cluster;
mod growth;
mod runs;
mod usage;
mod wait;

use std::process::{Command, Output};

/// The command under test.
fn loadtest() -> Command {
    Command::new(env!("CARGO_BIN_EXE_holdfast-loadtest"))
}

/// Exit code, standard output and standard error.
fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
