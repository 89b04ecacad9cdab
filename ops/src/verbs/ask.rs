//! Asks back before something is changed.

use std::io::{self, IsTerminal, Write as _};

use crate::{failure::Failure, say};

/// Shows what would happen, and asks. Nobody to ask is an error, not a yes.
pub(crate) fn agreed(what: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("nobody is here to be asked; say --yes, or --dry-run to look first"));
    }
    for line in what.lines() {
        say::line(line);
    }
    let mut question = io::stderr();
    let asked = write!(question, "holdfast: go on? [y/N] ").and_then(|()| question.flush());
    asked.map_err(|error| Failure::other(format!("cannot ask: {error}")))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::other(format!("cannot read: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
