//! How members talk to each other: Raft traffic of all groups, and requests passed on to a leader.
//!
//! ```text
//!   RaftGroup ── GroupLinks ──► Transport ═══════════► PeerService ──► RaftGroup (by group)
//!   endpoint  ── call ────────►  (grpc | memory)                  └──► CallHandler
//! ```
//! Knows nothing of what an entry or a call means.

pub mod grpc;
pub mod memory;
pub mod service;
pub mod transport;

mod heard;
mod told;

pub use self::{
    grpc::{GrpcTransport, PeerServer},
    heard::Heard,
    memory::{MemoryNetwork, MemoryTransport},
    service::{CallHandler, PeerService},
    transport::{CallError, LinkError, Transport},
};
