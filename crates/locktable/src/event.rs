//! What happened: changes of keys for watchers and histories, and facts for the leader's actors.

use bytes::Bytes;
use holdfast_partitioner::{GroupId, MapEpoch, Range};
use serde::{Deserialize, Serialize};

use crate::{
    command::{RequestId, SessionEndReason, Wait},
    ids::{Revision, SessionEpoch, SessionId, Token},
    name::Name,
};

/// One change of one key. All changes of one entry share its revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The revision at which it happened.
    pub revision: Revision,
    /// The proposer's wall clock in milliseconds since 1970; for display only.
    pub at_ms: u64,
    /// What changed.
    pub change: Change,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A key was created or got a new value.
    Put {
        /// The key.
        key: Bytes,
        /// Its queue, where it is a lock key: `NAME/<its lease>`.
        name: Option<Name>,
        /// The session it hangs on.
        lease: Option<SessionId>,
        /// Revision of its creation.
        create_revision: Revision,
        /// 1 where this put created it.
        version: u64,
        /// Its value.
        value: Bytes,
    },
    /// A queue's first key is now this one. Follows the `Put` that created it, or the `Delete` of the one before.
    Grant {
        /// The queue.
        name: Name,
        /// Who holds now.
        session: SessionId,
        /// With this token.
        token: Token,
    },
    /// A key was deleted.
    Delete {
        /// The key.
        key: Bytes,
        /// Its queue, where it was a lock key.
        name: Option<Name>,
        /// The session it hung on.
        lease: Option<SessionId>,
        /// Revision of its creation: the token, where it held.
        create_revision: Revision,
        /// Whether it was the holder's key.
        held: bool,
        /// Why it went.
        reason: Removal,
    },
}

/// Why a key went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Removal {
    /// The holder released (or resigned).
    Released,
    /// A wait limit passed.
    TimedOut,
    /// The client cancelled.
    Cancelled,
    /// Nobody was attached any more.
    Abandoned,
    /// An operator forced it.
    ForceReleased,
    /// The session ended.
    SessionEnded(SessionEndReason),
    /// A plain delete or transaction.
    Deleted,
}

/// What the leader's actors need to know. Every member computes the same facts; followers drop them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A session exists here from now on: arm its timer.
    SessionOpened {
        /// The session.
        session: SessionId,
        /// Its epoch.
        epoch: SessionEpoch,
        /// TTL in milliseconds.
        ttl_ms: u64,
    },
    /// A session is gone here: disarm its timer, answer its held keepalives.
    SessionEnded {
        /// The session.
        session: SessionId,
        /// Its epoch.
        epoch: SessionEpoch,
        /// Why.
        reason: SessionEndReason,
    },
    /// The home has expired the session: renew it no more, free it at its deadline (rule R5).
    RenewalStopped {
        /// The session.
        session: SessionId,
        /// Its epoch.
        epoch: SessionEpoch,
    },
    /// At home: these groups must be told of an end until they have acknowledged it.
    EndToTell {
        /// The session.
        session: SessionId,
        /// Its epoch.
        epoch: SessionEpoch,
        /// Why it ended.
        reason: SessionEndReason,
        /// The group to tell.
        group: GroupId,
    },
    /// At home: a group has acknowledged an end.
    EndTold {
        /// The session.
        session: SessionId,
        /// Its epoch.
        epoch: SessionEpoch,
        /// The group that has acknowledged.
        group: GroupId,
    },
    /// A tombstone stands here: forget it after 60 s.
    EndRemembered {
        /// The session.
        session: SessionId,
        /// Its epoch.
        epoch: SessionEpoch,
    },
    /// The mark of a silent session is in the log.
    Marked {
        /// The session.
        session: SessionId,
        /// Milliseconds it has left.
        remaining_ms: u64,
    },
    /// The mark of a session is out of the log again.
    Cleared {
        /// The session.
        session: SessionId,
    },
    /// A session came with a range from another group, or was known here and came with a later deadline.
    SessionArrived {
        /// The session.
        session: SessionId,
        /// Its epoch.
        epoch: SessionEpoch,
        /// TTL in milliseconds.
        ttl_ms: u64,
        /// Milliseconds it has left at least.
        left_ms: u64,
        /// Whether it is renewed no more.
        renewal_stopped: bool,
    },
    /// Keys of a range went to another group, with their waits and holds: whoever listens for them here asks there.
    RangeLeft {
        /// The range.
        range: Range,
        /// The map epoch since which it has another owner.
        map_epoch: MapEpoch,
    },
    /// A wait began.
    Waiting {
        /// The queue.
        name: Name,
        /// Who waits.
        session: SessionId,
        /// Under which request; `None` for keys that a client put there itself.
        request: Option<RequestId>,
        /// Its limit.
        wait: Wait,
    },
    /// A wait ended.
    WaitEnded {
        /// The queue.
        name: Name,
        /// Who waited.
        session: SessionId,
        /// Under which request.
        request: Option<RequestId>,
        /// How.
        end: WaitEnd,
    },
    /// A hold ended.
    HoldEnded {
        /// The queue.
        name: Name,
        /// Who held.
        session: SessionId,
        /// With which token.
        token: Token,
        /// Why.
        reason: Removal,
        /// The proposer's wall clock when it was granted, for the hold-time metric.
        granted_at_ms: u64,
    },
    /// What a session has of a claim has changed, or it is no member any more.
    ClaimChanged {
        /// The claim.
        name: Name,
        /// The session.
        session: SessionId,
    },
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitEnd {
    /// It holds now.
    Granted {
        /// The fencing token.
        token: Token,
    },
    /// Its key went.
    Removed(Removal),
}
