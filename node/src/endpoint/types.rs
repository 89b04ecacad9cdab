//! What endpoints are asked and answer, before it becomes JSON or protobuf.

pub mod claims;
pub mod cluster;
pub mod planner;

use bytes::Bytes;
use holdfast_locktable::{
    command::{RequestId, Wait},
    ids::{Revision, SessionId, Token},
    metadata::Metadata,
    name::Name,
};
use holdfast_partitioner::{GroupId, MapEpoch};
use serde::{Deserialize, Serialize};

/// Shortest TTL of a session in milliseconds.
pub const MIN_TTL_MS: u64 = 1_000;
/// Longest TTL of a session in milliseconds.
pub const MAX_TTL_MS: u64 = 86_400_000;
/// TTL of a session that does not ask for one, in milliseconds.
pub const DEFAULT_TTL_MS: u64 = 10_000;
/// Longest wait limit in milliseconds.
pub const MAX_WAIT_MS: u64 = 3_600_000;

/// A session that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// Its id.
    pub session: SessionId,
    /// Its TTL in milliseconds.
    pub ttl_ms: u64,
}

/// The answer to one keepalive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepaliveAck {
    /// The session's TTL in milliseconds: how long it lives from the sending of this keepalive.
    pub ttl_ms: u64,
    /// One line per lock group (rule R3): a lock's own deadline moves only by its own group's renewal.
    pub groups: Vec<GroupLease>,
}

/// How one group answered a keepalive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLease {
    /// The group.
    pub group: GroupId,
    /// What it said.
    pub state: LeaseState,
    /// The map epoch at which its ranges changed last, and did not change while it answered; none where it did not answer.
    pub epoch: MapEpoch,
}

/// What a group says of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// Renewed for a full TTL.
    Renewed,
    /// Not known there: it holds nothing in this group.
    Unknown,
    /// It has ended, or is being ended.
    Lost,
    /// The group did not answer in time.
    Unavailable,
    /// The group is there, and does not renew the session while locks of it change groups: in a moment one of them does.
    Moving,
}

/// Asks for a lock, or campaigns in an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcquireRequest {
    /// The queue.
    pub name: Name,
    /// Who asks.
    pub session: SessionId,
    /// Makes a repeat harmless.
    pub request: RequestId,
    /// Try or wait.
    pub wait: Wait,
    /// Shown to operators.
    pub metadata: Metadata,
    /// A candidate's value; empty for locks.
    pub value: Bytes,
}

/// A grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The fencing token.
    pub token: Token,
    /// The group that owns the lock: whose keepalive answers count for it.
    pub group: GroupId,
    /// The group's ownership epoch before the grant, or none where it is not known: keepalive answers under a later one tell
    /// nothing of this lock before it has been located.
    pub epoch: MapEpoch,
}

/// An operator's forced release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForceRelease {
    /// The queue.
    pub name: Name,
    /// The token the operator saw.
    pub token: Token,
    /// Why, for the audit log; not empty.
    pub reason: String,
    /// Who, for the audit log.
    pub actor: String,
}

/// A page of locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockPage {
    /// Locks in name order.
    pub locks: Vec<LockView>,
    /// Where the next page starts; absent on the last.
    pub next_cursor: Option<String>,
    /// Groups that had no leader, so that their locks are missing here.
    pub unavailable_groups: Vec<GroupId>,
}

/// One lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockView {
    /// Its name as users write it.
    pub name: String,
    /// The group that owns it.
    pub group: GroupId,
    /// Who holds it.
    pub holder: Option<HolderView>,
    /// How many wait.
    pub waiters: u32,
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderView {
    /// The session.
    pub session: SessionId,
    /// The fencing token.
    pub token: Token,
    /// Milliseconds since the grant, as leaders saw it.
    pub held_ms: u64,
    /// Milliseconds of lease left at the group's leader.
    pub ttl_left_ms: Option<u64>,
    /// What the holder says about itself.
    pub metadata: Metadata,
    /// An election's value.
    pub value: Bytes,
}

/// One lock with its queue and what happened to it lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockDetail {
    /// The lock.
    pub lock: LockView,
    /// The waiters in order.
    pub queue: Vec<WaiterView>,
    /// The last transitions, oldest first.
    pub history: Vec<HistoryView>,
}

/// One waiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaiterView {
    /// The session.
    pub session: SessionId,
    /// Its place in the queue; the holder has 1, so the first waiter has 2.
    pub position: u32,
    /// Create revision of its key: its token, once it is granted.
    pub revision: Revision,
    /// Milliseconds since it came, as leaders saw it.
    pub waiting_ms: u64,
    /// What it says about itself.
    pub metadata: Metadata,
}

/// One transition of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryView {
    /// At which revision.
    pub revision: Revision,
    /// Milliseconds since 1970 by the leader's wall clock.
    pub at_ms: u64,
    /// `queued`, `granted`, `released`, `timed_out`, `cancelled`, `abandoned`, `force_released`, `session_closed`,
    /// `session_expired`, `session_forced`, `deleted`, `proclaimed`.
    pub what: String,
    /// Whose key.
    pub session: Option<SessionId>,
    /// Its create revision.
    pub token: Revision,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Its id.
    pub session: SessionId,
    /// TTL in milliseconds.
    pub ttl_ms: u64,
    /// Milliseconds left at its home's leader.
    pub ttl_left_ms: Option<u64>,
    /// Its home group.
    pub home: GroupId,
    /// Other groups that know it.
    pub groups: Vec<GroupId>,
    /// Milliseconds since it was opened, as leaders saw it.
    pub open_ms: u64,
    /// What its client says about itself.
    pub metadata: Metadata,
    /// The queues it stands in.
    pub locks: Vec<SessionLock>,
}

