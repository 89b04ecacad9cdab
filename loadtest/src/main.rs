//! The command `holdfast-loadtest`: runs load against Holdfast and its peers, measures it, and judges what clients saw.
//! Knows only what a client can see.

mod bench;
mod cli;
mod clock;
mod cost;
mod cpu;
mod driver;
mod endpoints;
mod failure;
mod figures;
mod interrupt;
mod many;
mod output;
mod recorder;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{cli::Cli, failure::Failure};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return ExitCode::from(cli::answer(&answer)),
    };
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("holdfast-loadtest: {failure}");
            ExitCode::from(Failure::code(&failure))
        }
    }
}
