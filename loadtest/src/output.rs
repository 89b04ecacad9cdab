//! Standard output: results and nothing else.

use std::io::{self, Write as _};

use serde::Serialize;

use crate::failure::Failure;

/// Prints a result for programs.
pub(crate) fn json(result: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(result)
        .map_err(|error| Failure::other("cannot tell the result", error))?;
    self::text(&text)
}

/// Prints a result for people.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    writeln!(io::stdout().lock(), "{text}")
        .map_err(|error| Failure::other("cannot write to standard output", error))
}
