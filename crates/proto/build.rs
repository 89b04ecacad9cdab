//! Compiles the proto files without protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let files = [
        "holdfast/v1/types.proto",
        "holdfast/v1/lock.proto",
        "holdfast/v1/claims.proto",
        "holdfast/v1/admin.proto",
    ];
    for file in files {
        println!("cargo:rerun-if-changed=proto/{file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
