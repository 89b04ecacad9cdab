//! One Holdfast member: its Raft groups, their leases, watches and snapshots, and the endpoints that clients talk to.
//!
//! This crate knows processes, disks, clocks and sockets. It does not know the rules of locking: those are the pure
//! crates `holdfast-locktable` and `holdfast-partitioner`.

pub mod actors;
pub mod endpoint;
pub mod log;
pub mod meta;
pub mod peer;
pub mod raft;
pub mod snapshot;
