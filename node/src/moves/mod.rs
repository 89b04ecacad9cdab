//! Carries out changes of the partition map: at the leader of the meta group, one move at a time.
//!
//! ```text
//!   meta log      reserve ─────────────────────────────────────── decide ─────────────────────────── finish
//!   source               ready, seal ── export ──┐                   │                  drop ──┘
//!   homes                                        │   attach, owed ───┤                    │
//!   destination          ready                   └─► import (apart)──┘     activate ──────┘
//! ```
//! What stands in the meta log says how far a move is, so that another member goes on where one stopped, and steps that
//! come twice change nothing (rule R18). [`carry`]: the steps of one move. Does not know why a range moves.

mod carry;

use std::{sync::Arc, time::Duration};

use holdfast_locktable::{
    ids::{MoveNumber, Term},
    mutant,
};
use holdfast_partitioner::change::Moved;
use tokio::sync::Notify;

use crate::{
    endpoint::router::Router,
    group::proposer::GroupError,
    meta::{
        MetaCommand,
        changes::{Moving, Stage, UnderWay},
        group::MetaGroup,
    },
};

/// Pause before a step that did not go through is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// Pause before a move that was given up is tried anew.
const NEW_TRY: Duration = Duration::from_millis(500);
/// How long a group may take to get ready before its move is given up.
const READY: Duration = Duration::from_secs(5);
/// How long a range may be sealed before its move is given up. Nobody is granted anything in it then, and who has locks in it
/// is not acknowledged (rule R17): with a TTL below three times this, a client may give up its locks.
const LONGEST_SEAL: Duration = Duration::from_secs(3);

/// Drives moves while this member leads the meta group.
#[derive(Clone, Debug)]
pub struct Mover {
    meta: MetaGroup,
    router: Router,
}

/// How a try to carry a move to its decision ended.
enum Tried {
    /// It is decided, one way or the other.
    Decided,
    /// It must be given up: the range stays where it is.
    GiveUp(String),
}

impl Mover {
    /// A mover for a member.
    pub fn new(meta: MetaGroup, router: Router) -> Self {
        Self { meta, router }
    }

    /// Drives until the meta group's Raft half ends. `news` is notified when a change begins.
    pub async fn run(self, news: Arc<Notify>) {
        let mut leadership = self.meta.raft().leadership();
        let mut attempt = 0;
        loop {
            leadership.borrow_and_update();
            let term = self.meta.leads_in().or(mutant!("two-drivers").then_some(Term(1)));
            let change = term.and_then(|_| self.meta.changes().under_way);
            let (Some(term), Some(change)) = (term, change) else {
                tokio::select! {
                    biased;
                    changed = leadership.changed() => if changed.is_err() { return },
                    () = news.notified() => {}
                }
                continue;
            };
            attempt += 1;
            // A leader that was deposed stops here; what it has under way is harmless, and the next one goes on.
            tokio::select! {
                biased;
                changed = leadership.changed() => if changed.is_err() { return },
                done = self.go_on(change, term, attempt) => if let Err(error) = done {
                    tracing::debug!(%error, "a step of a move did not go through yet");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Takes the next step of a change.
    async fn go_on(&self, change: UnderWay, term: Term, attempt: u64) -> Result<(), GroupError> {
        let Some(step) = change.step() else { return Ok(()) };
        let at_ms = self.meta.wall_ms();
        // A snapshot set is taken between two moves.
        let _start = match &change.moving {
            None => Some(self.meta.sets().may_start().await),
            Some(_) => None,
        };
        let Some(moved) = &step.moved else {
            let take = MetaCommand::TakeStep { change: change.number, step: change.done, at_ms };
            return self.meta.ask(take).await.map(drop);
        };
        match &change.moving {
            None => {
                if change.tries > 0 {
                    tokio::time::sleep(NEW_TRY).await;
                }
                let reserve = MetaCommand::Reserve { change: change.number, step: change.done };
                self.meta.ask(reserve).await.map(drop)
            }
            Some(Moving { number, stage: Stage::Reserved }) => {
                let tried = match &change.stop {
                    Some(why) => Tried::GiveUp(why.clone()),
                    None => self.carry(*number, moved, attempt_number(term, attempt)).await?,
                };
                match tried {
                    Tried::Decided => Ok(()),
                    Tried::GiveUp(why) => self.give_up(*number, moved, why).await,
                }
            }
            Some(Moving { number, stage: Stage::Decided { digest, epoch } }) => {
                self.hand_over(*number, moved, *digest, *epoch).await?;
                self.meta.ask(MetaCommand::FinishMove { move_number: *number, at_ms }).await.map(drop)
            }
            Some(Moving { number, stage: Stage::GivenUp { why } }) => {
                tracing::info!(number = number.0, from = %moved.from, to = %moved.to, why, "a move was given up");
                self.take_back(*number, moved).await?;
                self.meta.ask(MetaCommand::FinishMove { move_number: *number, at_ms }).await.map(drop)
            }
        }
    }

    async fn give_up(&self, number: MoveNumber, moved: &Moved, why: String) -> Result<(), GroupError> {
        tracing::debug!(number = number.0, from = %moved.from, to = %moved.to, why, "giving up a move");
        self.meta.ask(MetaCommand::GiveUp { move_number: number, why }).await.map(drop)
    }
}

/// Tries of a later leader, and later ones of the same, have higher numbers.
fn attempt_number(term: Term, attempt: u64) -> u64 {
    (term.0 << 32) | (attempt & 0xffff_ffff)
}
