//! The one set of verbs behind every surface: any member answers any request, and sends it to the leader of the right
//! group.
//!
//! - [`types`], [`error`]: what is asked and answered. [`router`]: the way to leaders. [`places`]: which members carry which
//!   groups. [`hub`]: keepalives in batches.
//! - `sessions`, `locks`, `holds`, [`locate`], `elections`, `claims`, `watch`, `cluster`, [`partitions`], `planner`, `placement`, [`roster`]: the verbs. [`health`]: who can be
//!   reached.
//!
//! Knows routing, retries and the words of errors. Does not know JSON, protobuf or sockets.

mod claims;
mod cluster;
mod convert;
pub mod cursor;
mod elections;
pub mod error;
pub mod health;
pub mod holds;
pub mod hub;
pub mod locate;
mod locks;
pub mod partitions;
mod placement;
pub mod places;
mod planner;
pub mod roster;
pub mod router;
mod sessions;
mod snapshots;
pub mod types;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use holdfast_locktable::{ids::SessionId, name::Name};
use holdfast_partitioner::{GroupId, PartitionMap};
use tokio::sync::watch as value;

use self::{convert::About, health::Health, holds::far::FarHolds, hub::KeepaliveHub, router::Router};
use crate::{
    clock::Clock,
    config::MemberConfig,
    group::call::{GroupCall, GroupResult},
    metrics::Instruments,
    snapshot::catalog::SnapshotCatalog,
};
pub use error::{ApiError, ErrorCode, Facts};

type Answer<T> = Result<T, ApiError>;

/// Where the partition map shows up once the meta group has one.
pub type MapWatch = value::Receiver<Option<Arc<PartitionMap>>>;

/// Parts of an endpoint, put together by the member.
#[allow(missing_debug_implementations, reason = "handles and closures, put together once and never shown")]
pub struct Parts {
    /// The way to leaders.
    pub router: Router,
    /// Keepalives in batches.
    pub hub: KeepaliveHub,
    /// Holds in groups that are not here.
    pub far_holds: FarHolds,
    /// Who can be reached.
    pub health: Health,
    /// The partition map.
    pub map: MapWatch,
    /// The member's clocks.
    pub clock: Clock,
    /// The member's instruments.
    pub instruments: Instruments,
    /// Snapshots in the snapshot store.
    pub snapshots: SnapshotCatalog,
    /// What the member was told at its start.
    pub config: Arc<MemberConfig>,
    /// Whether the disk loop is alive.
    pub alive: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// The verbs of one member. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    parts: Arc<Parts>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint(member {})", self.parts.router.member())
    }
}

impl Endpoint {
    /// Puts an endpoint together.
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// The partition map; `NoLeader` of the meta group while this member has not seen one yet.
    async fn map(&self) -> Answer<Arc<PartitionMap>> {
        let mut map = self.parts.map.clone();
        let seen = tokio::time::timeout(self.patience(), map.wait_for(Option::is_some)).await;
        let found = seen.ok().and_then(Result::ok).and_then(|map| map.clone());
        found.ok_or_else(|| ApiError::no_leader(GroupId::META))
    }

    /// The group that owns a name.
    async fn group_of(&self, name: &Name) -> Answer<GroupId> {
        Ok(self.map().await?.locate(name.internal()))
    }

    /// Has whichever group owns a name carry out a verb. Answers which one that was.
    async fn call_owner(&self, name: &Name, call: GroupCall) -> Answer<(GroupId, GroupResult)> {
        self.map().await?;
        Ok(self.parts.router.call_owner(name, call).await)
    }

    /// The home group of a session.
    async fn home_of(&self, session: SessionId) -> Answer<GroupId> {
        Ok(self.map().await?.home_of(session.get()))
    }

    fn patience(&self) -> Duration {
        self.parts.router.patience()
    }

    /// Whether this member may serve: it has caught up with every group since its start and every group has a leader. The
    /// text says what is missing.
    pub fn ready(&self) -> Result<(), String> {
        if self.parts.map.borrow().is_none() {
            return Err("the partition map is not known yet".into());
        }
        self.parts.health.ready()
    }

    /// Whether the process and its disk loop are alive; never depends on other members.
    pub fn alive(&self) -> Result<(), String> {
        (self.parts.alive)()
    }
}

fn about_name(group: GroupId, name: &Name, session: Option<SessionId>) -> About<'_> {
    About { group, name: Some(name), session }
}

fn about_session(group: GroupId, session: SessionId) -> About<'static> {
    About { group, name: None, session: Some(session) }
}
