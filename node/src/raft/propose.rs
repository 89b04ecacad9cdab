//! From a request handler to the log: commands that arrive together are proposed together.
//!
//! ```text
//!  propose ──┐                      ┌─ batch 3 ── client_write_many ──► openraft
//!  propose ──┼─► bounded by permits ┤  batch 2    (in flight)
//!  propose ──┘      one task        └─ batch 1    (in flight) ◄── answers, after apply
//! ```
//! The task never waits for one batch before it proposes the next, and it adds no delay of its own: whatever has arrived
//! while the last batch was handed over is the next batch.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream::FuturesUnordered};
use openraft::{
    Raft,
    errors::{ClientWriteError, Fatal},
    impls::ProgressResponder,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    time::Instant,
};

use super::{
    ages::Ages,
    leadership::Leadership,
    machine::StateMachine,
    observe::RaftObserver,
    types::{LeaderId, MemberId, Payload, Reply, TypeConfig},
};

/// Bound of commands that wait or are in flight in one group, in units of 1 KiB or part of it: 16,384 small commands, or
/// 16 MiB. What comes on top is refused ([`ProposeError::Overloaded`]), because waiting longer would help nobody: at full
/// speed this is a third of a second.
pub const PENDING_UNITS: usize = 16 * 1024;
/// Bytes per unit.
const UNIT: usize = 1024;
/// Commands proposed in one go.
const BATCH: usize = 512;

/// Why a command has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// This member may not propose: it does not lead, hands leadership over, or has not heard from a quorum lately.
    /// The command has certainly not been executed and never will be.
    #[error("this member does not lead the group; the command was not executed")]
    NotLeader {
        /// Who leads or is about to, as far as this member knows.
        leader: Option<MemberId>,
    },
    /// The command was in the log when leadership was lost: it may have been executed, or be executed later.
    #[error(
        "leadership was lost while the command was being agreed on; it may or may not have been executed"
    )]
    Unknown,
    /// Too many commands wait in this group. This one has certainly not been executed.
    #[error("too many commands wait in the group; the command was not executed; try again in a moment")]
    Overloaded,
    /// The group has stopped on this member. The command has certainly not been executed by it.
    #[error("the group has stopped on this member; the command was not executed")]
    Stopped,
}

impl ProposeError {
    /// Whether the command has certainly not been executed, so that it may be proposed again whatever it does.
    #[must_use]
    pub const fn not_executed(&self) -> bool {
        match self {
            ProposeError::NotLeader { .. } | ProposeError::Overloaded | ProposeError::Stopped => true,
            ProposeError::Unknown => false,
        }
    }
}

/// A command on its way, and who waits for it.
struct Pending {
    since: Instant,
    payload: Payload,
    answer: oneshot::Sender<Result<Reply, ProposeError>>,
    /// Given back when the command is answered.
    permit: OwnedSemaphorePermit,
}

/// Who waits for a command that was proposed.
struct Waiting {
    answer: oneshot::Sender<Result<Reply, ProposeError>>,
    _permit: OwnedSemaphorePermit,
}

/// The way into one group's log.
#[derive(Clone, Debug)]
pub(crate) struct Proposer {
    queue: mpsc::UnboundedSender<Pending>,
    permits: Arc<Semaphore>,
}

