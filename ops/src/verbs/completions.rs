//! `holdfast completions`: the completion script of a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{
    cli::Cli,
    failure::{self, Ended},
    output,
};

/// Print the completion script of a shell
///
/// Example: holdfast completions bash > ~/.local/share/bash-completion/completions/holdfast
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "holdfast", &mut script);
    output::write(String::from_utf8_lossy(&script).trim_end())?;
    Ok(failure::OK)
}
