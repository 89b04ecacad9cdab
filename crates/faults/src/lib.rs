//! Faults for clusters of real member processes.
//!
//! * [`Plan`] and [`Cluster`]: members as processes of their own, started, paused, killed and started again.
//! * [`Network`] and [`Link`]: TCP proxies that hold, delay, refuse and reset; every member reaches every other one
//!   through a link of its own, and a [`Side`] is a client's set of links.
//! * [`Shim`] and [`Switch`]: fsync that is slow or fails, writes that find the disk full, a wall clock that steps, all
//!   switched while a process runs.
//! * [`Tmpfs`]: a really small disk.
//!
//! ```text
//!  member 1 ──link 1→2──> peer listener of member 2        client ──side, link──> http and grpc of each member
//!           <──link 2→1──                                         (direct addresses stay open beside it)
//! ```
//!
//! Whatever is started here ends with the process that started it, killed or not: children are tied to a thread of
//! their owner, mounts live in that thread's mount namespace. The crate knows processes, sockets and files of Holdfast's
//! command; it does not know what a lock is, and links none of its crates.

mod cluster;
mod error;
mod member;
mod plan;
mod ports;
mod proxy;
mod shim;
mod side;
mod spawner;
mod tmpfs;
mod wait;

pub use cluster::Cluster;
pub use error::FaultError;
pub use plan::Plan;
pub use proxy::{Flow, Link, Network, Way};
pub use shim::{Shim, Switch};
pub use side::Side;
pub use tmpfs::Tmpfs;
pub use wait::{until, wait_for};
