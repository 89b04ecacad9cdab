//! What a group can be asked, as it stands in its log.
//!
//! Commands carry everything that apply needs: ids, epochs, terms, limits. They carry no time that decides anything;
//! `at_ms` is only shown to people. Encodings are frozen by golden tests: a change is a new variant at the end.

use alloc::{sync::Arc, vec::Vec};

use bytes::Bytes;
use holdfast_partitioner::{GroupId, MapEpoch, Range};
use serde::{Deserialize, Serialize};

use crate::{
    codec::Digest,
    ids::{MoveNumber, Revision, SessionEpoch, SessionId, Term, Token},
    metadata::Metadata,
    moved::Moved,
    name::Name,
    txn::Txn,
};

/// One log entry's worth: the command, and the proposer's wall clock for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Milliseconds since 1970 by the proposing leader's wall clock. Shown in histories and as `held_ms`; decides nothing.
    pub at_ms: u64,
    /// What is asked.
    pub command: Command,
}

/// What can be asked of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Gives a fresh group its first ranges. Refused (`Rejection::AlreadyOwned`) once a group has ever owned anything.
    Own(Own),
    /// Opens a session; this group is its home.
    OpenSession(OpenSession),
    /// At home: another group asks to know the session (rule R4, first contact).
    AttachSession {
        /// The session.
        session: SessionId,
        /// The group that wants to know it.
        group: GroupId,
    },
    /// At home: ends a session because its client closed it or an operator forced it.
    EndSession {
        /// The session.
        session: SessionId,
        /// Its epoch, where the caller knows it; another epoch is `SessionLost`.
        epoch: Option<SessionEpoch>,
        /// Why.
        reason: EndReason,
    },
    /// The leader found these sessions' time up. Refused as a whole (`StaleTerm`) in an entry of another term.
    ExpireSessions {
        /// The sessions with their epochs; those that are gone or have another epoch are skipped.
        sessions: Vec<(SessionId, SessionEpoch)>,
        /// The term in which the leader decided.
        term: Term,
    },
    /// At an attached group: the home group tells of ends. Unknown sessions leave a tombstone that refuses their epoch.
    LearnEnds {
        /// The ends.
        ends: Vec<LearnedEnd>,
    },
    /// At home: a group has applied the end; when all have, the id is free again.
    AckEnd {
        /// The session.
        session: SessionId,
        /// Its epoch.
        epoch: SessionEpoch,
        /// The group that has acknowledged.
        group: GroupId,
    },
    /// At an attached group: tombstones older than the leader's 60 s may go.
    ForgetEnds {
        /// Sessions with the epochs of their tombstones.
        ends: Vec<(SessionId, SessionEpoch)>,
    },
    /// Asks for a lock or campaigns in an election.
    Acquire(Acquire),
    /// Ends a wait; finds the grant where it came first.
    Cancel(Cancel),
    /// Ends a hold.
    Release {
        /// The queue.
        name: Name,
        /// The session that says it holds.
        session: SessionId,
        /// The token of the hold to end.
        token: Token,
    },
    /// An operator ends whatever hold has this token, at once.
    ForceRelease {
        /// The queue.
        name: Name,
        /// The token the operator saw; another holder is `Changed`.
        token: Token,
    },
    /// The holder replaces its key's value (elections).
    Proclaim {
        /// The queue.
        name: Name,
        /// The session that leads.
        session: SessionId,
        /// Its token.
        token: Token,
        /// The new value.
        value: Bytes,
    },
    /// Reads and writes keys in one step, as an etcd transaction does.
    Txn(Txn),
    /// The leader records how much time silent sessions have left, and clears the mark of those heard again (rule R6).
    /// Refused (`StaleTerm`) in an entry of another term.
    Checkpoint {
        /// Sessions silent for more than half their TTL, with the milliseconds they have left.
        marked: Vec<(SessionId, SessionEpoch, u64)>,
        /// Marked sessions that were heard again.
        cleared: Vec<(SessionId, SessionEpoch)>,
        /// The term in which the leader decided.
        term: Term,
    },
    /// Drops history below a revision.
    Compact {
        /// The first revision that stays; a revision of the future drops everything up to now.
        keep_from: Revision,
    },
    /// A transaction whose puts hang on sessions that this group may meet for the first time (rule R4). Sessions that no
    /// executed put hangs on are not attached.
    AttachTxn {
        /// What the sessions' homes said.
        contacts: Vec<Contact>,
        /// The transaction.
        txn: Txn,
    },
    /// A cancel of a session that this group may not have met (rule R4): it does not meet it, and remembers that the request
    /// must not be executed until the session's home tells of its end.
    AttachCancel {
        /// The session's epoch.
        epoch: SessionEpoch,
        /// What the session's home said.
        attach: Attach,
        /// The cancel.
        cancel: Cancel,
    },
    /// At the source of a move: the range is sealed. Until `Unseal` or `Drop` nothing in it changes (rule R16).
    Seal(Seal),
    /// At the source: the move was given up, the range is open again.
    Unseal {
        /// The move.
        move_number: MoveNumber,
    },
    /// At the destination: a part of what was exported, kept apart until `Activate`.
    Import(Import),
    /// At the destination: the meta group has decided, the imported range is owned.
    Activate(Activate),
    /// At the destination: the move was given up, what was imported goes.
    Discard {
        /// The move.
        move_number: MoveNumber,
    },
    /// At the source: the meta group has decided and the destination owns the range; what is left of it here goes.
    Drop(DropRange),
    /// At home: sessions go with a range to another group, which asks to know them all (rule R4).
    AttachSessions {
        /// The sessions with their epochs.
        sessions: Vec<(SessionId, SessionEpoch)>,
        /// The group.
        group: GroupId,
    },
    /// A session takes part in a claim. Asked again with the same weight, nothing changes.
    JoinClaim(JoinClaim),
    /// A session takes part in a claim no more: what it had is free at once.
    LeaveClaim {
        /// The claim.
        name: Name,
        /// The member.
        session: SessionId,
        /// The session's epoch.
        epoch: SessionEpoch,
    },
    /// A member of a claim shall have nothing any more: it is to give everything back, and goes when it has.
    DrainClaim {
        /// The claim.
        name: Name,
        /// The member.
        session: SessionId,
    },
    /// A member has stopped using partitions that it was to give back.
    AckRevoked(AckRevoked),
    /// A restored group may grant from here on: whoever held anything in the lost cluster knows by now (rule R20). Refused
    /// (`Rejection::StaleTerm`) where the leader that has waited leads no more.
    ResumeGrants(Term),
}

