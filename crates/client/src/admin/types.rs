//! What the cluster says, as plain data that serialises to the words of the JSON API.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::ids::{SessionId, Token};

/// Writes a value as `value` where it is text, else as `value_base64`.
pub(crate) fn as_value<S: Serializer>(value: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    match std::str::from_utf8(value) {
        Ok(text) => map.serialize_entry("value", text)?,
        Err(_) => map.serialize_entry("value_base64", &BASE64_STANDARD.encode(value))?,
    }
    map.end()
}

/// A page of locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockPage {
    /// Locks in name order.
    pub locks: Vec<LockView>,
    /// Where the next page starts; absent on the last.
    pub next_cursor: Option<String>,
    /// Groups that had no leader, so that their locks are missing here.
    pub unavailable_groups: Vec<u32>,
}

/// One lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockView {
    /// Its name.
    pub name: String,
    /// The group that owns it.
    pub group: u32,
    /// Who holds it.
    pub holder: Option<HolderView>,
    /// How many wait.
    pub waiters: u32,
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    pub metadata: BTreeMap<String, String>,
    /// An election's value.
    #[serde(flatten, serialize_with = "as_value")]
    pub value: Bytes,
}

/// One lock with its queue and what happened to it lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockDetail {
    /// The lock.
    #[serde(flatten)]
    pub lock: LockView,
    /// The waiters in order.
    pub queue: Vec<WaiterView>,
    /// The last transitions, oldest first.
    pub history: Vec<HistoryView>,
}

/// One waiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaiterView {
    /// The session.
    pub session: SessionId,
    /// Its place in the queue; the holder has 1, so the first waiter has 2.
    pub position: u32,
    /// Create revision of its key: its token, once it is granted.
    pub revision: u64,
    /// Milliseconds since it came, as leaders saw it.
    pub waiting_ms: u64,
    /// What it says about itself.
    pub metadata: BTreeMap<String, String>,
}

/// One transition of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryView {
    /// At which revision.
    pub revision: u64,
    /// Milliseconds since 1970 by the leader's wall clock.
    pub at_ms: u64,
    /// `queued`, `granted`, `released`, `timed_out`, `cancelled`, `abandoned`, `force_released`, `session_closed`,
    /// `session_expired`, `session_forced`, `deleted`, `proclaimed`.
    pub what: String,
    /// Whose key.
    pub session: Option<SessionId>,
    /// Its create revision.
    pub token: u64,
}

/// Who leads an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeaderView {
    /// The election's name.
    pub name: String,
    /// The session that leads.
    pub session: SessionId,
    /// Its fencing token.
    pub token: Token,
    /// The value it proclaimed last.
    #[serde(flatten, serialize_with = "as_value")]
    pub value: Bytes,
    /// Milliseconds since it was elected, as leaders saw it.
    pub leading_ms: u64,
    /// Candidates behind it.
    pub candidates: u32,
}

/// A page of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionPage {
    /// Sessions by home group and id.
    pub sessions: Vec<SessionInfo>,
    /// Groups that had no leader.
    pub unavailable_groups: Vec<u32>,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionInfo {
    /// Its id.
    pub session: SessionId,
    /// TTL in milliseconds.
    pub ttl_ms: u64,
    /// Milliseconds left at its home's leader.
    pub ttl_left_ms: Option<u64>,
    /// Its home group.
    pub home: u32,
    /// Other groups that know it.
    pub groups: Vec<u32>,
    /// Milliseconds since it was opened, as leaders saw it.
    pub open_ms: u64,
    /// What its client says about itself.
    pub metadata: BTreeMap<String, String>,
    /// The queues it stands in.
    pub locks: Vec<SessionLock>,
}

/// One queue that a session stands in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionLock {
    /// The name.
    pub name: String,
    /// Lock or election.
    pub election: bool,
    /// Its create revision there.
    pub token: u64,
    /// Whether it holds.
    pub held: bool,
}

/// What a member says of itself and its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusView {
    /// The cluster's name.
    pub cluster: String,
    /// The answering member.
    pub member: u64,
    /// Version of its program.
    pub version: String,
    /// Epoch of the partition map it knows.
    pub map_epoch: u64,
    /// Its groups.
    pub groups: Vec<GroupView>,
}

