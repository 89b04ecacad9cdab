//! What tests with real processes share: a throw-away cluster, questions over HTTP, the command, and waiting for a
//! condition with a deadline.
//!
//! Knows processes and addresses. Does not know what any test is about.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cluster;
mod http;
pub(crate) mod runbook;
mod wait;

use std::process::{Command, Output};

pub(crate) use cluster::{Cluster, Options, children};
pub(crate) use http::{Answer, delete, encoded, get, get_text, post, put};
pub(crate) use wait::eventually;

/// The binary under test.
pub(crate) const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast");

/// The command without a cluster: nothing of the environment decides where it connects.
pub(crate) fn holdfast() -> Command {
    let mut command = Command::new(HOLDFAST);
    command.env_remove("HOLDFAST_ENDPOINTS").env_remove("HOLDFAST_CONFIG");
    command
}

/// Exit code, standard output and standard error of a finished command.
pub(crate) fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Whether a process runs; one that has ended and was not reaped does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which stands in parentheses and may hold anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
