//! The command `holdfast-sim`. Elsewhere than in the builds of `make sim` it only says so.

use std::process::ExitCode;

#[cfg(tokio_unstable)]
fn main() -> ExitCode {
    holdfast_sim::command::main()
}

#[cfg(not(tokio_unstable))]
fn main() -> ExitCode {
    eprintln!("holdfast-sim: this build cannot simulate; use `make sim`");
    ExitCode::from(2)
}
