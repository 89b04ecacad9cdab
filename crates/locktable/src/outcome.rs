//! What applying a command answers: an outcome, or a typed refusal. Both are data, the same on every member.

use alloc::vec::Vec;

use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

use crate::{
    codec::Digest,
    command::LearnedEnd,
    event::{Event, Fact},
    ids::{MoveNumber, Revision, SessionEpoch, SessionId, Token},
    metadata::Metadata,
    txn::TxnOutcome,
};

/// Everything that applying one entry gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// For the one who asked.
    pub result: Result<Outcome, Rejection>,
    /// The group's revision afterwards.
    pub revision: Revision,
    /// Changes of keys, in order, all at this revision. Kept in the history.
    pub events: Vec<Event>,
    /// What the leader's actors need to know (timers to arm, waits to answer). Not kept.
    pub facts: Vec<Fact>,
}

/// A command that did what it was asked, or found it done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Done, nothing more to say.
    Done,
    /// The session is open.
    SessionOpened {
        /// Its epoch.
        epoch: SessionEpoch,
    },
    /// At home: the group is now attached; this is what it needs to know.
    SessionAttached {
        /// The session's epoch.
        epoch: SessionEpoch,
        /// TTL in milliseconds.
        ttl_ms: u64,
        /// The session's metadata.
        metadata: Metadata,
    },
    /// The session has ended here; these groups are still to be told.
    SessionEnded {
        /// Its epoch.
        epoch: SessionEpoch,
        /// Attached groups that have not acknowledged the end.
        to_tell: Vec<GroupId>,
    },
    /// How many of the named sessions were ended.
    SessionsExpired {
        /// Their number.
        count: u32,
    },
    /// The caller holds.
    Granted {
        /// The fencing token.
        token: Token,
    },
    /// The caller stands in line.
    Queued {
        /// Create revision of its key: its token, once it is granted.
        revision: Revision,
        /// How many stand before it, the holder included.
        ahead: u32,
    },
    /// How a cancel found the request.
    Cancel(CancelOutcome),
    /// A release: `true` ended the hold, `false` repeats one this session has ended itself.
    Released {
        /// Whether this very command ended the hold.
        released: bool,
    },
    /// A forced release ended the hold of this session.
    ForceReleased {
        /// Who held.
        session: SessionId,
    },
    /// The new value is in place.
    Proclaimed {
        /// Its mod revision.
        revision: Revision,
    },
    /// What a transaction read and wrote.
    Txn(TxnOutcome),
    /// A range is sealed.
    Sealed {
        /// The group's revision: no token that it has handed out is higher.
        revision: Revision,
    },
    /// A part of an import is in, or was before.
    Imported {
        /// The part that is expected next; of no meaning once the import is complete.
        next: u32,
        /// Fingerprint of everything imported, once the import is complete.
        complete: Option<Digest>,
    },
    /// An imported range is owned.
    Activated {
        /// The group's revision: no token of the source is higher.
        revision: Revision,
    },
    /// The group is attached to all the sessions that live.
    SessionsAttached {
        /// Those that do not, and how they ended as far as that is known.
        lost: Vec<LearnedEnd>,
    },
    /// The session takes no part in the claim; `true` where this very command ended it.
    ClaimLeft {
        /// Whether it was a member.
        left: bool,
    },
}

/// How a cancel found the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelOutcome {
    /// It waited, and does not any more.
    Cancelled,
    /// It had been granted; `released` says whether the cancel gave the lock back.
    Granted {
        /// The token of the grant.
        token: Token,
        /// Whether it was released by this cancel.
        released: bool,
    },
    /// There is no such wait and no such hold.
    None,
}

/// A command that was refused, and why. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rejection {
    /// A try found the lock held.
    Busy {
        /// Who holds it.
        holder: SessionId,
        /// The holder's token.
        token: Token,
        /// How many wait behind the holder.
        waiters: u32,
    },
    /// The session has ended, has another epoch, or never was (at its home).
    SessionLost {
        /// The session.
        session: SessionId,
    },
    /// This group does not know the session, or is not its home where only the home can answer; ask its home, and come
    /// again with `attach` (never shown to clients).
    SessionUnknown {
        /// The session.
        session: SessionId,
    },
    /// The id is in use, or the end of its last life is not acknowledged everywhere yet.
    SessionExists {
        /// The session.
        session: SessionId,
    },
    /// The session holds the lock already, under another request id (rule R10).
    AlreadyHeld {
        /// The token it holds with.
        token: Token,
    },
    /// The session waits for the lock already, under another request id (rule R10).
    AlreadyWaiting,
    /// The session, name and token name no hold.
    NotHolder,
    /// The request was answered before and will not be executed again (rule R11).
    StaleRequest {
        /// How that request ended, where that is still known.
        ended: Option<RequestEnd>,
    },
    /// The session has 256 requests above its floor in this group.
    TooManyOutstanding,
    /// A forced release named a token that does not hold (any more).
    Changed {
        /// Who holds now, if anybody.
        holder: Option<(SessionId, Token)>,
    },
    /// The name belongs to another group.
    NotOwner,
    /// The name's range is sealed for a move.
    Sealed {
        /// The move's number.
        move_number: MoveNumber,
    },
    /// The entry carries a decision of another term's leader.
    StaleTerm,
    /// The group has ranges already.
    AlreadyOwned,
    /// The revision asked for is gone; this is the oldest kept.
    Compacted {
        /// The first revision that is still known.
        oldest: Revision,
    },
    /// The group's counter is full: restore into a new incarnation.
    CounterFull,
    /// A transaction that breaks a rule (rule R13, or etcd's own limits).
    InvalidTxn(crate::txn::TxnError),
    /// A value outside its bounds that the endpoint should have refused.
    OutOfBounds(crate::outcome::Bound),
    /// A step of a move that is over here, or was never begun: lower numbers and attempts are refused for ever (rule R18).
    StaleMove {
        /// The highest number that this group has seen.
        highest: MoveNumber,
    },
    /// Another move has this group as its source or destination; there is one at a time.
    MoveUnderWay {
        /// Its number.
        move_number: MoveNumber,
    },
    /// A part of an import came before its predecessors.
    ImportOutOfOrder {
        /// The part that is expected.
        next: u32,
    },
    /// There is no complete import of this number and digest to activate, or no sealed range of this number to drop.
    NotPrepared,
    /// The claim has another number of partitions.
    ClaimPartitions {
        /// How many it has.
        partitions: u32,
    },
    /// The claim has as many members as it may have.
    ClaimFull {
        /// How many.
        members: u32,
    },
    /// The session is no member of the claim.
    NotMember,
    /// The group was restored and grants nothing for a while (rule R20).
    GrantsPaused {
        /// How long from the first leader on, in milliseconds.
        pause_ms: u64,
    },
}

/// Which bound was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// TTL outside 1,000 to 86,400,000 ms.
    Ttl,
    /// A value of more than 64 KiB.
    Value,
    /// A request id text of more than 256 bytes.
    RequestId,
    /// A key of more than 4,096 bytes.
    Key,
    /// A claim with other than 1 to 4,096 partitions.
    Partitions,
    /// A weight outside 1 to 1,000.
    Weight,
    /// A session in more than 256 claims of one group.
    Claims,
}

/// How an earlier request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestEnd {
    /// It was granted and the hold has ended since.
    Released,
    /// Its wait limit passed.
    TimedOut,
    /// It was cancelled or given up.
    Cancelled,
    /// Its key was deleted by somebody else.
    Removed,
    /// Its group has let the session lapse, whose keepalives reached other groups only.
    SessionEnded,
}
