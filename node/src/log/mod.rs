//! The Raft log of one member: every group's entries and votes in one SQLite file, one fsync per batch over groups.
//!
//! ```text
//!  openraft, group 0 ──┐ append, vote, truncate, purge
//!  openraft, group 1 ──┼──► bounded queue ──► commit pump (one closure on the connection's thread)
//!  openraft, group N ──┘                          │ one transaction for whatever is waiting, COMMIT = one fsync
//!        ▲                                        ▼
//!        └──────── IOFlushed, in order ◄──── after the commit
//! ```
//!
//! [`actor::LogActor`] is the control plane: it opens the file, hands out a [`handle::LogHandle`] per group, checkpoints
//! when idle, has free pages given back and tells the process to stop when the disk fails. Appends do not pass through its
//! mailbox.
//! [`memory::MemoryLog`] is the twin for simulations: the same handle over a simulated disk, without threads.
//!
//! This module knows nothing of what an entry means, of leaders, of leases or of locks.

pub mod actor;
pub mod codec;
pub mod disk_id;
pub mod error;
pub mod group_number;
pub mod handle;
pub mod identity;
pub mod memory;
pub mod opener;
pub mod stats;

pub(crate) mod durable_folder;
mod folder_lock;
mod image;
mod load;
mod op;
mod pump;
mod schema;
mod space;
mod tail;
mod verify;
mod witness;
