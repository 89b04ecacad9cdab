//! Compiles the part of etcd's API that the harness speaks, without protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let files = ["v3lock.proto", "lease.proto"];
    for file in files {
        println!("cargo:rerun-if-changed=proto/{file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(descriptors)?;
    Ok(())
}
