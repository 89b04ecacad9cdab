//! What can be read from a table: plain copies for endpoints and for a new leader's actors.

use alloc::vec::Vec;

use bytes::Bytes;
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

use crate::{
    assign::Owner,
    command::{RequestId, SessionEndReason, Wait},
    ids::{Revision, SessionEpoch, SessionId, Token},
    metadata::Metadata,
    name::Name,
};

/// One queue: the first entry holds, the others wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Its name.
    pub name: Name,
    /// By create revision; never empty.
    pub entries: Vec<EntryView>,
}

/// One key of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryView {
    /// Whose.
    pub session: SessionId,
    /// Create revision: the fencing token of the holder.
    pub revision: Revision,
    /// Under which request it was asked for; `None` for keys that a client put there itself.
    pub request: Option<RequestId>,
    /// How long it was ready to wait.
    pub wait: Wait,
    /// Leader's wall clock when it came into the queue, ms since 1970; display only.
    pub queued_at_ms: u64,
    /// Leader's wall clock when it was granted; `None` while it waits.
    pub granted_at_ms: Option<u64>,
    /// What its client says about it.
    pub metadata: Metadata,
    /// The key's value.
    pub value: Bytes,
    /// Mod revision of the key.
    pub mod_revision: Revision,
}

/// One session as this group knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: SessionEpoch,
    /// TTL in milliseconds.
    pub ttl_ms: u64,
    /// What its client says about itself.
    pub metadata: Metadata,
    /// Home, or which group is.
    pub role: SessionRole,
    /// Milliseconds left when the leader last marked it silent; `None` while it is not marked.
    pub marked_ms: Option<u64>,
    /// Whether its home has expired it, so that it is renewed no more here.
    pub renewal_stopped: bool,
    /// The queues it stands in, in name order.
    pub names: Vec<Name>,
    /// Leader's wall clock when it was opened here, ms since 1970; display only.
    pub opened_at_ms: u64,
}

/// What this group is to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRole {
    /// This group decides whether the session exists; these groups know it too.
    Home {
        /// Groups that asked to know it, in order.
        attached: Vec<GroupId>,
    },
    /// This group learned of the session from its home.
    Attached {
        /// The home group.
        home: GroupId,
    },
}

/// An end that attached groups still have to acknowledge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingEnd {
    /// The session.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: SessionEpoch,
    /// Why it ended.
    pub reason: SessionEndReason,
    /// Who has not acknowledged, in order.
    pub to_tell: Vec<GroupId>,
}

/// One claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimView {
    /// Its name.
    pub name: Name,
    /// Who has each partition; nobody only where all members are being drained.
    pub owners: Vec<Option<Owner>>,
    /// By session; never empty.
    pub members: Vec<ClaimMemberView>,
}

/// One member of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimMemberView {
    /// The session.
    pub session: SessionId,
    /// Its weight against the others.
    pub weight: u32,
    /// Whether it gives everything back.
    pub draining: bool,
    /// What its client says about it.
    pub metadata: Metadata,
    /// Leader's wall clock when it joined, ms since 1970; display only.
    pub joined_at_ms: u64,
}

/// A claim in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimSummary {
    /// Its name.
    pub name: Name,
    /// How many partitions it has.
    pub partitions: u32,
    /// How many take part.
    pub members: u32,
    /// How many partitions somebody has.
    pub owned: u32,
    /// How many of those are being revoked.
    pub revoking: u32,
}

/// What one session has of a claim. Travels between members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// When something of this changed last. Of two memberships the one with the higher revision is the newer.
    pub revision: Revision,
    /// How many partitions the claim has.
    pub partitions: u32,
    /// The member's weight.
    pub weight: u32,
    /// Whether it gives everything back.
    pub draining: bool,
    /// What it has, by partition.
    pub stakes: Vec<Stake>,
}

/// One partition that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stake {
    /// The partition, from 0.
    pub partition: u32,
    /// Its fencing token.
    pub token: Token,
    /// Whether it is to give it back.
    pub revoking: bool,
}

/// Sizes, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions known here.
    pub sessions: u64,
    /// Queues with a holder.
    pub held: u64,
    /// Keys behind a holder.
    pub waiting: u64,
    /// Queues with at least one waiter.
    pub contended: u64,
    /// Waiters of the longest queue.
    pub longest_queue: u64,
    /// All keys.
    pub keys: u64,
}
