//! The gRPC listener: `holdfast.v1`, the native protocol of the Rust client and the command.
//!
//! Knows protobuf and streams: how a message becomes typed values, how an answer or an error becomes a message. Decides
//! nothing about locks: that is the [endpoint](crate::endpoint).
//!
//! ```text
//!   socket ── server ──┬── lock_service ──┬── stream: one client's sessions, each request in a task of its own ─┐
//!                      │                  └── watch, leader, observe, list ────────────────────────────────────┼── Endpoint
//!                      ├── claims_service ──────────────────────────────────────────────────────────────────────┤
//!                      └── admin_service ───────────────────────────────────────────────────────────────────────┘
//!                              input: every bound, once        output, status: answers and errors as messages
//! ```

mod admin_service;
mod claims_service;
mod input;
mod lock_service;
mod members;
mod output;
mod partitions;
mod placement;
mod planner;
mod server;
mod snapshots;
mod status;
mod stream;

pub use server::{GrpcOptions, GrpcServer, serve, serve_connections};
