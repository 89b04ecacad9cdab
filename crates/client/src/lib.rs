//! Rust client of Holdfast, a distributed lock service: named locks and leader elections with fencing tokens.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use holdfast_client::Client;
//!
//! let client = Client::connect(["http://127.0.0.1:7611", "http://127.0.0.1:7621", "http://127.0.0.1:7631"])?;
//! let session = client.session().ttl(Duration::from_secs(10)).open().await?;
//!
//! let guard = session.lock("jobs/nightly").acquire_timeout(Duration::from_secs(30)).await?;
//! tokio::select! {
//!     reason = guard.lost() => eprintln!("the lock is gone: {reason}"),
//!     () = work(guard.token().get()) => {
//!         guard.release().await?;
//!     }
//! }
//! # Ok(())
//! # }
//! # async fn work(_token: u64) {}
//! ```
//!
//! - A [`Session`] is kept alive by a task in the background; connections may break and move to other members without
//!   anybody noticing.
//! - A [`LockGuard`] is *safe*, *in doubt* or *lost* by a local deadline that ends before the server could grant the
//!   lock to anyone else; [`LockGuard::lost`] tells when to stop.
//! - An acquire ends exactly once, and each way to end without the lock is a case of [`AcquireError`] of its own. One
//!   that is dropped, timed out or unknown leaves nothing behind in the queue.
//! - A [`Claim`] is a part in a name whose partitions live sessions share: [`Claim::events`] tells which are this
//!   session's, each with a fencing token, and which to give back.
//! - [`Client::watch`], [`Client::observe`] and [`Client::admin`] need no session.
//!
//! How it is made:
//!
//! ```text
//!  Lock, LockGuard, Election ──ask──> session::core (pure) ──messages──> session::driver ──stream──> a member
//!        ▲   states, deadlines ◄── session::ledger (pure)  ◄──answers───        └── link, channel (the seam)
//! ```
//!
//! This crate knows the protocol and the clock. It does not know how the cluster keeps its promises.

mod acquire_error;
mod admin;
mod builder;
mod call;
mod channel;
mod claim;
mod client;
mod clock;
mod election;
mod error;
mod hold_error;
mod identity;
mod ids;
mod lock;
mod observe;
mod random;
mod session;
mod state;
mod watch;

pub use acquire_error::AcquireError;
pub use admin::{
    Admin, AuditEntry, ClaimDetail, ClaimMember, ClaimPage, ClaimView, GroupDetail, GroupLoad, GroupView,
    HistoryView, HolderView, Kind, LeaderView, ListClaims, ListLocks, LockDetail, LockPage, LockView,
    MemberChange, MemberChanges, MemberView, MembersWanted, MovingRange, NameLoad, NewMember,
    PartitionChange, PartitionChangeEnd, PartitionChanges, PartitionMap, PartitionOwner, PartitionPlan,
    PartitionRequest, PartitionRule, PartitionStep, PartitionTable, PlannerEdit, PlannerLook, PlannerPolicy,
    PlannerProposal, PlannerState, PrefixLoad, SessionInfo, SessionLock, SessionPage, SnapshotContent,
    SnapshotDetail, SnapshotLocks, SnapshotMeta, SnapshotSet, SnapshotSetDetail, SnapshotSetMember,
    SnapshotView, StatusView, VoterView, WaiterView,
};
pub use builder::{ClientBuilder, DEFAULT_CONNECT_TIMEOUT, DEFAULT_REQUEST_TIMEOUT};
pub use channel::{Channel, ChannelError, ChannelFactory, TcpChannels};
pub use claim::{Claim, ClaimEnd, ClaimError, ClaimEvent, ClaimEvents, JoinClaim, Partition};
pub use client::Client;
pub use clock::Clock;
pub use election::{Election, Leadership};
pub use error::{ApiError, ConfigError, Error, ErrorCode, Facts};
pub use hold_error::HoldError;
pub use ids::{SessionId, SessionIdError, Token};
pub use lock::{Lock, LockGuard};
pub use observe::Observe;
pub use session::{DEFAULT_TTL, Session, SessionOptions};
pub use state::{HoldState, LossReason, SessionState};
pub use watch::{Watch, WatchError, WatchEvent, WatchOptions};
