//! The native protocol end to end: the real client, a real member over its sockets and disk, one process.

mod bad_input;
mod cluster;
mod elections;
mod locks;
mod operators;
mod wait;
