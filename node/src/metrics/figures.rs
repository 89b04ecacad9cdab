//! The plain figures that observable gauges are read from. Whoever runs the groups fills them in; nothing here knows
//! how.

use std::{fmt, sync::Arc, time::Duration};

use holdfast_partitioner::GroupId;
use parking_lot::RwLock;

use crate::{log::stats::LogSpace, raft::types::MemberId};

/// Where the figures come from: called once per scrape, returns at once.
pub type FiguresSource = Arc<dyn Fn() -> Figures + Send + Sync>;

/// Figures of one member at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// One entry per group that has a replica on this member.
    pub groups: Vec<GroupFigures>,
    /// What the log of all groups takes on this member's disk; absent where there is no disk.
    pub log: Option<LogSpace>,
}

/// Figures of one group's replica.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFigures {
    /// The group.
    pub group: GroupId,
    /// What this member is in it.
    pub role: ReplicaRole,
    /// Whether this member knows a leader of the group.
    pub has_leader: bool,
    /// The term it is in.
    pub term: u64,
    /// Committed entries that are not applied yet.
    pub apply_lag: u64,
    /// Proposals that wait for their commit here.
    pub proposals_pending: u64,
    /// The newest snapshot in the store that this member knows of.
    pub snapshot: Option<SnapshotFigures>,
    /// What only the leader can say; absent everywhere else, so that nothing counts twice.
    pub leader: Option<LeaderFigures>,
}

/// What a member is in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaRole {
    /// It leads.
    Leader,
    /// It votes and follows; candidates count here.
    Follower,
    /// It only learns.
    Learner,
}

/// The newest snapshot of a group in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotFigures {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// When it was taken, in milliseconds since 1970.
    pub taken_at_ms: u64,
}

/// What only a group's leader can say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaderFigures {
    /// Sessions whose home the group is.
    pub sessions: u64,
    /// Locks with at least one waiter.
    pub contended: u64,
    /// Waiters of the longest queue.
    pub longest_queue: u64,
    /// Time since the newest acknowledgement by a quorum.
    pub quorum_ack_age: Duration,
    /// Holds and waits by the prefix of the partition map's rule; one line with an empty prefix where nobody splits them.
    pub prefixes: Vec<PrefixFigures>,
    /// Entries that each other voter or learner has not stored yet.
    pub replication_lag: Vec<(MemberId, u64)>,
}

/// Holds and waits of one prefix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrefixFigures {
    /// The prefix of the partition map's rule.
    pub prefix: String,
    /// Locks held.
    pub held: u64,
    /// Waiters.
    pub waiting: u64,
    /// How long the oldest waiter waits; absent where nobody does.
    pub oldest_wait: Option<Duration>,
    /// How long the oldest hold lasts; absent where nothing is held.
    pub oldest_hold: Option<Duration>,
}

/// Holds the figures of the last refresh and the source of the next.
#[derive(Default)]
pub(super) struct FiguresCell {
    source: RwLock<Option<FiguresSource>>,
    latest: RwLock<Arc<Figures>>,
}

impl fmt::Debug for FiguresCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FiguresCell").field("latest", &self.latest).finish_non_exhaustive()
    }
}

impl FiguresCell {
    pub(super) fn set_source(&self, source: FiguresSource) {
        *self.source.write() = Some(source);
    }

    pub(super) fn refresh(&self) {
        let source = self.source.read().clone();
        if let Some(source) = source {
            *self.latest.write() = Arc::new(source());
        }
    }

    pub(super) fn latest(&self) -> Arc<Figures> {
        Arc::clone(&self.latest.read())
    }
}
