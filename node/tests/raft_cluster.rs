//! Groups of three members in one process: agreement, fail-over, proof of leadership, snapshots, restarts, wiring.
#![allow(clippy::unwrap_used, clippy::expect_used)] // clippy allows them in tests, but not in what tests share

#[path = "raft_cluster/agreement.rs"]
mod agreement;
#[path = "raft_cluster/calls.rs"]
mod calls;
#[path = "raft_cluster/failing.rs"]
mod failing;
#[path = "raft_cluster/leaders.rs"]
mod leaders;
#[path = "raft_cluster/snapshots.rs"]
mod snapshots;
#[path = "raft_cluster/support.rs"]
mod support;
#[path = "raft_cluster/wait.rs"]
mod wait;
#[path = "raft_cluster/wiring.rs"]
mod wiring;
