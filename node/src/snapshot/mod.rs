//! Snapshots of a group's state, of two kinds that never mix.
//!
//! - openraft's own, one per group in the member's folder ([`raft_snapshot`], [`local`]): they let the log be purged, and
//!   lagging members are brought up with them. [`compaction`] decides when one is built and what may be purged (rule R21).
//! - those of the snapshot store ([`store`], [`catalog`]): objects in a folder or a bucket, with a manifest each, kept for
//!   disasters. [`inspect`] says what is in one; [`consistency`] which of them make a set of all groups ([`set`]).
//!
//! [`actor::Snapshotter`] drives both for one group. Only those two know what is inside the state.

pub mod actor;
pub mod catalog;
pub mod compaction;
pub mod compression;
pub mod consistency;
pub mod folder_store;
pub mod inspect;
pub mod local;
pub mod manifest;
pub mod memory_store;
pub mod raft_snapshot;
pub mod raft_target;
pub mod retention;
pub mod s3_store;
pub mod schedule;
pub mod set;
pub mod source;
pub mod store;
pub mod store_error;