impl Command {
    /// The one lock, election or claim that it may change; `None` where it changes none, or any number.
    #[must_use]
    pub const fn name(&self) -> Option<&Name> {
        match self {
            Self::Acquire(Acquire { name, .. })
            | Self::Cancel(Cancel { name, .. })
            | Self::AttachCancel { cancel: Cancel { name, .. }, .. }
            | Self::Release { name, .. }
            | Self::ForceRelease { name, .. }
            | Self::Proclaim { name, .. }
            | Self::JoinClaim(JoinClaim { name, .. })
            | Self::LeaveClaim { name, .. }
            | Self::DrainClaim { name, .. }
            | Self::AckRevoked(AckRevoked { name, .. }) => Some(name),
            Self::Own(_)
            | Self::OpenSession(_)
            | Self::AttachSession { .. }
            | Self::AttachSessions { .. }
            | Self::EndSession { .. }
            | Self::ExpireSessions { .. }
            | Self::LearnEnds { .. }
            | Self::AckEnd { .. }
            | Self::ForgetEnds { .. }
            | Self::Txn(_)
            | Self::AttachTxn { .. }
            | Self::Checkpoint { .. }
            | Self::Compact { .. }
            | Self::ResumeGrants(_)
            | Self::Seal(_)
            | Self::Unseal { .. }
            | Self::Import(_)
            | Self::Activate(_)
            | Self::Discard { .. }
            | Self::Drop(_) => None,
        }
    }
}

/// One session that a group meets for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// The session.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: SessionEpoch,
    /// What its home said.
    pub attach: Attach,
}

/// The first ranges of a fresh group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// The group itself, so that a misrouted command is noticed.
    pub group: GroupId,
    /// The map epoch the ranges were taken from.
    pub map_epoch: MapEpoch,
    /// What the group owns.
    pub ranges: Vec<Range>,
}

/// Seals a range for a move. Refused (`StaleTerm`) in an entry of another term, as the leader says what sessions have left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The move.
    pub move_number: MoveNumber,
    /// What moves.
    pub range: Range,
    /// The term in which the leader proposed it. From then on it acknowledges nothing for sessions with keys of the range
    /// (rule R17).
    pub term: Term,
    /// Milliseconds that sessions with keys of the range had left then; others have their TTL.
    pub left: Vec<(SessionId, SessionEpoch, u64)>,
}

/// A part of an import, in the order in which it was exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The move.
    pub move_number: MoveNumber,
    /// Which try of it, from 1: a later one begins the import anew, an earlier one is refused.
    pub attempt: u64,
    /// What moves.
    pub range: Range,
    /// The number of this part, from 0.
    pub part: u32,
    /// What it brings.
    pub moved: Vec<Moved>,
    /// In the last part: the source's revision when it sealed the range.
    pub last: Option<Revision>,
}

/// Makes an import the group's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activate {
    /// The move.
    pub move_number: MoveNumber,
    /// Fingerprint of the import that was reported as complete before the decision.
    pub digest: Digest,
    /// The map's epoch since the decision.
    pub map_epoch: MapEpoch,
    /// What the group owns since the decision, the range included.
    pub ranges: Vec<Range>,
}

/// Takes what is left of a range that has moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropRange {
    /// The move.
    pub move_number: MoveNumber,
    /// The map's epoch since the decision.
    pub map_epoch: MapEpoch,
    /// What the group owns since the decision.
    pub ranges: Vec<Range>,
}

