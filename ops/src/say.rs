//! Lines for people on standard error, each beginning `holdfast:`.
//!
//! Data goes to standard output, never through here.

use std::io::Write as _;

use crate::escape;

/// Writes a message, one prefixed line for each of its lines. A closed standard error is nobody's problem.
pub(crate) fn line(message: &str) {
    let mut text = String::new();
    for line in message.lines().filter(|line| !line.trim().is_empty()) {
        text.push_str("holdfast: ");
        text.push_str(&escape::shown(line));
        text.push('\n');
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}
