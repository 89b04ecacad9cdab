//! Runs a command so that it cannot outlive what it runs under.
//!
//! ```text
//! holdfast lock ── launch ──exec──> the command, leader of its own process group, its children in the group
//!      │                            (killed by the kernel when the wrapper dies: parent-death signal)
//!      └── pipe ──> watchdog        (kills the whole group when the pipe ends or the lease's time is over)
//! ```
//!
//! Knows processes, signals and deadlines. Does not know locks or the cluster.

pub(crate) mod group;
pub(crate) mod launch;
pub(crate) mod signals;
pub(crate) mod supervise;
pub(crate) mod terminal;
pub(crate) mod watchdog;
