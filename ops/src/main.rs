//! The `holdfast` command: a member, a local cluster, locks around other commands, and the verbs of operators.
//!
//! This file only turns arguments into a verb and the verb's end into an exit code.

mod cli;
mod clock;
mod cluster;
mod demo;
mod deploy;
mod dev;
mod escape;
mod failure;
mod logging;
mod member;
mod output;
mod restoring;
mod run;
mod say;
mod settings;
mod supervisor;
mod times;
mod verbs;

use std::process::ExitCode;

use clap::Parser as _;

/// A member with very many sessions takes a fifth less memory with it than with the allocator of the system, and gives
/// most of it back when they are gone.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let code = match cli::Cli::try_parse() {
        Err(answer) => cli::answer(&answer),
        Ok(cli) => match cli.run() {
            Ok(code) => code,
            Err(failure) => {
                say::line(&failure.to_string());
                failure.code()
            }
        },
    };
    ExitCode::from(code)
}
