//! Messages between processes: gRPC over HTTP/2, one connection per member pair for everything but snapshots, which have
//! a second one so that nothing waits behind them.

mod answering;
mod calls;
mod client;
mod link;
mod server;
mod service;
mod wire;

use std::time::Duration;

pub use self::{client::GrpcTransport, server::PeerServer};

/// HTTP/2 window of one stream, in bytes: appends of one group that may be under way without a pause.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
/// HTTP/2 window of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
/// Largest HTTP/2 frame, in bytes: a batch of appends in one piece.
const FRAME: u32 = 256 * 1024;
/// Largest message, in bytes. A batch of appends is far smaller; a single entry is at most some 100 KiB.
const MESSAGE: usize = 64 * 1024 * 1024;
/// Pause between two pings of an idle or busy connection, and how long the answer may take: together within 2 s, by
/// which a call learns that the member is gone.
const PING_INTERVAL: Duration = Duration::from_millis(750);
/// See [`PING_INTERVAL`].
const PING_TIMEOUT: Duration = Duration::from_millis(1_000);
