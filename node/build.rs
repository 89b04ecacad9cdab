//! Compiles the protocol between members, without `protoc`, and notes the source revision.

use std::{error::Error, path::Path, process::Command};

/// What the checkout is at; absent where the sources are no checkout.
const HEAD: &str = "../.git/HEAD";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rustc-env=HOLDFAST_REVISION={}", revision().unwrap_or_else(|| "unknown".to_owned()));
    let files = protox::compile(["proto/peer.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}

/// The short revision, where git knows it.
fn revision() -> Option<String> {
    if !Path::new(HEAD).exists() {
        return None;
    }
    println!("cargo::rerun-if-changed={HEAD}");
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
