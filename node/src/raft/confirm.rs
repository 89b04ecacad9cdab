//! Proof that this member leads now (rule R1): one quorum round for all who asked before it started.
//!
//! Leader leases prove nothing here: a restarted follower forgets them, and a suspended machine wakes up inside one.

use std::{sync::Arc, time::Duration};

use holdfast_locktable::ids::Term;
use openraft::{
    Raft, ReadPolicy,
    errors::{LinearizableReadError, RaftError},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout},
};

use super::{
    machine::StateMachine,
    observe::RaftObserver,
    types::{LogId, MemberId, TypeConfig},
};

/// Callers that may wait for the next round; those on top wait to be let in, and so for a later round.
const WAITING_CALLERS: usize = 16 * 1024;

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
        observer: Arc<dyn RaftObserver>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (callers, waiting) = mpsc::channel(WAITING_CALLERS);
        (Self { callers }, run(Rounds { raft, applied, patience }, waiting, observer))
    }

    pub(crate) async fn confirm(&self) -> Result<Term, NotLeader> {
        let (answer, answered) = oneshot::channel();
        let gone = NotLeader { leader: None };
        self.callers.send(answer).await.map_err(|_| gone)?;
        answered.await.unwrap_or(Err(gone))
    }
}

async fn run(mut rounds: Rounds, mut waiting: mpsc::Receiver<Caller>, observer: Arc<dyn RaftObserver>) {
    let mut callers = Vec::new();
    while waiting.recv_many(&mut callers, WAITING_CALLERS).await > 0 {
        // Everyone in `callers` asked before this point, and the round starts after it.
        let started = Instant::now();
        let outcome = rounds.round().await;
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
    /// How long to wait for what the round has shown to be agreed on to be applied here.
    patience: Duration,
}

impl Rounds {
    /// Asks a quorum, then waits until everything agreed on before is applied here, an entry of the own term included.
    async fn round(&mut self) -> Result<Term, NotLeader> {
        let needed = match self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
            Ok(linearizer) => *linearizer.read_log_id().log_id(),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                return Err(NotLeader { leader: forward.leader_id });
            }
            Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) | RaftError::Fatal(_)) => {
                return Err(NotLeader { leader: None });
            }
        };
        let reached = self.applied.wait_for(|applied| applied.is_some_and(|id| id >= needed));
        match timeout(self.patience, reached).await {
            // An entry of a later leader means that the needed one may never have been applied.
            Ok(Ok(applied)) if applied.is_some_and(|id| id.leader_id == needed.leader_id) => {
                Ok(Term(needed.leader_id.term))
            }
            Ok(Ok(_) | Err(_)) | Err(_) => Err(NotLeader { leader: None }),
        }
    }
}
