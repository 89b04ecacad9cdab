//! The messages and services of `holdfast.v1`, generated from `proto/holdfast/v1/*.proto`, and how an error travels
//! in a gRPC status.
//!
//! Knows the wire. Does not know what any verb means, nor who serves or calls it.

pub mod status;

/// The generated messages, clients and servers of package `holdfast.v1`.
#[allow(missing_docs, missing_debug_implementations, unreachable_pub, clippy::all)]
pub mod v1 {
    tonic::include_proto!("holdfast.v1");
}
