//! What is measured, behind one seam: a client that acquires and releases. Knows no figures.

mod etcd;
mod holdfast;
mod redis;

use std::{future::Future, sync::Arc, time::Duration};

use clap::ValueEnum;
use holdfast_history::{End, SessionEnd};
use serde::Serialize;

pub(crate) use self::{
    etcd::Etcd,
    holdfast::{Holdfast, refused},
    redis::Redis,
};
use crate::failure::Failure;

/// Which service is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// Holdfast, by its native Rust client.
    Holdfast,
    /// etcd's v3lock, by the crate etcd-client.
    Etcd,
    /// One Redis: SET NX PX, and a script that compares and deletes; retries while it is held.
    Redis,
}

impl Target {
    /// Schemes of its endpoints.
    pub(crate) const fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Holdfast | Self::Etcd => &["http", "https"],
            Self::Redis => &["redis", "rediss"],
        }
    }

    /// Where it listens unless told otherwise.
    pub(crate) fn default_endpoints(self) -> Vec<String> {
        let endpoints: &[&str] = match self {
            Self::Holdfast => &["http://127.0.0.1:7611", "http://127.0.0.1:7621", "http://127.0.0.1:7631"],
            Self::Etcd => &["http://127.0.0.1:2379"],
            Self::Redis => &["redis://127.0.0.1:6379"],
        };
        endpoints.iter().map(|endpoint| (*endpoint).to_owned()).collect()
    }

    /// What a reader of its figures has to know.
    pub(crate) const fn remark(self) -> &'static str {
        match self {
            Self::Holdfast => "native client, one session per client",
            Self::Etcd => "v3lock, one lease per client, kept alive",
            Self::Redis => {
                "SET NX PX and compare-and-delete; no queue: while a lock is held, clients retry after 1 to 10 ms"
            }
        }
    }
}

/// Why a client has no lock, or could not give one back.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// How an acquire ended.
    pub(crate) end: End,
    /// How the session ended, where it did.
    pub(crate) session: Option<SessionEnd>,
    /// Text for people, without names that differ from client to client.
    pub(crate) text: String,
}

/// How a held lock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Held, and every group acknowledged a keepalive of the session that was sent less than half a TTL ago.
    Safe,
    /// Held.
    InDoubt,
    /// Not held any more.
    Lost,
}

/// The session a client has, where the service has sessions that are judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) session: u64,
    pub(crate) ttl: Duration,
    /// When the opening was sent, on the run's clock.
    pub(crate) sent: u64,
}

/// A client that holds at most one lock.
pub(crate) trait LockClient: Send + 'static {
    /// Its session; `None` where nothing is to be judged.
    fn opened(&self) -> Option<Opened>;

    /// Acquires a lock, waiting as long as needed. Answers the fencing token, 0 where the service has none. Dropping the
    /// future gives the wait up.
    fn acquire(&mut self, lock: &Arc<str>) -> impl Future<Output = Result<u64, Refusal>> + Send;

    /// How the lock it holds stands by the client's own clock; `None` where it holds none, or the client does not know.
    fn standing(&self) -> Option<Standing>;

    /// Gives back the lock it holds.
    fn release(&mut self) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Makes it usable again after its session was lost.
    fn reopen(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Ends it, and frees everything it has.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// Makes clients.
pub(crate) trait Driver: Send + Sync + 'static {
    /// Its clients.
    type Client: LockClient;

    /// The client of this number, connected to the endpoint whose turn it is.
    fn client(&self, number: u32) -> impl Future<Output = Result<Self::Client, Failure>> + Send;
}
