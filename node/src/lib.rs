//! One Holdfast member: its Raft groups, their leases, watches and snapshots, and the endpoints that clients talk to.
//!
//! This crate knows processes, disks, clocks and sockets. It does not know the rules of locking: those are the pure
//! crates `holdfast-locktable` and `holdfast-partitioner`.
//!
//! - [`member`]: puts everything together. [`config`]: what it is told. [`clock`], [`actors`]: time and threads.
//! - [`log`], [`raft`], [`peer`]: the replicated log. [`snapshot`]: its compaction and the snapshot store.
//! - [`group`], [`lease`], [`watch`], [`meta`]: what a group's leader does with it. [`moves`]: ranges that change groups.
//!   [`planning`]: when they should. [`sets`]: snapshots of all groups, between two moves.
//! - [`place`]: groups and leaders that change members. [`restore`]: a new cluster from what is left of a lost one.
//! - [`endpoint`]: the verbs that any member answers. [`api`]: HTTP and gRPC over them. [`metrics`]: instruments.

pub mod actors;
pub mod api;
pub mod clock;
pub mod config;
pub mod endpoint;
pub mod group;
pub mod lease;
pub mod log;
pub mod member;
pub mod meta;
pub mod metrics;
pub mod moves;
pub mod peer;
pub mod place;
pub mod planning;
pub mod raft;
pub mod restore;
pub mod sets;
pub mod snapshot;
pub mod watch;
