//! Proof that this member leads now (rule R1): one quorum round for all who asked before it started.
//!
//! Leader leases prove nothing here: a restarted follower forgets them, and a suspended machine wakes up inside one.
//!
//! ```text
//!  callers ─► round: heartbeats ──────────────► proof
//!                    └ no answer for a while ─► empty entry, committed and applied ─► proof
//! ```
//! openraft gives the answer to a heartbeat no more than the pause between two of them. Members that have much to do
//! answer later than that, every time, and would then renew no session at all; appends are more patient.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::future::{Either, select};
use holdfast_locktable::{ids::Term, mutant};
use openraft::{
    Raft, ReadPolicy,
    errors::{ClientWriteError, LinearizableReadError, RaftError},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep, timeout},
};

use super::{
    ages::Ages,
    machine::StateMachine,
    observe::RaftObserver,
    types::{LogId, MemberId, Payload, TypeConfig},
};

/// Callers that may wait for the next round; those on top wait to be let in, and so for a later round.
const WAITING_CALLERS: usize = 16 * 1024;

/// How long heartbeats are waited for before an entry is proposed beside them. Far above what they take on a member that
/// keeps up, so that confirming writes nothing there.
const ENTRY_AFTER: Duration = Duration::from_millis(250);

/// This member cannot prove that it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this member cannot prove that it leads the group")]
pub struct NotLeader {
    /// Who leads, as far as this member knows.
    pub leader: Option<MemberId>,
}

/// Who waits for a round.
type Caller = oneshot::Sender<Result<Term, NotLeader>>;

/// Asks for rounds.
#[derive(Clone, Debug)]
pub(crate) struct Confirmer {
    callers: mpsc::Sender<Caller>,
}

impl Confirmer {
    /// The handle, and the task that someone must run and own.
    pub(crate) fn new(
        raft: Raft<TypeConfig, StateMachine>,
        applied: watch::Receiver<Option<LogId>>,
        patience: Duration,
        ages: Ages,
        observer: Arc<dyn RaftObserver>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (callers, waiting) = mpsc::channel(WAITING_CALLERS);
        (Self { callers }, run(Rounds { raft, applied, patience }, waiting, ages, observer))
    }

    pub(crate) async fn confirm(&self) -> Result<Term, NotLeader> {
        let (answer, answered) = oneshot::channel();
        let gone = NotLeader { leader: None };
        self.callers.send(answer).await.map_err(|_| gone)?;
        answered.await.unwrap_or(Err(gone))
    }
}

async fn run(
    rounds: Rounds,
    mut waiting: mpsc::Receiver<Caller>,
    ages: Ages,
    observer: Arc<dyn RaftObserver>,
) {
    let mut callers = Vec::new();
    while waiting.recv_many(&mut callers, WAITING_CALLERS).await > 0 {
        // Everyone in `callers` asked before this point, and the round starts after it.
        let started = Instant::now();
        let under_way = ages.began(started);
        let outcome = rounds.round().await;
        drop(under_way);
        observer.confirmed(callers.len(), started.elapsed(), outcome.is_ok());
        for caller in callers.drain(..) {
            // Nobody there: the caller gave up.
            caller.send(outcome).ok();
        }
    }
}

struct Rounds {
    raft: Raft<TypeConfig, StateMachine>,
    applied: watch::Receiver<Option<LogId>>,
    /// How long to wait for a quorum, and for what it has shown to be agreed on to be applied here.
    patience: Duration,
}

impl Rounds {
    /// Asks a quorum, then waits until everything agreed on before is applied here, an entry of the own term included.
    async fn round(&self) -> Result<Term, NotLeader> {
        let heartbeats = pin!(self.by_heartbeats());
        let entry = pin!(async {
            sleep(ENTRY_AFTER).await;
            self.by_entry().await
        });
        match select(heartbeats, entry).await {
            Either::Left((Err(Refusal::NoQuorum), entry)) => entry.await.map_err(NotLeader::from),
            Either::Right((Err(Refusal::NoQuorum), heartbeats)) => heartbeats.await.map_err(NotLeader::from),
            Either::Left((decided, _)) | Either::Right((decided, _)) => decided.map_err(NotLeader::from),
        }
    }

    async fn by_heartbeats(&self) -> Result<Term, Refusal> {
        let policy =
            if mutant!("leader-lease-trusted") { ReadPolicy::LeaseRead } else { ReadPolicy::ReadIndex };
        let needed = match self.raft.get_read_linearizer(policy).await {
            Ok(linearizer) => *linearizer.read_log_id().log_id(),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                return Err(Refusal::NotLeader { leader: forward.leader_id });
            }
            Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => {
                return Err(Refusal::NoQuorum);
            }
            Err(RaftError::Fatal(_)) => return Err(Refusal::NotLeader { leader: None }),
        };
        let mut applied = self.applied.clone();
        let reached = applied.wait_for(|applied| applied.is_some_and(|id| id >= needed));
        match timeout(self.patience, reached).await {
            // An entry of a later leader means that the needed one may never have been applied.
            Ok(Ok(applied)) if applied.is_some_and(|id| id.leader_id == needed.leader_id) => {
                Ok(Term(needed.leader_id.term))
            }
            Ok(Ok(_) | Err(_)) => Err(Refusal::NotLeader { leader: None }),
            Err(_) => Err(Refusal::NoQuorum),
        }
    }

    /// An entry that a quorum has taken was proposed by who led when it did, and comes behind all that was agreed on.
    async fn by_entry(&self) -> Result<Term, Refusal> {
        match timeout(self.patience * 2, self.raft.client_write(Payload::NOTHING)).await {
            Ok(Ok(written)) => Ok(Term(written.log_id.leader_id.term)),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward)))) => {
                Err(Refusal::NotLeader { leader: forward.leader_id })
            }
            Ok(Err(_)) => Err(Refusal::NotLeader { leader: None }),
            Err(_) => Err(Refusal::NoQuorum),
        }
    }
}

/// Why one way of asking gave no proof.
enum Refusal {
    /// No other way will.
    NotLeader { leader: Option<MemberId> },
    /// Nobody has answered in time; another way may be more patient.
    NoQuorum,
}

impl From<Refusal> for NotLeader {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotLeader { leader } => Self { leader },
            Refusal::NoQuorum => Self { leader: None },
        }
    }
}