/// Opens a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    /// The id, chosen at random by the endpoint; taken ids are `SessionExists`.
    pub session: SessionId,
    /// How long the session lives without a keepalive, in milliseconds: 1,000 to 86,400,000.
    pub ttl_ms: u64,
    /// What the client says about itself.
    pub metadata: Metadata,
}

/// Why a session ended at its home, other than by expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// Its client closed it.
    Closed,
    /// An operator ended it.
    Forced,
}

/// What an attached group learns from a session's home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedEnd {
    /// The session.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: SessionEpoch,
    /// How it ended at home: closed and forced free everything at once; after an expiry the group only stops renewing
    /// and frees at its own deadline (rule R5).
    pub reason: SessionEndReason,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionEndReason {
    /// Its client closed it.
    Closed,
    /// Its time ran out.
    Expired,
    /// An operator ended it.
    Forced,
}

/// Who asks twice is answered from state (rules R8, R11).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RequestId {
    /// A native client's: its sequence number, and the lowest of its numbers still without an answer.
    Sequence {
        /// Number of this request, from 1, per session.
        sequence: u64,
        /// Everything below is answered and will not be asked again.
        lowest: u64,
    },
    /// A text over HTTP, at most 256 bytes: one record per (session, name).
    Text(Arc<str>),
}

impl RequestId {
    /// Whether both name the same request: the sequence number or the text; `lowest` is no part of the identity.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sequence { sequence: a, .. }, Self::Sequence { sequence: b, .. }) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Sequence { .. }, Self::Text(_)) | (Self::Text(_), Self::Sequence { .. }) => false,
        }
    }
}

/// How long an acquire is ready to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// Not at all: busy is `Rejection::Busy` and writes nothing.
    Try,
    /// In line, at most this many milliseconds by the leader's clock.
    AtMost(u64),
    /// In line until the session ends.
    Unlimited,
}

/// Asks for a lock or campaigns in an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acquire {
    /// The queue.
    pub name: Name,
    /// Who asks.
    pub session: SessionId,
    /// The session's epoch.
    pub epoch: SessionEpoch,
    /// Where this group does not know the session yet: what its home said (first contact).
    pub attach: Option<Attach>,
    /// Makes a repeat harmless.
    pub request: RequestId,
    /// Try or wait.
    pub wait: Wait,
    /// Shown to operators with the holder or waiter.
    pub metadata: Metadata,
    /// Value of the key: an election's candidate value, empty for locks. At most 64 KiB.
    pub value: Bytes,
    /// What a second acquire of the same session under another request id gets.
    pub repeat: Repeat,
}

/// What a session gets that already has a key in the queue, under another request id (rule R10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repeat {
    /// `AlreadyHeld` or `AlreadyWaiting`: never a silent double hold.
    Refuse,
    /// The same key again, as etcd's `v3lock` answers.
    SameKey,
}

/// The home group's word on a session, for a group that meets it first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// The session's home group.
    pub home: GroupId,
    /// TTL in milliseconds.
    pub ttl_ms: u64,
    /// The session's metadata.
    pub metadata: Metadata,
    /// The term of *this* group in which its leader asked; another term refuses the entry (`StaleTerm`).
    pub term: Term,
}

/// Ends a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// The queue.
    pub name: Name,
    /// Who waits.
    pub session: SessionId,
    /// Which request; another one of the same session is left alone.
    pub request: RequestId,
    /// Why, for the history.
    pub reason: CancelReason,
    /// What to do where the grant came first.
    pub granted: IfGranted,
}

/// Takes a session into a claim, which the first one makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinClaim {
    /// The claim.
    pub name: Name,
    /// Who joins.
    pub session: SessionId,
    /// The session's epoch.
    pub epoch: SessionEpoch,
    /// Where this group does not know the session yet: what its home said (first contact).
    pub attach: Option<Attach>,
    /// How many partitions the claim has, 1 to 4,096; another number than it has already is refused.
    pub partitions: u32,
    /// The member's share against the others', 1 to 1,000. Another weight than it has already replaces that.
    pub weight: u32,
    /// Shown to operators with the member.
    pub metadata: Metadata,
}

/// Gives revoked partitions back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckRevoked {
    /// The claim.
    pub name: Name,
    /// The member.
    pub session: SessionId,
    /// The session's epoch.
    pub epoch: SessionEpoch,
    /// Partitions with the tokens that the member had; what is not being revoked from it is left alone.
    pub partitions: Vec<(u32, Token)>,
}

/// Why a wait is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelReason {
    /// Its wait limit passed.
    TimedOut,
    /// Its client asked.
    Cancelled,
    /// Nobody was attached to it any more (rule R8).
    Abandoned,
}

/// What a cancel does when it finds a hold instead of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IfGranted {
    /// Leave it and answer with its token: the caller is still there.
    Keep,
    /// Release it: nobody is there to use it.
    Release,
}
