//! The surfaces of a member. Each knows one protocol and calls the endpoint; none knows another.

pub mod grpc;
pub mod http;