/// One member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberView {
    /// Its id.
    pub id: u64,
    /// Base URL of its HTTP listener.
    pub http: String,
    /// URL of its gRPC listener.
    pub grpc: String,
    /// Address of its peer listener.
    pub peer: String,
    /// Whether it is the one that answers.
    pub this: bool,
    /// Whether the answering member heard from it within the last election timeout.
    pub reachable: bool,
    /// Groups it leads, as the answering member knows.
    pub leads: Vec<u32>,
    /// Lock groups it carries.
    pub carries: Vec<u32>,
    /// Whether it is drained: it is to carry and to lead no lock group.
    pub drained: bool,
}

/// One Raft group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupView {
    /// Its number; 0 is the meta group.
    pub group: u32,
    /// Its leader, as the answering member knows.
    pub leader: Option<u64>,
    /// Its term.
    pub term: u64,
    /// Last index in the answering member's log.
    pub last_log_index: u64,
    /// Last committed index that the answering member knows.
    pub committed_index: u64,
    /// Last applied index of the answering member.
    pub applied_index: u64,
    /// The group's revision on the answering member; 0 for the meta group.
    pub revision: u64,
    /// The members that are to carry it; none for the meta group.
    pub replicas: Vec<u64>,
    /// Its voters.
    pub voters: Vec<VoterView>,
    /// Members that are sent its log and do not vote.
    pub learners: Vec<VoterView>,
    /// Whether one set of voters is just replacing another.
    pub joint: bool,
    /// Locks held.
    pub held: u64,
    /// Waiters.
    pub waiting: u64,
    /// Sessions known.
    pub sessions: u64,
}

/// One voter of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VoterView {
    /// The member.
    pub member: u64,
    /// Last index it has stored on disk; known to the leader only.
    pub matched_index: Option<u64>,
}

/// The partition map: which group owns which names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartitionMap {
    /// Version of the map.
    pub epoch: u64,
    /// Rules in the order of their prefixes; the longest matching prefix decides.
    pub rules: Vec<PartitionRule>,
    /// Home group of the sessions of each home slot.
    pub home_slots: Vec<u32>,
}

/// How the names below one prefix are spread over groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionRule {
    /// The prefix.
    pub prefix: String,
    /// Segments after the prefix that belong to the partition key.
    pub depth: u32,
    /// The strategy that computed the table.
    pub strategy: String,
    /// The settings it was given.
    pub params: BTreeMap<String, String>,
    /// The table.
    pub table: PartitionTable,
}

/// Which group owns which partition key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionTable {
    /// The owner of each hash slot.
    Slots(Vec<u32>),
    /// The owner of each key interval, by its lowest key.
    Splits(BTreeMap<String, u32>),
}

/// One snapshot in the snapshot store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotView {
    /// Its id.
    pub id: String,
    /// The group.
    pub group: u32,
    /// Last log index inside.
    pub log_index: u64,
    /// Its term.
    pub term: u64,
    /// The group's revision.
    pub revision: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// SHA-256 of its data, hex.
    pub sha256: String,
    /// Milliseconds since 1970 by the wall clock of the member that took it.
    pub created_at_ms: u64,
}

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_the_lock_itself_with_queue_and_history() {
        let holder = HolderView {
            session: SessionId::from_wire(0x1f),
            token: Token::new(7),
            held_ms: 12,
            ttl_left_ms: None,
            metadata: BTreeMap::new(),
            value: Bytes::from_static(b"v1"),
        };
        let lock = LockView { name: "a/b".into(), group: 2, holder: Some(holder), waiters: 0 };
        let detail = LockDetail { lock, queue: Vec::new(), history: Vec::new() };
        let json = serde_json::to_value(&detail).unwrap();
        assert_eq!(json["name"], "a/b");
        assert_eq!(json["holder"]["session"], "1f");
        assert_eq!(json["holder"]["token"], 7);
        assert_eq!(json["holder"]["value"], "v1");
    }

    #[test]
    fn a_value_that_is_no_text_is_written_in_base64() {
        let leader = LeaderView {
            name: "a".into(),
            session: SessionId::from_wire(1),
            token: Token::new(7),
            value: Bytes::from_static(b"\xff\x00"),
            leading_ms: 0,
            candidates: 0,
        };
        let json = serde_json::to_value(&leader).unwrap();
        assert_eq!(json["value_base64"], "/wA=");
        assert_eq!(json.get("value"), None);
    }
}