impl Proposer {
    /// The handle, and the task that someone must run and own.
    pub(crate) fn new(
        raft: Raft<TypeConfig, StateMachine>,
        leadership: watch::Receiver<Leadership>,
        ages: Ages,
        observer: Arc<dyn RaftObserver>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        // Not bounded by itself: each command in it holds permits.
        let (queue, commands) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(PENDING_UNITS));
        (Self { queue, permits }, run(raft, commands, leadership, ages, observer))
    }

    pub(crate) async fn propose(&self, payload: Bytes) -> Result<Reply, ProposeError> {
        let permit = self.permit(&payload)?;
        let (answer, answered) = oneshot::channel();
        let pending = Pending { since: Instant::now(), payload: Payload(payload), answer, permit };
        self.queue.send(pending).map_err(|_| ProposeError::Stopped)?;
        // Dropped without an answer: the task ended with the command somewhere on its way.
        answered.await.unwrap_or(Err(ProposeError::Unknown))
    }

    /// Proposes only as this very leader: another one, and this one after it lost and won again, is refused.
    pub(crate) async fn propose_as(
        &self,
        raft: &Raft<TypeConfig, StateMachine>,
        leader: LeaderId,
        payload: Bytes,
    ) -> Result<Reply, ProposeError> {
        let _permit = self.permit(&payload)?;
        let (responder, answered) = ProgressResponder::complete_only();
        let write = raft.write(Payload(payload)).with_leader(leader).responder(responder);
        write.await.map_err(|_: Fatal<TypeConfig>| ProposeError::Stopped)?;
        match answered.await {
            Ok(Ok(response)) => Ok(response.data),
            Ok(Err(err)) => Err(refusal(err)),
            Err(_) => Err(ProposeError::Unknown),
        }
    }

    fn permit(&self, payload: &Bytes) -> Result<OwnedSemaphorePermit, ProposeError> {
        let units = u32::try_from(payload.len() / UNIT + 1).map_err(|_| ProposeError::Overloaded)?;
        Arc::clone(&self.permits).try_acquire_many_owned(units).map_err(|_| ProposeError::Overloaded)
    }
}

/// What an error of openraft says about the command's fate.
fn refusal(err: ClientWriteError<TypeConfig>) -> ProposeError {
    match err {
        // Refused before it was appended.
        ClientWriteError::ForwardToLeader(forward) => ProposeError::NotLeader { leader: forward.leader_id },
        // Appended, then replaced here by another leader's log; that leader may have it all the same.
        ClientWriteError::LogEntryDiscarded(_) => ProposeError::Unknown,
        // Of membership changes, never of commands; nothing is known then.
        ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_) => {
            ProposeError::Unknown
        }
    }
}

async fn run(
    raft: Raft<TypeConfig, StateMachine>,
    mut commands: mpsc::UnboundedReceiver<Pending>,
    mut leadership: watch::Receiver<Leadership>,
    ages: Ages,
    observer: Arc<dyn RaftObserver>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut in_flight = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            // First, so that answers are passed on however many commands arrive.
            Some(()) = in_flight.next() => {}
            Ok(()) = leadership.changed() => {
                // openraft leaves what it took pending for as long as a leader has no quorum; whoever waits is told now that
                // it may or may not be executed.
                if leadership.borrow_and_update().leader.is_none() {
                    in_flight.clear();
                }
            }
            received = commands.recv_many(&mut batch, BATCH) => {
                if received == 0 {
                    return;
                }
                observer.proposed(received);
                let since = batch.first().map_or_else(Instant::now, |oldest| oldest.since);
                let under_way = ages.began(since);
                if let Some(answers) = propose_batch(&raft, &mut batch).await {
                    in_flight.push(async move {
                        answers.await;
                        drop(under_way);
                    });
                }
            }
        }
    }
}

/// Hands a batch to openraft; the future that comes back passes the answers on as they arrive.
async fn propose_batch(
    raft: &Raft<TypeConfig, StateMachine>,
    batch: &mut Vec<Pending>,
) -> Option<impl Future<Output = ()> + Send + 'static> {
    let (payloads, waiting): (Vec<_>, Vec<_>) = batch
        .drain(..)
        .map(|pending| (pending.payload, Waiting { answer: pending.answer, _permit: pending.permit }))
        .unzip();
    let mut answers = match raft.client_write_many(payloads).await {
        // The stream ends behind its first fatal error, and panics when it is asked once more.
        Ok(answers) => answers.fuse(),
        Err(_) => {
            for one in waiting {
                one.answer.send(Err(ProposeError::Stopped)).ok();
            }
            return None;
        }
    };
    Some(async move {
        for one in waiting {
            let answer = match answers.next().await {
                Some(Ok(Ok(response))) => Ok(response.response),
                Some(Ok(Err(err))) => Err(refusal(err)),
                // The group stopped with the command on its way.
                Some(Err(_)) | None => Err(ProposeError::Unknown),
            };
            // Nobody there: the caller gave up waiting, and has been told that this says nothing about the command.
            one.answer.send(answer).ok();
        }
    })
}
