//! What a group and an endpoint ask of whatever carries bytes between members.

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

use super::heard::Heard;
use crate::raft::types::{
    AppendAnswer, AppendRequest, MemberId, SnapshotMeta, SnapshotResponse, TransferRequest, TransferResponse,
    Vote, VoteRequest, VoteResponse,
};

/// Answers to a stream of appends, in the order of the appends.
pub type AppendAnswers = BoxStream<'static, Result<AppendAnswer, LinkError>>;

/// Carries messages from this member to the others.
///
/// Live implementations: [`GrpcTransport`](super::grpc::GrpcTransport) between processes,
/// [`MemoryTransport`](super::memory::MemoryTransport) between members of one process, and that of the simulation.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Says where a member listens (`host:port`); replaces what was said before. Connections are made when needed.
    fn learn(&self, member: MemberId, address: &str);

    /// Says where a member listens according to an old source (a group's membership entry): used only where nothing else
    /// was said.
    fn suggest(&self, member: MemberId, address: &str);

    /// Carries appends of one group in order, several in flight, and their answers back in the same order. The answers
    /// end with the requests, or with the first error.
    fn append(
        &self,
        to: MemberId,
        group: GroupId,
        requests: BoxStream<'static, AppendRequest>,
    ) -> BoxFuture<'static, Result<AppendAnswers, LinkError>>;

    /// Asks something of a group, and waits at most `limit`.
    fn ask(
        &self,
        to: MemberId,
        group: GroupId,
        question: Question,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Answer, LinkError>>;

    /// Carries a whole snapshot of a group. `limit` is how long the far end may be silent, not how long it may take.
    fn snapshot(
        &self,
        to: MemberId,
        group: GroupId,
        parcel: SnapshotParcel,
        limit: Duration,
    ) -> BoxFuture<'static, Result<SnapshotResponse, LinkError>>;

    /// Passes a request on to a member's handler and waits for its answer as long as the member lives. Dropping the
    /// future drops the handler's work over there.
    fn call(&self, to: MemberId, request: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>>;

    /// Asks a member for a sign of life, so that [`Transport::heard`] knows of members without other traffic, and a wrong
    /// address is noticed before it is needed.
    fn probe(&self, to: MemberId, limit: Duration) -> BoxFuture<'static, Result<(), LinkError>>;

    /// Which members were heard of lately.
    fn heard(&self) -> &Heard;
}

/// Something asked of a group on another member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Vote for me.
    Vote(VoteRequest),
    /// Would you vote for me?
    PreVote(VoteRequest),
    /// Take over, or let another take over.
    Transfer(TransferRequest),
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To a vote or a pre-vote.
    Vote(VoteResponse),
    /// To a transfer.
    Transfer(TransferResponse),
}

/// A snapshot on its way to another member.
#[derive(Clone, Debug)]
pub struct SnapshotParcel {
    /// The leader's vote.
    pub vote: Vote,
    /// What the snapshot covers.
    pub meta: SnapshotMeta,
    /// The encoded state.
    pub data: Bytes,
}

/// Why Raft traffic did not get through. All are repeated by whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// No connection to the member.
    #[error("member {to} cannot be reached: {reason}")]
    Unreachable {
        /// The member.
        to: MemberId,
        /// What failed.
        reason: String,
    },
    /// Whoever listens there does not take it: another cluster or member, or no replica of the group.
    #[error("member {to} refused: {reason}")]
    Refused {
        /// The member.
        to: MemberId,
        /// What it said.
        reason: String,
    },
    /// No answer in time.
    #[error("member {to} did not answer within {} ms", limit.as_millis())]
    TimedOut {
        /// The member.
        to: MemberId,
        /// The time it had.
        limit: Duration,
    },
    /// The connection broke, or what came back makes no sense.
    #[error("the exchange with member {to} broke off: {reason}")]
    Broken {
        /// The member.
        to: MemberId,
        /// What happened.
        reason: String,
    },
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The member's handler has certainly not seen the request.
    #[error("the request did not reach member {to}: {reason}")]
    NotDelivered {
        /// The member.
        to: MemberId,
        /// What failed.
        reason: String,
    },
    /// The member's handler may have seen the request, and may have done what it asks.
    #[error("member {to} gave no answer: {reason}; what was asked may or may not have been done")]
    Unknown {
        /// The member.
        to: MemberId,
        /// What happened.
        reason: String,
    },
}

impl CallError {
    /// Whether the request has certainly not been seen by the far end.
    #[must_use]
    pub const fn not_delivered(&self) -> bool {
        match self {
            CallError::NotDelivered { .. } => true,
            CallError::Unknown { .. } => false,
        }
    }
}
