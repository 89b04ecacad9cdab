//! The one set of verbs behind every surface: any member answers any request, and sends it to the leader of the right
//! group.
//!
//! Knows routing, retries and the words of errors. Does not know JSON, protobuf or sockets.

pub mod error;
pub mod types;

use futures::stream::BoxStream;
use holdfast_locktable::{
    command::RequestId,
    ids::{SessionId, Token},
    metadata::Metadata,
    name::{Name, NameKind},
    outcome::CancelOutcome,
};
use holdfast_partitioner::{GroupId, PartitionMap};

use self::types::{
    AcquireRequest, AuditEntry, ForceRelease, Granted, GroupView, KeepaliveAck, LeaderView, LockDetail,
    LockPage, MemberView, SessionInfo, SessionOpened, SessionPage, SnapshotView, StatusView, WatchEvent,
    WatchRequest,
};
pub use error::{ApiError, ErrorCode, Facts};

/// The verbs of one member. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Endpoint {}

type Answer<T> = Result<T, ApiError>;

fn absent<T>() -> Answer<T> {
    Err(ApiError::new(ErrorCode::NoLeader, "the member is starting"))
}

#[allow(clippy::unused_async)]
impl Endpoint {
    /// Opens a session.
    pub async fn open_session(&self, _ttl_ms: u64, _metadata: Metadata) -> Answer<SessionOpened> {
        absent()
    }
    /// Renews a session in every group that knows it. `SessionLost` when its home says so.
    pub async fn keepalive(&self, _session: SessionId) -> Answer<KeepaliveAck> {
        absent()
    }
    /// The client closes its session: all its locks come free at once. `SessionLost` when it is gone already.
    pub async fn close_session(&self, _session: SessionId) -> Answer<()> {
        absent()
    }
    /// An operator ends a session; recorded in the audit log.
    pub async fn end_session(&self, _session: SessionId, _reason: String, _actor: String) -> Answer<()> {
        absent()
    }
    /// Asks for a lock or campaigns. Dropping the future while it waits detaches the caller: the wait is cancelled, or
    /// its grant released, within 2 s, unless the same request id comes again before.
    pub async fn acquire(&self, _request: AcquireRequest) -> Answer<Granted> {
        absent()
    }
    /// Cancels a wait by its request id.
    pub async fn cancel(
        &self,
        _name: Name,
        _session: SessionId,
        _request: RequestId,
    ) -> Answer<CancelOutcome> {
        absent()
    }
    /// Releases a hold; `false` where this session has ended that very hold before.
    pub async fn release(&self, _name: Name, _session: SessionId, _token: Token) -> Answer<bool> {
        absent()
    }
    /// An operator ends a hold at once; recorded in the audit log. Answers the session that held.
    pub async fn force_release(&self, _request: ForceRelease) -> Answer<SessionId> {
        absent()
    }
    /// Locks (or elections) whose name begins with `prefix`, in name order. `limit` 1 to 1000.
    pub async fn locks(
        &self,
        _kind: NameKind,
        _prefix: &str,
        _limit: u32,
        _cursor: Option<&str>,
    ) -> Answer<LockPage> {
        absent()
    }
    /// One lock or election with its queue and history. A free one that has no history is an empty detail, no error.
    pub async fn lock(&self, _name: &Name) -> Answer<LockDetail> {
        absent()
    }
    /// All sessions, by home group.
    pub async fn sessions(&self) -> Answer<SessionPage> {
        absent()
    }
    /// One session; `NotFound` when there is none.
    pub async fn session(&self, _session: SessionId) -> Answer<SessionInfo> {
        absent()
    }
    /// Changes as they happen, from a position; ends with an error when the position is gone, the watcher lags behind
    /// its bound (`Overloaded`, resume from the last cursor), or the group has had no leader for three election timeouts.
    pub async fn watch(&self, _request: WatchRequest) -> Answer<BoxStream<'static, Answer<WatchEvent>>> {
        absent()
    }
    /// The leader of an election replaces its value. `NotHolder` when it does not lead.
    pub async fn proclaim(
        &self,
        _name: Name,
        _session: SessionId,
        _token: Token,
        _value: bytes::Bytes,
    ) -> Answer<()> {
        absent()
    }
    /// Who leads an election; `NotFound` while nobody does.
    pub async fn leader(&self, _name: &Name) -> Answer<LeaderView> {
        absent()
    }
    /// The leader of an election now, and then each change of leader or value; `None` while nobody leads.
    pub async fn observe(&self, _name: Name) -> Answer<BoxStream<'static, Answer<Option<LeaderView>>>> {
        absent()
    }
    /// What this member says of itself.
    pub async fn status(&self) -> Answer<StatusView> {
        absent()
    }
    /// The cluster's members.
    pub async fn members(&self) -> Answer<Vec<MemberView>> {
        absent()
    }
    /// The cluster's groups; figures of each from its leader where it can be reached.
    pub async fn groups(&self) -> Answer<Vec<GroupView>> {
        absent()
    }
    /// The partition map.
    pub async fn partitions(&self) -> Answer<PartitionMap> {
        absent()
    }
    /// Snapshots in the snapshot store.
    pub async fn snapshots(&self) -> Answer<Vec<SnapshotView>> {
        absent()
    }
    /// Takes snapshots of one group or of all, and answers their manifests once they are durable.
    pub async fn take_snapshot(&self, _group: Option<GroupId>, _actor: String) -> Answer<Vec<SnapshotView>> {
        absent()
    }
    /// The newest lines of the audit log, oldest first. `limit` 1 to 1000.
    pub async fn audit(&self, _limit: u32) -> Answer<Vec<AuditEntry>> {
        absent()
    }
    /// Whether this member may serve: it has caught up with every group since its start and every group has a leader. The
    /// text says what is missing.
    pub fn ready(&self) -> Result<(), String> {
        Err("starting".into())
    }
    /// Whether the process and its disk loop are alive; never depends on other members.
    pub fn alive(&self) -> Result<(), String> {
        Ok(())
    }
}