/// One queue that a session stands in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLock {
    /// The name as users write it.
    pub name: String,
    /// Lock or election.
    pub election: bool,
    /// Its create revision there.
    pub token: Revision,
    /// Whether it holds.
    pub held: bool,
}

/// A page of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPage {
    /// Sessions by home group and id.
    pub sessions: Vec<SessionInfo>,
    /// Groups that had no leader.
    pub unavailable_groups: Vec<GroupId>,
}

/// One change, for watchers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchEvent {
    /// The group it happened in.
    pub group: GroupId,
    /// Its revision there.
    pub revision: Revision,
    /// Milliseconds since 1970 by the leader's wall clock.
    pub at_ms: u64,
    /// As [`HistoryView::what`].
    pub what: String,
    /// The name as users write it.
    pub name: String,
    /// Whose key.
    pub session: Option<SessionId>,
    /// Its create revision.
    pub token: Revision,
    /// Its value (elections).
    pub value: Bytes,
    /// Where to go on after this event: an opaque vector over groups.
    pub cursor: String,
}

/// A watch of names that begin with a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchRequest {
    /// Names beginning with it; empty for all.
    pub prefix: String,
    /// Elections instead of locks.
    pub elections: bool,
    /// Only exactly this name instead of names that begin with it.
    pub exact: bool,
    /// Where to start: absent for "from now on", else a cursor or (where one group owns the prefix) a plain revision.
    pub from: Option<String>,
}

/// One snapshot in the snapshot store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotView {
    /// Its id.
    pub id: String,
    /// The group.
    pub group: GroupId,
    /// Last log index inside.
    pub log_index: u64,
    /// Its term.
    pub term: u64,
    /// The group's revision.
    pub revision: Revision,
    /// Bytes.
    pub size_bytes: u64,
    /// SHA-256 of its data, hex.
    pub sha256: String,
    /// Milliseconds since 1970 by the wall clock of the member that took it.
    pub created_at_ms: u64,
}

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Its number.
    pub index: u64,
    /// Milliseconds since 1970 by the recording leader's wall clock.
    pub at_ms: u64,
    /// Who.
    pub actor: String,
    /// `force_release`, `end_session`, `take_snapshot`.
    pub action: String,
    /// On what.
    pub target: String,
    /// Why.
    pub reason: String,
    /// `requested`, `ok` or an error code.
    pub outcome: String,
}

/// Who leads an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderView {
    /// The election's name.
    pub name: String,
    /// The session that leads.
    pub session: SessionId,
    /// Its fencing token.
    pub token: Token,
    /// The value it proclaimed last.
    pub value: Bytes,
    /// Milliseconds since it was elected, as leaders saw it.
    pub leading_ms: u64,
    /// Candidates behind it.
    pub candidates: u32,
}

/// What a change of the partition map comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanView {
    /// Its number, where it is carried out.
    pub number: Option<u64>,
    /// The prefix whose rule changes.
    pub prefix: String,
    /// The map that it was planned for.
    pub map_epoch: MapEpoch,
    /// What moves, in order.
    pub steps: Vec<StepView>,
}

/// A range that moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepView {
    /// From this group.
    pub from: GroupId,
    /// To this one.
    pub to: GroupId,
    /// Which names, in words.
    pub range: String,
    /// Whether the counts are known; they are 0 where the group did not answer.
    pub counted: bool,
    /// Locks and elections held there now.
    pub held: u64,
    /// Waiters behind them.
    pub waiting: u64,
    /// Sessions with either.
    pub sessions: u64,
}

/// The changes of the partition map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesView {
    /// The one that is carried out.
    pub under_way: Option<ChangeView>,
    /// The last ones before it, oldest first.
    pub past: Vec<ChangeView>,
}

/// One change of the partition map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeView {
    /// Its number, from 1.
    pub number: u64,
    /// What was asked for, in words.
    pub what: String,
    /// The prefix whose rule changes.
    pub prefix: String,
    /// Who asked.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// Milliseconds since 1970 by the leader's wall clock.
    pub begun_ms: u64,
    /// Its steps.
    pub steps: u32,
    /// Those that are done.
    pub done: u32,
    /// What moves right now.
    pub moving: Option<MovingView>,
    /// Why it is being stopped, where it is.
    pub stopping: Option<String>,
    /// How it ended, where it has.
    pub end: Option<ChangeEndView>,
}

/// A range that moves right now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovingView {
    /// The number of the move.
    pub number: u64,
    /// From this group.
    pub from: GroupId,
    /// To this one.
    pub to: GroupId,
    /// Which names, in words.
    pub range: String,
    /// `copying` while it belongs to its source, `handing_over` once it belongs to its destination, `taking_back` after the
    /// move was given up.
    pub stage: String,
    /// How many moves of this range were given up before.
    pub given_up_before: u32,
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeEndView {
    /// Milliseconds since 1970 by the leader's wall clock.
    pub at_ms: u64,
    /// `done`, `stopped` or `failed`; what was done before stays.
    pub how: String,
    /// Why, but for `done`.
    pub why: Option<String>,
}
